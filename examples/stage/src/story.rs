use std::fmt;

use tokio::time::Instant;

/// Tells what happens, as it happens.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    began: Instant,
}

impl Story {
    /// Begins to count the seconds.
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
        }
    }

    /// Prints a line, with the seconds since the begin.
    pub fn tell(self, what: fmt::Arguments<'_>) {
        println!("[{:6.3}s] {what}", self.began.elapsed().as_secs_f64());
    }
}

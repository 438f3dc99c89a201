use std::fmt;

use tokio::time::Instant;

/// Tells what happens, as it happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Story {
    began: Instant,
}

impl Story {
    pub(crate) fn begin() -> Self {
        Self {
            began: Instant::now(),
        }
    }

    pub(crate) fn tell(self, what: fmt::Arguments<'_>) {
        println!("[{:6.3}s] {what}", self.began.elapsed().as_secs_f64());
    }
}

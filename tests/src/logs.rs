use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use tracing::{Level, subscriber};
use tracing_subscriber::fmt::{MakeWriter, format::FmtSpan};

/// Everything that is logged in this process from now on, at every level.
#[derive(Clone, Debug, Default)]
pub struct Logs(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// Takes the logs of the whole process; the client logs on a thread of its own.
    ///
    /// # Panics
    ///
    /// If another test in this process has them.
    pub fn capture() -> Self {
        Self::with(FmtSpan::NONE)
    }

    /// Takes the logs as [`capture`](Self::capture) does, with a line for each span that ends.
    ///
    /// # Panics
    ///
    /// If another test in this process has them.
    pub fn capture_with_spans() -> Self {
        Self::with(FmtSpan::CLOSE)
    }

    fn with(spans: FmtSpan) -> Self {
        let logs = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::TRACE)
            .with_span_events(spans)
            .with_ansi(false)
            .with_writer(logs.clone())
            .finish();
        subscriber::set_global_default(subscriber).expect("one test in its process takes the logs");
        logs
    }

    /// What was logged so far.
    pub fn text(&self) -> String {
        let logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&logged).into_owned()
    }
}

impl io::Write for Logs {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logged.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logs {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

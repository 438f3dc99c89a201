//! The machine, and what else it does.

use std::{fs, thread};

/// What figures depend on beside the program; for their reader.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// How many cores this process may use.
    pub(crate) cores: usize,
    /// How many processes ran or waited to run over the last minute, where the system says.
    pub(crate) load: Option<f64>,
}

impl Machine {
    /// Looks at it as it is now.
    pub(crate) fn now() -> Self {
        let load = fs::read_to_string("/proc/loadavg").ok();
        Self {
            cores: thread::available_parallelism().map_or(1, usize::from),
            load: load.and_then(|load| load.split(' ').next()?.parse().ok()),
        }
    }

    /// Writes the load.
    pub(crate) fn load(&self) -> String {
        self.load
            .map_or_else(|| "unknown".to_owned(), |load| format!("{load:.2}"))
    }
}

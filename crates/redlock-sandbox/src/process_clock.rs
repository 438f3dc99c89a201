use std::{ops::Deref, process::Command};

use crate::{ServerClock, error::StartError, folder::Folder};

/// A wall clock for processes that are no servers of this crate, such as clients under test.
///
/// It is set and stepped as a [`ServerClock`], and first follows the real time.
/// The test must check that the program uses it: a program that is linked statically, or that asks the kernel without
/// the C library, does not.
/// Only Linux is supported.
#[derive(Debug)]
pub struct ProcessClock {
    clock: ServerClock,
    // Declared after the clock: the folder is removed when this process no longer writes to it.
    _folder: Folder,
}

impl ProcessClock {
    /// Makes a clock, with a folder of its own that is removed with this value, or with this process.
    ///
    /// # Errors
    ///
    /// [`StartError`] if there is no compiler, or the system does not support such clocks.
    pub fn create() -> Result<Self, StartError> {
        let folder = Folder::create()?;
        Ok(Self {
            clock: ServerClock::create(&folder)?,
            _folder: folder,
        })
    }

    /// Makes `command` start its program with this clock; it may be called for several commands.
    pub fn give_to(&self, command: &mut Command) {
        self.clock.give_to(command);
    }
}

impl Deref for ProcessClock {
    type Target = ServerClock;

    fn deref(&self) -> &ServerClock {
        &self.clock
    }
}

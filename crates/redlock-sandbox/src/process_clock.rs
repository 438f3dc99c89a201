use std::{ops::Deref, process::Command};

use crate::{ServerClock, error::StartError, folder::Folder};

/// A wall clock for processes that are no servers of ours, such as clients under test.
///
/// It is set and stepped as a [`ServerClock`], and follows the real time at no distance at first.
/// The starter of a program must check that the program believes it: one that is linked statically, or asks the kernel without the C library, does not.
/// Only Linux is supported.
#[derive(Debug)]
pub struct ProcessClock {
    clock: ServerClock,
    // Declared after the clock, so that the folder goes when nobody here writes to it any more.
    _folder: Folder,
}

impl ProcessClock {
    /// Makes a clock, with a folder of its own that is removed with this value, or with this process.
    ///
    /// # Errors
    ///
    /// [`StartError`] if there is no compiler, or the system has no such clocks.
    pub fn create() -> Result<Self, StartError> {
        let folder = Folder::create()?;
        Ok(Self {
            clock: ServerClock::create(&folder)?,
            _folder: folder,
        })
    }

    /// Makes `command` start its program with this clock, once or more often.
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

//! The way to a server's own clock: the dynamic loader puts a library of ours before the system's.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{clock::compiler, error::StartError};

/// A library with the functions that tell the time, and the file it gets the time from.
#[derive(Debug)]
pub(crate) struct Preload {
    library: PathBuf,
    settings: PathBuf,
}

impl Preload {
    /// Makes `folder`, and the library in it; the file with the settings is the caller's to make.
    pub(crate) fn build(folder: &Path) -> Result<Self, StartError> {
        if !cfg!(target_os = "linux") {
            return Err(StartError::clock("only on Linux"));
        }
        // The list of what a process has mapped says the canonical path.
        let folder = fs::create_dir(folder)
            .and_then(|()| folder.canonicalize())
            .map_err(|error| StartError::io("create a folder for the clock", error))?;
        if folder.as_os_str().as_bytes().iter().any(separates) {
            return Err(StartError::clock(&format!(
                "only if the path of its folder has no blank, colon or dollar sign: {}",
                folder.display()
            )));
        }
        let library = folder.join("clock.so");
        compiler::write_library(&library)?;
        let settings = folder.join("settings");
        Ok(Self { library, settings })
    }

    /// Returns where the library expects its settings.
    pub(crate) fn settings(&self) -> &Path {
        &self.settings
    }

    /// Makes `command` start its program with the library.
    pub(crate) fn give_to(&self, command: &mut Command) {
        let mut libraries = OsString::from(&self.library);
        if let Some(others) = env::var_os(PRELOAD) {
            libraries.push(":");
            libraries.push(others);
        }
        command
            .env(PRELOAD, libraries)
            .env("REDLOCK_SANDBOX_CLOCK", &self.settings);
    }

    /// Fails if the process `pid` does not use the settings.
    ///
    /// The loader ignores a library that it cannot use, and a statically linked program has no loader.
    /// A test would then step a clock that the program does not read.
    pub(crate) fn check(&self, pid: u32) -> Result<(), StartError> {
        let maps = fs::read(format!("/proc/{pid}/maps"))
            .map_err(|error| StartError::io("look at what the server has mapped", error))?;
        let settings = self.settings.as_os_str().as_bytes();
        if maps
            .split(|byte| *byte == b'\n')
            .any(|line| line.ends_with(settings))
        {
            Ok(())
        } else {
            Err(StartError::clock(
                "only if its program loads what LD_PRELOAD names, and this one does not",
            ))
        }
    }
}

/// Returns whether a path with this byte means something else to the loader.
fn separates(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b':' | b'$')
}

const PRELOAD: &str = "LD_PRELOAD";

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::StartErrorKind;

    use super::*;

    #[test]
    fn a_folder_that_the_loader_cannot_be_told_is_refused() {
        for name in ["a b", "a:b", "$LIB"] {
            let folder = tempfile::tempdir().unwrap();
            let error = Preload::build(&folder.path().join(name)).unwrap_err();
            assert_eq!(error.kind(), StartErrorKind::Clock);
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

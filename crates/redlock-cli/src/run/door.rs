//! The socket at which a warden reaches the process that holds the lock.

use std::{
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use tokio::net::UnixListener;

/// A socket in a folder that only this user may enter; both are removed with this value.
#[derive(Debug)]
pub(super) struct Door {
    folder: TempDir,
    pub(super) listener: UnixListener,
}

impl Door {
    /// Opens one in the system's folder for what is temporary, or in `/tmp` if its path is too long for a socket.
    ///
    /// This is done before the lock is asked for, so that a failure costs nobody a turn.
    pub(super) fn open() -> io::Result<Self> {
        Self::open_in(&std::env::temp_dir())
    }

    fn open_in(parent: &Path) -> io::Result<Self> {
        let folder = folder_in(parent)?;
        let folder = if socket_in(&folder).as_os_str().len() <= LONGEST {
            folder
        } else {
            folder_in(Path::new("/tmp"))?
        };
        let listener = UnixListener::bind(socket_in(&folder))?;
        Ok(Self { folder, listener })
    }

    /// Returns the path of the socket.
    pub(super) fn path(&self) -> PathBuf {
        socket_in(&self.folder)
    }
}

fn folder_in(parent: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix("redlock-run-")
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir_in(parent)
}

fn socket_in(folder: &TempDir) -> PathBuf {
    folder.path().join("socket")
}

/// The longest path of a socket, in bytes, on the system that allows the least.
const LONGEST: usize = 103;

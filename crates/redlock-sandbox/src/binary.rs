//! Where the server program is.

use std::{
    env,
    error::Error,
    ffi::OsStr,
    fmt,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// The path of a program that speaks Redis' command line: `redis-server` or `valkey-server`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerBinary(PathBuf);

impl ServerBinary {
    /// Finds the server to use.
    ///
    /// The environment variable [`SERVER_VARIABLE`] takes precedence.
    /// Without it, this function takes the first `redis-server`, and otherwise the first `valkey-server`, in the
    /// folders of `PATH`.
    ///
    /// # Errors
    ///
    /// [`NotFound`] if there is no such program.
    /// A variable that names no program is an error too: this function never replaces a program that the user has
    /// named.
    pub fn find() -> Result<Self, NotFound> {
        let named = env::var_os(SERVER_VARIABLE);
        let folders = env::var_os("PATH").unwrap_or_default();
        Self::find_in(named.as_deref(), &folders)
    }

    /// Takes the program at `path`, without checking that it exists.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path of the program.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn find_in(named: Option<&OsStr>, folders: &OsStr) -> Result<Self, NotFound> {
        if let Some(named) = named {
            let path = PathBuf::from(named);
            return if is_program(&path) {
                Ok(Self(path))
            } else {
                Err(NotFound(Reason::NotAProgram(path)))
            };
        }
        PROGRAMS
            .iter()
            .find_map(|program| search(program, folders))
            .map(Self)
            .ok_or_else(|| NotFound(Reason::NotOnPath(install_command(folders))))
    }
}

/// The error for a missing server program.
///
/// Its message ends with the command that installs one.
#[derive(Clone, Debug)]
pub struct NotFound(Reason);

#[derive(Clone, Debug)]
enum Reason {
    NotAProgram(PathBuf),
    NotOnPath(&'static str),
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Reason::NotAProgram(path) => write!(
                f,
                "{SERVER_VARIABLE} names {}, which is not a program; to search PATH instead, type: \
                 unset {SERVER_VARIABLE}",
                path.display()
            ),
            Reason::NotOnPath(command) => write!(
                f,
                "neither redis-server nor valkey-server is on PATH; to install one, type: {command}"
            ),
        }
    }
}

impl Error for NotFound {}

/// The environment variable that names the server program by its path.
pub const SERVER_VARIABLE: &str = "REDLOCK_REDIS_SERVER";

const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// Package managers, and the command that installs a server with each.
const INSTALLERS: [(&str, &str); 5] = [
    ("apt-get", "sudo apt-get install redis-server"),
    ("dnf", "sudo dnf install valkey"),
    ("pacman", "sudo pacman -S valkey"),
    ("apk", "sudo apk add valkey"),
    ("brew", "brew install valkey"),
];

fn install_command(folders: &OsStr) -> &'static str {
    INSTALLERS
        .iter()
        .find(|(manager, _)| search(manager, folders).is_some())
        .map_or("export REDLOCK_REDIS_SERVER=<path of a server>", |found| {
            found.1
        })
}

fn search(program: &str, folders: &OsStr) -> Option<PathBuf> {
    env::split_paths(folders)
        .map(|folder| folder.join(program))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn redis_is_preferred_to_valkey_whatever_the_order_of_folders() {
        let (valkey, redis) = (folder(&["valkey-server"]), folder(&["redis-server"]));
        let folders = env::join_paths([valkey.path(), redis.path()]).unwrap();
        let found = ServerBinary::find_in(None, &folders).unwrap();
        assert_eq!(found.path(), redis.path().join("redis-server"));
    }

    #[test]
    fn valkey_alone_is_enough() {
        let folder = folder(&["valkey-server"]);
        let found = ServerBinary::find_in(None, folder.path().as_os_str()).unwrap();
        assert_eq!(found.path(), folder.path().join("valkey-server"));
    }

    #[test]
    fn a_named_program_that_is_missing_is_not_replaced() {
        let folder = folder(&["redis-server"]);
        let named = folder.path().join("elsewhere");
        let missing =
            ServerBinary::find_in(Some(named.as_os_str()), folder.path().as_os_str()).unwrap_err();
        assert!(missing.to_string().contains("elsewhere"), "{missing}");
        assert!(
            missing.to_string().ends_with("unset REDLOCK_REDIS_SERVER"),
            "{missing}"
        );
    }

    #[test]
    fn a_file_without_the_execute_bit_is_not_a_program() {
        let folder = folder(&["redis-server"]);
        let path = folder.path().join("redis-server");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        ServerBinary::find_in(None, folder.path().as_os_str()).unwrap_err();
    }

    #[test]
    fn the_message_names_the_installer_that_is_there() {
        let folder = folder(&["apk"]);
        let missing = ServerBinary::find_in(None, folder.path().as_os_str()).unwrap_err();
        assert!(
            missing.to_string().ends_with("sudo apk add valkey"),
            "{missing}"
        );
    }

    fn folder(programs: &[&str]) -> TempDir {
        let folder = TempDir::new().unwrap();
        for program in programs {
            let path = folder.path().join(program);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }
}

//! A temporary folder that goes with the process that made it.

use std::{
    fs,
    io::{self, BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::error::StartError;

/// A temporary folder that is removed with this value, or with this process, however that one ends.
///
/// A shell makes it, waits for the end of its standard input and removes it.
/// So the folder is never there without a process that will remove it.
/// The other end of that pipe is this process's alone, and the kernel closes it.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    // invariant: the shell made the folder at `path`, which was not there before, and runs until `drop`.
    keeper: Child,
}

impl Folder {
    /// Makes an empty folder, for this user only, where the system has its temporary files.
    pub(crate) fn create() -> Result<Self, StartError> {
        let made = tempfile::Builder::new()
            .prefix("redlock-sandbox-")
            .make(keeper_of)
            .map_err(|error| StartError::io("create a folder", error))?;
        let (keeper, path) = made.into_parts();
        let path = path
            .keep()
            .map_err(|error| StartError::io("keep a folder", error.error))?;
        Ok(Self { path, keeper })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes these files and folders in it, those that are there.
    pub(crate) fn remove(&self, names: &[&str]) -> io::Result<()> {
        for name in names {
            let path = self.path.join(name);
            let removed = if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closes the pipe first. There is no caller to tell of a folder that cannot be removed.
        let _ = self.keeper.wait();
    }
}

/// Starts the shell that makes the folder at `path`, and waits until it has.
fn keeper_of(path: &Path) -> io::Result<Child> {
    let mut keeper = Command::new("sh")
        .args(["-c", SCRIPT, "redlock-sandbox-keeper"])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // Ctrl-C at a terminal is sent to a whole process group and must not end the shell.
        .process_group(0)
        .spawn()?;
    let mut said = String::new();
    if let Some(output) = keeper.stdout.take() {
        BufReader::new(output).read_line(&mut said)?;
    }
    match said.trim_end() {
        "made" => Ok(keeper),
        refusal => {
            keeper.wait()?;
            // Another name is tried if it is taken.
            Err(match path.symlink_metadata() {
                Ok(_) => io::ErrorKind::AlreadyExists.into(),
                Err(_) => io::Error::other(refusal.to_owned()),
            })
        }
    }
}

/// A server that is being killed may still add a file to the folder that is being removed: hence the further attempts.
const SCRIPT: &str = r#"
mkdir -m 700 -- "$1" 2>&1 || exit
echo made
exec >/dev/null
read -r _
for pause in 0.1 0.3 1 3; do
  rm -rf -- "$1" && exit
  sleep "$pause"
done
rm -rf -- "$1"
"#;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_for_its_user_alone_and_goes_with_what_is_in_it() {
        let folder = Folder::create().unwrap();
        let path = folder.path().to_path_buf();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::create_dir(path.join("in it")).unwrap();
        fs::write(path.join("in it").join("file"), "text").unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_is_there_is_nobody_elses_to_keep() {
        let theirs = tempfile::tempdir().unwrap();
        let error = keeper_of(theirs.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(theirs.path().exists());
    }

    #[test]
    fn a_folder_that_cannot_be_made_says_why() {
        let nowhere = tempfile::tempdir().unwrap();
        let error = keeper_of(&nowhere.path().join("missing").join("folder")).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
    }
}

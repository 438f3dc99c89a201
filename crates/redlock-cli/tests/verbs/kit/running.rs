//! A command that goes on while a test does something.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
};

/// A command that goes on, and its lines.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: BufReader<Box<dyn Read + Send>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::start_with(command, Stdio::piped())
    }

    /// Starts it; what it says beside its output is in this file.
    pub(crate) fn with_errors_in(command: &mut Command, file: &Path) -> Self {
        Self::start_with(command, File::create(file).unwrap().into())
    }

    fn start_with(command: &mut Command, errors: Stdio) -> Self {
        // A shell that runs the tests in the background has them ignore the signal of Ctrl-C, and the command does as it
        // was told.
        let mut heeding = Command::new("env");
        heeding
            .arg("--default-signal=INT")
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => heeding.env(name, value),
                None => heeding.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            heeding.current_dir(folder);
        }
        let mut child = heeding
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let out: Box<dyn Read + Send> = Box::new(child.stdout.take().unwrap());
        Self {
            child,
            lines: BufReader::new(out),
        }
    }

    /// Reads until a line has these words.
    pub(crate) fn await_line(&mut self, words: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).unwrap();
            assert!(length > 0, "it ended before {words:?}: {all}");
            if line.contains(words) {
                return line;
            }
            all += &line;
        }
    }

    /// Asks it to end, as Ctrl-C does, and returns its exit code.
    pub(crate) fn interrupt(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-INT", &pid]).status();
        assert!(status.unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

//! A command that goes on while a test does something.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
};

/// A command that goes on, and its lines.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: BufReader<Box<dyn Read + Send>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
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

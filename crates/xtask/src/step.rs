//! One step of a run: a command, announced, timed, and explained when it fails.

use std::{
    env,
    ffi::OsStr,
    fmt::Write as _,
    io::{self, BufRead, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// Why a run ended; said to the user as it is.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) String);

/// A command with a name, run in the root of the repository with nothing on its input.
pub(crate) struct Step {
    name: &'static str,
    command: Command,
    alone: String,
}

impl Step {
    /// Calls `cargo` with `arguments`, separated by blanks.
    pub(crate) fn cargo(name: &'static str, arguments: &str) -> Self {
        // The cargo that runs us knows which toolchain was asked for.
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Self::new(name, cargo, "cargo", arguments)
    }

    /// Calls another program with `arguments`, separated by blanks.
    pub(crate) fn program(name: &'static str, program: &str, arguments: &str) -> Self {
        Self::new(name, program, program, arguments)
    }

    fn new(name: &'static str, program: impl AsRef<OsStr>, said: &str, arguments: &str) -> Self {
        let mut command = Command::new(program);
        command
            .args(arguments.split(' '))
            .current_dir(root())
            .stdin(Stdio::null());
        Self {
            name,
            command,
            alone: format!("{said} {arguments}"),
        }
    }

    /// What to type to run this step alone, where the command itself is not it.
    pub(crate) fn alone(mut self, alone: &str) -> Self {
        alone.clone_into(&mut self.alone);
        self
    }

    /// Arguments after the others, kept as they are.
    pub(crate) fn arguments(mut self, arguments: &[impl AsRef<OsStr>]) -> Self {
        self.command.args(arguments);
        self
    }

    /// Runs the command in another folder than the root.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs the command, then prints how long it took.
    pub(crate) fn run(self) -> Result<(), Failed> {
        let name = self.name;
        let started = now();
        self.run_last()?;
        eprintln!(
            "== {name}: fine after {:.1} s",
            started.elapsed().as_secs_f64()
        );
        Ok(())
    }

    /// Runs the command so that its own closing lines are the last ones.
    pub(crate) fn run_last(mut self) -> Result<(), Failed> {
        eprintln!("== {}: {}", self.name, self.alone);
        let started = now();
        let ended = self.command.status();
        self.judge(ended, started.elapsed())
    }

    /// Runs the command as [`run_last`](Self::run_last) does, and passes each line that it prints to `read`.
    pub(crate) fn run_last_reading(self, mut read: impl FnMut(&str)) -> Result<(), Failed> {
        self.run_reading(|line| {
            let _ = writeln!(io::stdout(), "{line}");
            read(line);
        })
    }

    /// Runs the command and passes each line of its output to `read`, which alone prints it.
    pub(crate) fn run_reading(mut self, mut read: impl FnMut(&str)) -> Result<(), Failed> {
        eprintln!("== {}: {}", self.name, self.alone);
        let started = now();
        let ended = self.command.stdout(Stdio::piped()).spawn();
        let ended = ended.and_then(|mut child| {
            let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line)? > 0 {
                read(String::from_utf8_lossy(&line).trim_end_matches('\n'));
                line.clear();
            }
            child.wait()
        });
        self.judge(ended, started.elapsed())
    }

    /// Runs the command with what others leave of the processor; returns what is to be printed of it, and whether it
    /// failed.
    pub(crate) fn run_aside(mut self) -> (String, Result<(), Failed>) {
        let mut command = aside(self.command.get_program());
        command
            .args(self.command.get_args())
            .current_dir(root())
            .stdin(Stdio::null());
        let variables = self.command.get_envs();
        command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        self.command = command;
        let started = now();
        let output = self.command.output();
        let took = started.elapsed();
        let mut said = format!("== {}: {}\n", self.name, self.alone);
        if let Ok(output) = &output {
            said.push_str(&String::from_utf8_lossy(&output.stdout));
            said.push_str(&String::from_utf8_lossy(&output.stderr));
        }
        let judged = self.judge(output.map(|output| output.status), took);
        if judged.is_ok() {
            let (name, took) = (self.name, took.as_secs_f64());
            let _ = write!(said, "== {name}: fine after {took:.1} s, aside");
        }
        (said, judged)
    }

    fn judge(&self, ended: io::Result<ExitStatus>, took: Duration) -> Result<(), Failed> {
        let outcome = match ended {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Err(Failed(format!(
            "== {} failed after {:.1} s ({outcome}); to run it alone: {}",
            self.name,
            took.as_secs_f64(),
            self.alone,
        )))
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    // Cargo says where this crate is at run time; a path from build time would be wrong after the
    // folder was moved.
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    here.as_deref()
        .and_then(|here| here.ancestors().nth(2))
        .map_or_else(|| PathBuf::from("."), PathBuf::from)
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    // Relative to the root, in which cargo is called.
    let chosen = env::var_os("CARGO_TARGET_DIR");
    root().join(chosen.unwrap_or_else(|| "target".into()))
}

/// Calls a program that is to have what others leave of the processor.
pub(crate) fn aside(program: impl AsRef<OsStr>) -> Command {
    if cfg!(not(unix)) {
        return Command::new(program);
    }
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(program);
    command
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a step took, for its reader only"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

//! The programs of all tests, which run side by side: where one waits, another has the processor.
//!
//! `cargo test` runs one program after the other, and on two cores the longest waits for nine tenths of its time.

use std::{
    ffi::OsStr,
    fmt,
    io::{self, BufRead as _, BufReader, Write as _},
    iter,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

use redlock_sandbox::SERVER_VARIABLE;
use serde_json::Value;

use crate::{
    slowest::{Slowest, Times},
    step::{Failed, Step, aside, now},
};

/// A program of tests.
#[derive(Debug)]
pub(crate) struct Program {
    /// Its file.
    path: PathBuf,
    /// The folder of its package.
    folder: PathBuf,
    package: String,
    /// The name of the target: of the library, the binary or the file of tests.
    target: String,
}

/// Builds every program of tests, and returns them, those that take the longest first.
pub(crate) fn build() -> Result<Vec<Program>, Failed> {
    let mut programs = Vec::new();
    Step::cargo("build of the tests", BUILD).run_reading(|line| {
        let artifact = serde_json::from_str::<Value>(line).ok();
        programs.extend(artifact.as_ref().and_then(program));
    })?;
    if programs.is_empty() {
        return Err(Failed("cargo has built no tests".to_owned()));
    }
    programs.sort_by_key(|program| {
        let name = (&*program.package, &*program.target);
        let place = LONGEST.iter().position(|longest| *longest == name);
        place.unwrap_or(LONGEST.len())
    });
    Ok(programs)
}

/// Reads the program that a message of cargo describes.
fn program(artifact: &Value) -> Option<Program> {
    if artifact["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(artifact["manifest_path"].as_str()?).parent()?;
    // `path+file:///folder/of/it#name@version`, or without the name if that is the folder's.
    let (place, version) = artifact["package_id"].as_str()?.rsplit_once('#')?;
    let package = match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next()?,
    };
    Some(Program {
        path: artifact["executable"].as_str()?.into(),
        folder: folder.to_owned(),
        package: package.to_owned(),
        target: artifact["target"]["name"].as_str()?.to_owned(),
    })
}

/// Runs all of these programs, some at once, and prints what each said when it has ended.
pub(crate) fn run(
    programs: &[Program],
    server: &Path,
    threads: &OsStr,
    slowest: &mut Slowest,
) -> Result<(), Failed> {
    let began = now();
    let (computing, others): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| program.only_computes());
    let [computing, others] = [computing, others].map(|programs| Mutex::new(programs.into_iter()));
    let (tell, told) = mpsc::channel();
    let mut failed = Vec::new();
    thread::scope(|scope| {
        for left in iter::repeat_n(&others, AT_ONCE).chain([&computing]) {
            let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
            let tell = tell.clone();
            scope.spawn(move || {
                while let Some(program) = next() {
                    let _ = tell.send((program, program.run(server, threads)));
                }
            });
        }
        drop(tell);
        for (program, Ran { ended, said, times }) in told {
            slowest.add(times);
            let _ = io::stdout().write_all(&said);
            match ended {
                Ok(ended) if ended.success() => {}
                Ok(ended) => failed.push(format!("{program} ({ended})")),
                Err(error) => failed.push(format!("{program} ({error})")),
            }
        }
    });
    let (count, took) = (programs.len(), began.elapsed().as_secs_f64());
    if failed.is_empty() {
        eprintln!("== {count} programs of tests: fine after {took:.1} s");
        return Ok(());
    }
    Err(Failed(format!(
        "== {} of {count} programs of tests failed after {took:.1} s:\n{}",
        failed.len(),
        failed.join("\n")
    )))
}

/// What a program did.
struct Ran {
    ended: io::Result<ExitStatus>,
    /// What it printed.
    said: Vec<u8>,
    times: Times,
}

impl Program {
    /// Runs the program as cargo does: in the folder of its package, which the environment names.
    fn run(&self, server: &Path, threads: &OsStr) -> Ran {
        eprintln!("== running {self}");
        let mut said = format!("\n     {self}\n").into_bytes();
        let mut times = Times::new(now());
        let mut command = if self.only_computes() {
            aside(&self.path)
        } else {
            Command::new(&self.path)
        };
        command
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package)
            .env(SERVER_VARIABLE, server)
            .env(THREADS, threads);
        let ended = reading(command, |line| {
            times.read(String::from_utf8_lossy(line).trim_end(), now());
            said.extend_from_slice(line);
        });
        Ran { ended, said, times }
    }

    /// Whether its tests neither wait nor measure time.
    fn only_computes(&self) -> bool {
        ONLY_COMPUTE.contains(&(&*self.package, &*self.target))
    }
}

impl fmt::Display for Program {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.package, self.target)
    }
}

/// Runs a command, and passes each line of its output and of its errors to `read`.
fn reading(mut command: Command, mut read: impl FnMut(&[u8])) -> io::Result<ExitStatus> {
    let (lines, out) = io::pipe()?;
    let mut child = command.stdout(out.try_clone()?).stderr(out).spawn()?;
    // The command keeps the pipe open.
    drop(command);
    let (mut lines, mut line) = (BufReader::new(lines), Vec::new());
    while lines.read_until(b'\n', &mut line)? > 0 {
        read(&line);
        line.clear();
    }
    child.wait()
}

/// The test harness's own variable.
pub(crate) const THREADS: &str = "RUST_TEST_THREADS";

/// How many programs run at once, beside one that only computes: with three, tests that measure time are disturbed too
/// often on two cores.
const AT_ONCE: usize = 2;

/// The programs that run aside, with what the others leave of the processor, the longest first.
const ONLY_COMPUTE: [(&str, &str); 2] = [("redlock-sim", "it"), ("redlock-model", "it")];

/// The programs that take the longest, the longest first: their package and target.
const LONGEST: [(&str, &str); 3] = [
    ("redlock-tests", "it"),
    ("redlock-cli", "verbs"),
    ("redlock-core", "it"),
];

const BUILD: &str =
    "test --locked --workspace --all-features --no-run --message-format json-render-diagnostics";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_programs_of_tests_are_read_from_what_cargo_says() {
        let artifact = |id: &str, test: bool| {
            let artifact = json!({
                "reason": "compiler-artifact", "package_id": id, "manifest_path": "/a/tests/Cargo.toml",
                "target": { "name": "it" }, "profile": { "test": test }, "executable": "/a/target/it-1",
            });
            program(&artifact).map(|program| (program.to_string(), program.folder))
        };
        let folder = PathBuf::from("/a/tests");
        let named = artifact("path+file:///a/tests#redlock-tests@0.1.0", true);
        assert_eq!(
            named,
            Some(("redlock-tests, it".to_owned(), folder.clone()))
        );
        let unnamed = artifact("path+file:///a/tests#0.1.0", true);
        assert_eq!(unnamed, Some(("tests, it".to_owned(), folder)));
        assert_eq!(artifact("path+file:///a/tests#0.1.0", false), None);
    }

    #[test]
    fn a_program_that_fails_is_named_and_the_others_run() {
        let program = |path: &str| Program {
            path: path.into(),
            folder: std::env::temp_dir(),
            package: "some".to_owned(),
            target: path.to_owned(),
        };
        let programs = ["false", "no such program", "true"].map(program);
        let mut slowest = Slowest::new(1);
        let ran = run(
            &programs,
            Path::new("server"),
            OsStr::new("1"),
            &mut slowest,
        );
        let Failed(why) = ran.unwrap_err();
        assert!(why.starts_with("== 2 of 3 programs"), "{why}");
        assert!(why.contains("some, false (exit status: 1)"), "{why}");
        let fine = run(
            &programs[2..],
            Path::new("server"),
            OsStr::new("1"),
            &mut slowest,
        );
        assert!(fine.is_ok(), "{fine:?}");
    }
}

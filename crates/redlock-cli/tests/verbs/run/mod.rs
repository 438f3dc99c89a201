//! A command under a lock: what it is given, how it ends, and that it never outlives its lease.

mod elections;
mod endings;
mod losses;
mod signals;
mod supervisors;
mod waiting;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
    time::Duration,
};

use redlock_core::{AcquireOptions, LockGuard, Redlock, Wait};
use rustix::process::{Pid, Signal, kill_process};

use crate::kit::{Nodes, eventually};

/// A command that says that it lives, every 20 ms, whatever it is asked, and whose child does too.
const STUBBORN: &str = r#"
trap '' TERM INT HUP
beat() { while :; do echo "$1" >>"$BEATS" || exit; sleep 0.02; done; }
beat child & beat leader
"#;

/// A stubborn command under a lock.
struct Run {
    child: Child,
    beats: PathBuf,
    // It is removed with this value.
    _folder: tempfile::TempDir,
}

impl Run {
    /// Starts it, and waits until both of its processes run.
    fn stubborn(nodes: &Nodes, arguments: &[&str]) -> Self {
        Self::started_by(nodes, arguments, &[])
    }

    /// The same, started by another program.
    fn started_by(nodes: &Nodes, arguments: &[&str], program: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let beats = folder.path().join("beats");
        let mut command = nodes.command(arguments);
        command
            .arg("--")
            .args(program)
            .args(["sh", "-c", STUBBORN])
            .env("BEATS", &beats);
        let child = command.spawn().unwrap();
        let run = Self {
            child,
            beats,
            _folder: folder,
        };
        eventually("both run", || {
            let beats = fs::read_to_string(&run.beats).unwrap_or_default();
            beats.contains("leader") && beats.contains("child")
        });
        run
    }

    fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    /// Panics if one of its processes still says that it lives.
    fn is_over(&self) {
        let before = beats(&self.beats);
        thread::sleep(Duration::from_millis(300));
        assert_eq!(beats(&self.beats), before, "it goes on");
    }

    /// Waits for the exit code.
    fn code(&mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // The supervisor ends the rest.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn beats(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |beats| beats.len())
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Acquires as soon as anybody can.
async fn next(client: &Redlock) -> LockGuard {
    let wait = Wait::UpTo(Duration::from_secs(20));
    let options = AcquireOptions::new().wait(wait);
    client.acquire_with("job", options).await.unwrap()
}

/// The verb with these arguments before the command.
fn under(nodes: &Nodes, arguments: &[&str], command: &[&str]) -> Command {
    nodes.command(&[&["run", "job"], arguments, &["--"], command].concat())
}

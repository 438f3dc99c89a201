//! Programs that a run needs, from Debian's packages, where that needs no question to anyone.

use std::process::{Command, Stdio};

/// Installs packages of Debian's if this machine lets us; returns whether that was tried.
pub(crate) fn debian(step: &str, packages: &[&str]) -> bool {
    let Some(mut shell) = Installer::of_this_machine().shell(packages) else {
        return false;
    };
    let names = packages.join(" ");
    eprintln!(
        "== {step}: none found; installs one: apt-get update, apt-get install {names}; no service is started"
    );
    let installed = shell.stdin(Stdio::null()).status();
    if !installed.is_ok_and(|status| status.success()) {
        eprintln!("== {step}: the installation failed");
    }
    true
}

/// The account that can install a package here without a password.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Installer {
    Root,
    Sudo,
    Nobody,
}

impl Installer {
    fn of_this_machine() -> Self {
        Self::among(succeeds)
    }

    fn among(mut succeeds: impl FnMut(&str, &[&str]) -> bool) -> Self {
        if !succeeds("apt-get", &["--version"]) {
            Self::Nobody
        } else if succeeds("sh", &["-c", "test \"$(id -u)\" = 0"]) {
            Self::Root
        } else if succeeds("sudo", &["-n", "true"]) {
            Self::Sudo
        } else {
            Self::Nobody
        }
    }

    fn shell(self, packages: &[&str]) -> Option<Command> {
        let mut command = match self {
            Self::Root => Command::new("sh"),
            Self::Sudo => {
                let mut sudo = Command::new("sudo");
                sudo.args(["-n", "sh"]);
                sudo
            }
            Self::Nobody => return None,
        };
        command.args(["-c", INSTALL, "install.sh"]).args(packages);
        Some(command)
    }
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

const INSTALL: &str = include_str!("install.sh");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_installs_without_sudo() {
        assert_eq!(Installer::among(|_, _| true), Installer::Root);
    }

    #[test]
    fn others_install_with_a_sudo_that_asks_nothing() {
        assert_eq!(
            Installer::among(|program, _| program != "sh"),
            Installer::Sudo
        );
        assert_eq!(
            Installer::among(|program, _| program == "apt-get"),
            Installer::Nobody
        );
    }

    #[test]
    fn nothing_is_run_where_there_is_no_apt() {
        let installer = Installer::among(|program, _| program != "apt-get");
        assert_eq!(installer, Installer::Nobody);
        assert!(installer.shell(&["redis-server"]).is_none());
    }
}

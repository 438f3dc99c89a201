//! A browser for the tests of the console: found, or installed where that needs no question to anyone.

use std::{
    env,
    ffi::OsString,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{install, step::Failed};

/// Finds a browser, and installs one if there is none and this machine lets us.
pub(crate) fn ensure() -> Result<PathBuf, Failed> {
    if let Some(named) = env::var_os(BROWSER_VARIABLE).map(PathBuf::from) {
        // If one is named that is not there, no installation makes that right.
        let is_there = named.is_file();
        let message = format!(
            "{BROWSER_VARIABLE} names {}, which is not a program",
            named.display()
        );
        return if is_there {
            Ok(named)
        } else {
            Err(Failed(message))
        };
    }
    // Without a font, a browser without a window draws no letter.
    let found = find().or_else(|| {
        let installed = install::debian("browser", &["chromium", "fonts-dejavu-core"]);
        installed.then(find).flatten()
    });
    found.ok_or_else(|| Failed(MISSING.to_owned()))
}

/// Whether the tests that cargo's arguments select may need a browser.
pub(crate) fn is_needed_by(arguments: &[OsString]) -> bool {
    let mut packages = arguments
        .windows(2)
        .filter(|pair| pair[0] == "-p" || pair[0] == "--package")
        .map(|pair| &pair[1])
        .peekable();
    packages.peek().is_none() || packages.any(|package| package == PACKAGE)
}

fn find() -> Option<PathBuf> {
    let found = Command::new("sh")
        .args(["-c", SEARCH])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let path = String::from_utf8(found.stdout).ok()?;
    let path = path.lines().next()?;
    Some(path.into())
}

/// The environment variable that names the browser's program by its path.
const BROWSER_VARIABLE: &str = "REDLOCK_TEST_BROWSER";

/// The package whose tests drive a browser.
const PACKAGE: &str = "redlock-cli";

const SEARCH: &str = "for name in chromium chromium-browser google-chrome google-chrome-stable \
                      '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'; \
                      do command -v \"$name\" && exit; done";

const MISSING: &str = "the tests of the console need a browser: neither chromium nor google-chrome is on PATH; to install one, \
                       type: sudo apt-get install chromium fonts-dejavu-core; to name another, set REDLOCK_TEST_BROWSER";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tests_of_the_command_need_a_browser() {
        let needs = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            is_needed_by(&arguments)
        };
        assert!(needs(&[]));
        assert!(needs(&["--test", "console"]));
        assert!(needs(&["-p", "redlock-core", "--package", "redlock-cli"]));
        assert!(!needs(&["-p", "redlock-core", "--", "quorum"]));
    }
}

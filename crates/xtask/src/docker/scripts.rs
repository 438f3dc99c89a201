//! The scripts, read by `shellcheck`.

use super::Tool;
use crate::{
    step::{Failed, Step},
    unchecked::Unchecked,
};

pub(super) fn check(unchecked: &mut Unchecked) -> Result<(), Failed> {
    if !SHELLCHECK.is_there("scripts", unchecked)? {
        return Ok(());
    }
    let scripts = "docker/delayed-restart.sh docker/votes.sh crates/xtask/src/install.sh";
    Step::program("scripts", "shellcheck", scripts).run()
}

const SHELLCHECK: Tool = Tool {
    program: "shellcheck",
    package: "shellcheck",
};

//! The units, read by systemd.

use std::{
    fs,
    process::{Command, Stdio},
};

use super::{Tool, failed, read, scratch, write};
use crate::{
    step::{Failed, root},
    unchecked::Unchecked,
};

/// Has systemd verify the units, with what delays a start and without.
///
/// It only warns of a setting that it does not know, so that what it says at all is an error.
pub(super) fn check(unchecked: &mut Unchecked) -> Result<(), Failed> {
    if !SYSTEMD.is_there("units", unchecked)? {
        return Ok(());
    }
    for drop_ins in [&[][..], &["delayed.conf"]] {
        verify(drop_ins)?;
    }
    eprintln!("== units: fine");
    Ok(())
}

fn verify(drop_ins: &[&str]) -> Result<(), Failed> {
    let folder = scratch("units")?;
    let mut verify = Command::new("systemd-analyze");
    verify.arg("verify");
    for unit in ["redlock-node.service", "redlock-watch.service"] {
        let mut text = read(&format!("docker/systemd/{unit}"))?;
        // They are where the units say on the machines that these are for.
        for program in ["/usr/bin/redis-server", "/usr/local/bin/redlock"] {
            text = text.replace(program, "/bin/true");
        }
        write(&folder.join(unit), &text)?;
        verify.arg(folder.join(unit));
    }
    let own = folder.join("redlock-node.service.d");
    fs::create_dir(&own).map_err(|error| failed(&own, &error))?;
    for drop_in in drop_ins {
        write(
            &own.join(drop_in),
            &read(&format!("docker/systemd/{drop_in}"))?,
        )?;
    }
    eprintln!("== units: systemd-analyze verify, with {drop_ins:?}");
    let output = verify.current_dir(root()).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failed(format!("systemd-analyze: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() && said.is_empty() {
        return Ok(());
    }
    Err(Failed(format!("{said}== units failed ({})", output.status)))
}

const SYSTEMD: Tool = Tool {
    program: "systemd-analyze",
    package: "systemd",
};

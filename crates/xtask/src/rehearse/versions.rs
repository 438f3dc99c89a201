//! The two versions of the crates: copies of the sources.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::step::{Failed, root};

/// Copies the sources of a revision to `folder`; returns the version that its manifest has.
pub(super) fn copy(revision: &str, folder: &Path) -> Result<String, Failed> {
    let copied = fs::create_dir_all(folder).and_then(|()| {
        let mut archive = Command::new("git")
            .args(["archive", "--format=tar", revision])
            .current_dir(root())
            .stdout(Stdio::piped())
            .spawn()?;
        let sources = archive.stdout.take().expect("it is piped");
        let mut unpack = Command::new("tar");
        let unpack = unpack
            .arg("-x")
            .current_dir(folder)
            .stdin(sources)
            .status()?;
        Ok(archive.wait()?.success() && unpack.success())
    });
    match copied {
        Ok(true) => version(&manifest(folder)?),
        Ok(false) => Err(Failed(format!("git has no sources of {revision}"))),
        Err(error) => Err(Failed(format!("{}: {error}", folder.display()))),
    }
}

/// Gives the crates of a copy this version.
pub(super) fn rename(folder: &Path, version: &str) -> Result<(), Failed> {
    let renamed = renamed(&manifest(folder)?, version);
    let path = folder.join("Cargo.toml");
    fs::write(&path, renamed).map_err(|error| Failed(format!("{}: {error}", path.display())))
}

/// Returns the version after another one, in which nothing but its last number is greater.
pub(super) fn next(version: &str) -> Result<String, Failed> {
    let parts = version.rsplit_once('.');
    let parts = parts.and_then(|(most, last)| Some((most, last.parse::<u64>().ok()?)));
    let (most, last) = parts.ok_or_else(|| Failed(format!("no version: {version}")))?;
    Ok(format!("{most}.{}", last + 1))
}

fn manifest(folder: &Path) -> Result<String, Failed> {
    let path = folder.join("Cargo.toml");
    fs::read_to_string(&path).map_err(|error| Failed(format!("{}: {error}", path.display())))
}

fn version(manifest: &str) -> Result<String, Failed> {
    let mut lines = manifest.lines();
    let version = lines.find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    let version = version.ok_or_else(|| Failed("the workspace has no version".to_owned()))?;
    Ok(version.to_owned())
}

/// Returns the workspace's manifest with another version of its members.
fn renamed(manifest: &str, version: &str) -> String {
    let mut renamed = String::new();
    for line in manifest.lines() {
        let ours = line.starts_with("redlock-") && line.contains("path = \"crates/");
        match line.split_once("version = \"") {
            Some((before, after)) if ours || before.is_empty() => {
                let (_, rest) = after.split_once('"').unwrap_or_default();
                renamed += &format!("{before}version = \"{version}\"");
                renamed += rest;
            }
            _ => renamed += line,
        }
        renamed.push('\n');
    }
    renamed
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;

    #[test]
    fn all_crates_of_the_workspace_get_the_version_and_no_other_crate() {
        let manifest = manifest(&root()).unwrap();
        let (before, after): (Table, Table) = (
            manifest.parse().unwrap(),
            renamed(&manifest, "9.0.1").parse().unwrap(),
        );
        let [before, after] = [&before, &after].map(|all| all["workspace"].as_table().unwrap());
        assert_eq!(after["package"]["version"].as_str(), Some("9.0.1"));
        let dependencies = after["dependencies"].as_table().unwrap();
        let mut ours = 0;
        for (name, how) in dependencies {
            if how.get("path").is_some() {
                assert_eq!(how["version"].as_str(), Some("9.0.1"), "{name}");
                ours += 1;
            } else {
                assert_eq!(how, &before["dependencies"][name]);
            }
        }
        assert_eq!(
            (ours, dependencies.len()),
            (7, before["dependencies"].as_table().unwrap().len())
        );
        assert_eq!(after["members"], before["members"]);
    }

    #[test]
    fn the_version_after_another_is_greater_in_its_last_number() {
        assert_eq!(next("0.1.9").unwrap(), "0.1.10");
        assert!(next("0.1.x").is_err() && next("one").is_err());
    }
}

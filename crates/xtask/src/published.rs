//! The crates that a registry gets, and their packages.

use std::{error::Error, fs, io::ErrorKind, path::Path, process::Command};

use crate::step::{Failed, Step, root, target};

/// Returns the names of the crates that may be published, which are those of their folders.
pub(crate) fn crates() -> Result<Vec<String>, Failed> {
    let folder = root().join("crates");
    let failed = |error: std::io::Error| Failed(format!("{}: {error}", folder.display()));
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(manifest) = fs::read_to_string(entry.path().join("Cargo.toml")) else {
            continue;
        };
        if !manifest.lines().any(|line| line == "publish = false") {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the arguments that name them all to cargo.
pub(crate) fn packages() -> Result<String, Failed> {
    let arguments: Vec<_> = crates()?
        .iter()
        .map(|name| format!("--package {name}"))
        .collect();
    Ok(arguments.join(" "))
}

/// Makes the packages, and checks each by what is in it, against the packages of the others.
pub(crate) fn package() -> Result<(), Failed> {
    // What is to be committed is packaged too: the check comes before the commit.
    let package = format!(
        "package --locked --allow-dirty --no-verify --quiet {}",
        packages()?
    );
    Step::cargo("packages", &package).run()?;
    let folder = target().join("package/unpacked");
    unpack(&folder).map_err(|error| Failed(format!("{}: {error}", folder.display())))?;
    // Without the network: all that it needs was there for the workspace itself.
    Step::cargo("packages, unpacked", "check --offline --quiet --workspace")
        .arguments(&["--manifest-path".into(), folder.join("Cargo.toml")])
        .arguments(&["--target-dir".into(), target()])
        .alone("cargo xtask package")
        .run()
}

/// Makes a workspace of what is in the packages.
///
/// Cargo's own verification takes packages of the same version for the same, also when they have changed since.
fn unpack(folder: &Path) -> Result<(), Box<dyn Error>> {
    let version = of_workspace("version").map_err(|Failed(message)| message)?;
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(folder)?,
    }
    let names = crates().map_err(|Failed(message)| message)?;
    let mut manifests = String::new();
    for name in &names {
        let package = format!("../{name}-{version}.crate");
        // With the time of now: all files of a package have one time, by which cargo would not see a change.
        let unpacked = Command::new("tar")
            .args(["-xmzf", &package])
            .current_dir(folder)
            .status()?;
        if !unpacked.success() {
            return Err(format!("tar does not unpack {package}").into());
        }
        let manifest = folder.join(format!("{name}-{version}/Cargo.toml"));
        manifests += &fs::read_to_string(manifest)?;
    }
    let members: Vec<_> = names
        .iter()
        .map(|name| format!("\"{name}-{version}\""))
        .collect();
    let mut workspace = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{}]\n\n[patch.crates-io]\n",
        members.join(", ")
    );
    for name in &names {
        if manifests.contains(&format!("dependencies.{name}]\n")) {
            workspace += &format!("{name} = {{ path = \"{name}-{version}\" }}\n");
        }
    }
    fs::write(folder.join("Cargo.toml"), workspace)?;
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(())
}

/// Returns the oldest release of Rust that they build with, such as 1.89.
pub(crate) fn oldest_release() -> Result<String, Failed> {
    of_workspace("rust-version")
}

/// Returns what the members of the workspace have in common.
fn of_workspace(key: &str) -> Result<String, Failed> {
    let path = root().join("Cargo.toml");
    let manifest = fs::read_to_string(&path)
        .map_err(|error| Failed(format!("{}: {error}", path.display())))?;
    let mut lines = manifest.lines();
    let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    value
        .map(|value| value.trim_matches('"').to_owned())
        .ok_or_else(|| Failed(format!("{}: no {key}", path.display())))
}

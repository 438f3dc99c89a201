//! The crates that a registry gets, and their packages.

use std::{
    error::Error,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
};

use crate::step::{Failed, Step, root, target};

/// Returns the names of the crates that may be published, which are those of their folders.
pub(crate) fn crates() -> Result<Vec<String>, Failed> {
    crates_of(&root())
}

/// Returns the names of the crates of these sources that may be published.
fn crates_of(sources: &Path) -> Result<Vec<String>, Failed> {
    let folder = sources.join("crates");
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

/// Returns the arguments that name them to cargo.
fn arguments(crates: &[String]) -> String {
    let arguments = crates.iter().map(|name| format!("--package {name}"));
    arguments.collect::<Vec<_>>().join(" ")
}

/// Makes the packages, and checks each by what is in it, against the packages of the others.
pub(crate) fn package() -> Result<(), Failed> {
    let folder = target().join("package/unpacked");
    unpack(&root(), &target(), &folder)?;
    // Without the network: all that it needs was there for the workspace itself.
    Step::cargo("packages, unpacked", "check --offline --quiet --workspace")
        .arguments(&["--manifest-path".into(), folder.join("Cargo.toml")])
        .arguments(&["--target-dir".into(), target()])
        .alone("cargo xtask package")
        .run()
}

/// Makes the packages of these sources, and a workspace in `folder` of what is in them; returns the name of each, and where
/// it is.
///
/// Cargo's own verification takes packages of the same version for the same, also when they have changed since.
pub(crate) fn unpack(
    sources: &Path,
    build: &Path,
    folder: &Path,
) -> Result<Vec<(String, PathBuf)>, Failed> {
    let names = crates_of(sources)?;
    // What is to be committed is packaged too: the check comes before the commit.
    let package = format!(
        "package --locked --allow-dirty --no-verify --quiet {}",
        arguments(&names)
    );
    Step::cargo("packages", &package)
        .within(sources)
        .variable("CARGO_TARGET_DIR", build)
        .run()?;
    let version = of_workspace(sources, "version")?;
    let unpacked = names.into_iter().map(|name| {
        let place = folder.join(format!("{name}-{version}"));
        (name, place)
    });
    let unpacked: Vec<_> = unpacked.collect();
    let archives = build.join("package");
    write_workspace(sources, &archives, folder, &unpacked)
        .map_err(|error| Failed(format!("{}: {error}", folder.display())))?;
    Ok(unpacked)
}

fn write_workspace(
    sources: &Path,
    archives: &Path,
    folder: &Path,
    packages: &[(String, PathBuf)],
) -> Result<(), Box<dyn Error>> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(folder)?,
    }
    let mut workspace = "[workspace]\nresolver = \"3\"\nmembers = [\"redlock-*\"]\n".to_owned();
    let mut manifests = String::new();
    for (_, place) in packages {
        let archive = place.file_name().unwrap_or_default().to_string_lossy();
        let archive = archives.join(format!("{archive}.crate"));
        // With the time of now: all files of a package have one time, by which cargo would not see a change.
        let mut tar = Command::new("tar");
        tar.arg("-xmzf").arg(&archive).current_dir(folder);
        if !tar.status()?.success() {
            return Err(format!("tar does not unpack {}", archive.display()).into());
        }
        manifests += &fs::read_to_string(place.join("Cargo.toml"))?;
    }
    let used = |name: &str| manifests.contains(&format!("dependencies.{name}]\n"));
    let used = packages.iter().filter(|(name, _)| used(name));
    workspace += &patch(used);
    fs::write(folder.join("Cargo.toml"), workspace)?;
    fs::copy(sources.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(())
}

/// Returns the part of a manifest that has these packages in place of those of the registry.
pub(crate) fn patch<'a>(packages: impl IntoIterator<Item = &'a (String, PathBuf)>) -> String {
    let lines = packages
        .into_iter()
        .map(|(name, place)| format!("{name} = {{ path = {:?} }}\n", place.to_string_lossy()));
    format!("\n[patch.crates-io]\n{}", lines.collect::<String>())
}

/// Returns what the members of the workspace have in common.
fn of_workspace(sources: &Path, key: &str) -> Result<String, Failed> {
    let path = sources.join("Cargo.toml");
    let manifest = fs::read_to_string(&path)
        .map_err(|error| Failed(format!("{}: {error}", path.display())))?;
    let mut lines = manifest.lines();
    let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    value
        .map(|value| value.trim_matches('"').to_owned())
        .ok_or_else(|| Failed(format!("{}: no {key}", path.display())))
}

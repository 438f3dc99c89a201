//! The features of the libraries: each compiles with none, with each one alone and with all, without a warning.
//!
//! One at a time: checked together, crates would get the features that others of the workspace, such as the examples,
//! ask of them and of their dependencies.

use std::fs;

use crate::{
    published,
    step::{Failed, Step, root},
};

/// Checks each published library with these sets of its features.
pub(crate) fn run() -> Result<(), Failed> {
    for name in published::crates()? {
        let folder = root().join("crates").join(&name);
        // The command passes its feature on, and has more dependencies than all libraries together.
        if !folder.join("src/lib.rs").exists() {
            continue;
        }
        let path = folder.join("Cargo.toml");
        let manifest = fs::read_to_string(&path)
            .map_err(|error| Failed(format!("{}: {error}", path.display())))?;
        for features in sets(&features(&manifest)) {
            let check = format!(
                "clippy --locked --package {name} --no-default-features --features={features} -- -D warnings"
            );
            Step::cargo("features", &check).run()?;
        }
    }
    Ok(())
}

/// The features that a manifest defines, but for `default`, which is one of their sets.
fn features(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines().skip_while(|line| *line != "[features]");
    let defined = lines.skip(1).take_while(|line| !line.starts_with('['));
    let names = defined.filter_map(|line| line.split_once(" = [").map(|(name, _)| name));
    let is_name = |name: &&str| !name.starts_with('#') && *name != "default";
    names.filter(is_name).collect()
}

/// None of the features, each one alone, and all of them, as cargo reads them.
fn sets(features: &[&str]) -> Vec<String> {
    let mut sets = vec![String::new()];
    sets.extend(features.iter().copied().map(str::to_owned));
    if features.len() > 1 {
        sets.push(features.join(","));
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_without_comments_and_without_what_is_chosen_by_default() {
        let manifest = "[package]\nname = \"a\"\n\n[features]\ndefault = [\"tls\"]\n# TLS = [x]\ntls = [\"dep:t\"]\n\nmetrics = []\n\n[dependencies]\nb = [1]\n";
        assert_eq!(features(manifest), ["tls", "metrics"]);
        assert_eq!(features("[package]\n"), [""; 0]);
    }

    #[test]
    fn each_feature_is_alone_once() {
        assert_eq!(sets(&[]), [""]);
        assert_eq!(sets(&["a"]), ["", "a"]);
        assert_eq!(sets(&["a", "b"]), ["", "a", "b", "a,b"]);
    }
}

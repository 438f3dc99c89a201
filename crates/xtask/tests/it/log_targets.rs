//! The targets by which operators choose log lines stay as they are, wherever the code moves.

use std::{fs, path::Path};

/// The macros that log something without saying under which target.
fn without_a_target(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            without_a_target(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).expect("it is text");
            for name in [
                "trace!(", "debug!(", "info!(", "warn!(", "error!(", "_span!(",
            ] {
                let uses = text.split(name).skip(1);
                let untargeted = uses.filter(|rest| !rest.trim_start().starts_with("target:"));
                found.extend(untargeted.map(|_| format!("{}: {name}", path.display())));
            }
        }
    }
}

#[test]
fn each_log_line_has_a_target_that_is_no_module_path() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for name in ["redlock-core", "redlock-tower", "redlock-cron"] {
        without_a_target(&crates.join(name).join("src"), &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
}

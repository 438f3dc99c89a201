//! What a registry shows of each published crate is there, and what is not meant for one stays here.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use toml::{Table, Value};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn manifest(folder: &Path) -> Table {
    let path = folder.join("Cargo.toml");
    let text = fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folder and the `package` of each member of the workspace.
fn members() -> Vec<(PathBuf, Table)> {
    let workspace = manifest(&root());
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let folders = members
        .iter()
        .map(|member| root().join(member.as_str().unwrap()));
    folders
        .map(|folder| {
            let package = manifest(&folder)["package"].as_table().unwrap().clone();
            (folder, package)
        })
        .collect()
}

fn published() -> BTreeMap<String, (PathBuf, Table)> {
    let members = members().into_iter();
    let published = members.filter(|(_, package)| package.get("publish").is_none());
    published
        .map(|(folder, package)| {
            let name = package["name"].as_str().unwrap().to_owned();
            (name, (folder, package))
        })
        .collect()
}

#[test]
fn what_users_depend_on_and_the_command_are_published_and_nothing_else() {
    let names: Vec<_> = published().into_keys().collect();
    let expected = [
        "redlock-cli",
        "redlock-console",
        "redlock-core",
        "redlock-cron",
        "redlock-proto",
        "redlock-redis",
        "redlock-sandbox",
        "redlock-sim",
        "redlock-tower",
    ];
    assert_eq!(names, expected);
    for (folder, package) in members() {
        let publish = package.get("publish").map(Value::as_bool);
        let is_meant = matches!(publish, None | Some(Some(false)));
        assert!(is_meant, "{}: {publish:?}", folder.display());
    }
}

#[test]
fn each_published_crate_has_what_a_registry_shows() {
    for (name, (folder, package)) in published() {
        let text = |key: &str| package.get(key).and_then(Value::as_str);
        let words = |key: &str| {
            let words = package.get(key).and_then(Value::as_array);
            words.map(Vec::len).unwrap_or_default()
        };
        let description = text("description").unwrap_or_default();
        assert!(
            description.len() > 20 && !description.ends_with('.'),
            "{name}: {description:?}"
        );
        assert!((3..=5).contains(&words("keywords")), "{name}");
        assert!((1..=5).contains(&words("categories")), "{name}");
        for key in ["version", "edition", "rust-version", "license"] {
            let is_inherited = package.get(key).and_then(|value| value.get("workspace"));
            assert_eq!(
                is_inherited.and_then(Value::as_bool),
                Some(true),
                "{name}: {key}"
            );
        }
        assert_eq!(text("readme"), Some("README.md"), "{name}");
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        assert!(readme.starts_with("# "), "{name}");
        assert!(
            readme.contains("MIT or Apache-2.0, at your option."),
            "{name}"
        );
        for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let own = fs::read_to_string(folder.join(license)).unwrap();
            assert_eq!(own, fs::read_to_string(root().join(license)).unwrap());
        }
    }
}

/// The documents of a package: its README, and the pages and guides of its documentation.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut documents = vec![folder.join("README.md")];
    let mut folders = vec![folder.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                documents.push(path);
            }
        }
    }
    documents
}

#[test]
fn the_documents_of_a_package_stand_alone() {
    let workspace = manifest(&root());
    let workspace = &workspace["workspace"]["package"];
    let (version, _) = workspace["version"]
        .as_str()
        .unwrap()
        .rsplit_once('.')
        .unwrap();
    let rust = workspace["rust-version"].as_str().unwrap();
    for (name, (folder, _)) in published() {
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        let builds = format!("builds with Rust {rust} and later");
        assert!(readme.contains(&builds), "{name}: {builds}");
        if !["redlock-cli", "redlock-proto", "redlock-redis"].contains(&&*name) {
            let asks = [
                format!("\n{name} = \""),
                format!("\n{name} = {{ version = \""),
            ];
            assert!(asks.iter().any(|line| readme.contains(line)), "{name}");
        }
        for document in documents(&folder) {
            let text = fs::read_to_string(&document).unwrap();
            let place = document.display();
            // The package has nothing of its surroundings.
            assert!(!text.contains("](../"), "{place} leads out of its package");
            for line in text.lines().filter(|line| line.starts_with("redlock-")) {
                let Some((_, asked)) = line.split_once(" = ") else {
                    continue;
                };
                let asks = format!("\"{version}\"");
                assert!(
                    asked.contains(&asks),
                    "{place} asks for another version: {line}"
                );
            }
        }
    }
}

#[test]
fn the_programs_of_a_release_are_where_cargo_binstall_looks() {
    let (_, package) = &published()["redlock-cli"];
    let binstall = &package["metadata"]["binstall"];
    let text = |key: &str| binstall[key].as_str().unwrap();
    assert_eq!(text("pkg-fmt"), "tgz");
    let url = text("pkg-url");
    // The registry's page has the address, and this repeats none.
    let (before, file) = url.rsplit_once('/').unwrap();
    assert_eq!(before, "{ repo }/releases/download/v{ version }");
    let file = file.replace("{ target }", "$TARGET");
    let program = text("bin-dir").replace("{ target }", "$TARGET");
    let (archive, program) = (
        file.strip_suffix(".tar.gz").unwrap(),
        program.split_once('/').unwrap(),
    );
    assert_eq!(program, (archive, "{ bin }{ binary-ext }"));
    let workflow = fs::read_to_string(root().join(".github/workflows/release.yml")).unwrap();
    for command in [
        format!("mkdir \"{archive}\"\n"),
        format!(
            "cp \"target/$TARGET/release/redlock\" LICENSE-* crates/redlock-cli/README.md \"{archive}\"\n"
        ),
        format!("tar -czf \"{file}\" \"{archive}\"\n"),
        format!("gh release upload \"$GITHUB_REF_NAME\" \"{file}\""),
    ] {
        assert!(workflow.contains(&command), "{command}");
    }
    assert!(workflow.contains("tags: ['v*']"));
}

#[test]
fn the_image_of_a_release_is_that_of_the_command() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (workflow, dockerfile) = (
        read(".github/workflows/release.yml"),
        read("docker/Dockerfile"),
    );
    assert!(workflow.contains("--file docker/Dockerfile --target redlock "));
    assert!(
        dockerfile.contains(" AS redlock\n") && dockerfile.ends_with("ENTRYPOINT [\"redlock\"]\n")
    );
}

#[test]
fn the_checks_of_a_change_are_those_of_each_machine_and_all_libraries_have_a_baseline() {
    let workflow = fs::read_to_string(root().join(".github/workflows/ci.yml")).unwrap();
    assert!(workflow.contains("- run: .ci/run\n"));
    let (compiled, compared) = workflow.split_once("cargo semver-checks").unwrap();
    for (name, (folder, _)) in published() {
        let is_library = folder.join("src/lib.rs").exists();
        let named = format!("-p {name}");
        assert!(compiled.contains(&named), "{name}");
        assert_eq!(compared.contains(&named), is_library, "{name}");
    }
}

#[test]
fn features_are_on_the_pages_of_the_documentation() {
    for (name, (folder, package)) in published() {
        let lib = fs::read_to_string(folder.join("src/lib.rs")).unwrap_or_default();
        if lib.is_empty() {
            continue;
        }
        let hosted = &package["metadata"]["docs"]["rs"];
        assert_eq!(hosted["all-features"].as_bool(), Some(true), "{name}");
        let has_features = manifest(&folder).contains_key("features");
        // Says beside each item which feature it takes.
        let labels = lib.contains("#![cfg_attr(docsrs, feature(doc_cfg))]\n");
        assert_eq!(labels, has_features, "{name}");
    }
}

#[test]
fn what_is_published_asks_for_published_crates_by_version() {
    let workspace = manifest(&root());
    let workspace = workspace["workspace"].as_table().unwrap();
    let version = &workspace["package"]["version"];
    let shared = workspace["dependencies"].as_table().unwrap();
    for (name, (folder, _)) in published() {
        let manifest = manifest(&folder);
        for kind in ["dependencies", "dev-dependencies"] {
            let asked = manifest.get(kind).and_then(Value::as_table);
            for (other, how) in asked.into_iter().flatten() {
                if !other.starts_with("redlock-") {
                    continue;
                }
                if *other == name || !published().contains_key(other) {
                    // A package cannot ask for itself or for what is not published; without a version, it is left out.
                    assert_eq!(kind, "dev-dependencies");
                    assert!(
                        how.get("workspace").is_none() && how.get("version").is_none(),
                        "{name} asks for {other}"
                    );
                    continue;
                }
                assert_eq!(
                    how["workspace"].as_bool(),
                    Some(true),
                    "{name} asks for {other}"
                );
                assert_eq!(shared[other].get("version"), Some(version), "{other}");
            }
        }
    }
}

//! What a newcomer makes of the documents: a project with the README's service and the guide's tests, on packaged crates.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use crate::{published::patch, step::Failed};

/// Writes the project to `folder`, from the documents in `sources`: it has nothing else of the checkout.
pub(super) fn write(
    folder: &Path,
    sources: &Path,
    version: &str,
    packages: &[(String, PathBuf)],
) -> Result<(), Failed> {
    let read = |path: &str| {
        let path = sources.join(path);
        fs::read_to_string(&path).map_err(|error| failed(&path, &error))
    };
    let (readme, guide) = (read(README)?, read(GUIDE)?);
    let files = [
        (
            "Cargo.toml",
            manifest(&readme, &guide, version)? + &patch(packages),
        ),
        ("src/main.rs", service(&readme)?),
        ("src/bin/replica.rs", REPLICA.to_owned()),
        ("tests/guide.rs", examples(&guide)),
    ];
    for (path, text) in files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| failed(parent, &error))?;
        fs::write(&path, text).map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}

/// Returns the manifest: the dependencies that the README and the guide name, as from the registry.
fn manifest(readme: &str, guide: &str, version: &str) -> Result<String, Failed> {
    let mut manifest = "[package]\nname = \"newcomer\"\nedition = \"2024\"\n".to_owned();
    for (document, text) in [(README, readme), (GUIDE, guide)] {
        let [block] = &blocks(text, "toml")[..] else {
            return Err(Failed(format!("{document}: not one block of dependencies")));
        };
        for line in block.lines() {
            let _ = writeln!(manifest, "{}", published(line, version));
        }
    }
    // What the documents' service and tests do not use is fetched and compiled too.
    for unused in [
        "redlock-sandbox = \"0\"",
        "redlock-sim = { features = [\"client\"] }",
    ] {
        let _ = writeln!(manifest, "{}", published(unused, version));
    }
    Ok(manifest + REST)
}

/// Returns a line of dependencies; if it is one of ours, as one of `version`.
fn published(line: &str, version: &str) -> String {
    let Some((name, asked)) = line.split_once(" = ") else {
        return line.to_owned();
    };
    if !name.starts_with("redlock-") {
        return line.to_owned();
    }
    let features = asked.split_once("features = [");
    let features = features.and_then(|(_, after)| after.split_once(']'));
    let features = features.map_or("", |(features, _)| features);
    format!("{name} = {{ version = \"={version}\", features = [{features}] }}")
}

/// Returns the README's first program.
fn service(readme: &str) -> Result<String, Failed> {
    let mut programs = blocks(readme, "rust").into_iter();
    let service = programs.find(|block| block.contains("fn main()"));
    service.ok_or_else(|| Failed(format!("{README}: no program")))
}

/// Returns the guide's examples as tests, hidden lines included, each in a module.
fn examples(guide: &str) -> String {
    let mut tests = String::new();
    for (number, block) in blocks(guide, "").iter().enumerate() {
        let _ = writeln!(tests, "mod example_{number} {{");
        for line in block.lines() {
            let line = if line == "#" { "" } else { line };
            let line = line.strip_prefix("# ").unwrap_or(line);
            let line = line.replace("#[tokio::main(", "#[tokio::test(");
            let line = line.replace("async fn main(", "async fn works(");
            let _ = writeln!(tests, "{line}");
        }
        let _ = writeln!(tests, "}}");
    }
    tests
}

/// Returns the blocks of a document whose fences name this language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let (mut blocks, mut block) = (Vec::new(), None::<(bool, String)>);
    for line in document.lines() {
        let fence = line.strip_prefix("```");
        match (&mut block, fence) {
            (None, Some(named)) => block = Some((named == language, String::new())),
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (Some(_), Some(_)) => {
                let ended = block.take().filter(|(is_wanted, _)| *is_wanted);
                blocks.extend(ended.map(|(_, text)| text));
            }
            (None, None) => {}
        }
    }
    blocks
}

fn failed(path: &Path, error: &std::io::Error) -> Failed {
    Failed(format!("{}: {error}", path.display()))
}

const README: &str = "README.md";

const GUIDE: &str = "crates/redlock-tower/docs/guide/testing.md";

/// The program of the fleet that is upgraded.
const REPLICA: &str = include_str!("../../../../tests/src/bin/replica.rs");

/// What the program of the fleet needs beside, and that the project is a workspace of its own.
const REST: &str = "
[target.'cfg(unix)'.dependencies]
tokio = { version = \"1\", features = [\"signal\", \"time\"] }

[workspace]
";

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;
    use crate::step::root;

    #[test]
    fn the_documents_make_a_project_on_the_published_crates_alone() {
        let folder = tempfile::tempdir().unwrap();
        let packages = [("redlock-core".to_owned(), PathBuf::from("packages/core"))];
        write(folder.path(), &root(), "0.1.1", &packages).unwrap();
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
        let manifest: Table = read("Cargo.toml").parse().unwrap();
        let mut ours = 0;
        for kind in ["dependencies", "dev-dependencies"] {
            for (name, asked) in manifest[kind].as_table().unwrap() {
                assert!(asked.get("path").is_none(), "{name}");
                if name.starts_with("redlock-") {
                    assert_eq!(asked["version"].as_str(), Some("=0.1.1"), "{name}");
                    ours += 1;
                }
            }
        }
        assert!(ours >= 6, "{manifest:#?}");
        let patch = &manifest["patch"]["crates-io"]["redlock-core"];
        assert_eq!(patch["path"].as_str(), Some("packages/core"));
        assert!(read("src/main.rs").contains("#[tokio::main]\nasync fn main()"));
        let tests = read("tests/guide.rs");
        let count = tests
            .matches("#[tokio::test(flavor = \"current_thread\"")
            .count();
        assert!(
            count >= 3 && count == tests.matches("mod example_").count(),
            "{tests}"
        );
    }

    #[test]
    fn only_our_crates_have_the_version_of_the_release() {
        let ours = published(
            "redlock-tower = { path = \"a\", features = [\"axum\"] }",
            "2.0.0",
        );
        let asked = "version = \"=2.0.0\", features = [\"axum\"]";
        assert_eq!(ours, format!("redlock-tower = {{ {asked} }}"));
        for line in ["axum = \"0.8\"", "[dependencies]", ""] {
            assert_eq!(published(line, "2.0.0"), line);
        }
        assert!(published("redlock-core = \"0.1\"", "0.1.1").contains("\"=0.1.1\""));
    }

    #[test]
    fn a_block_is_found_by_its_language() {
        let document = "a\n```rust\none\n```\n```\ntwo\n\nthree\n```\n```toml\nfour\n```\n";
        assert_eq!(blocks(document, ""), ["two\n\nthree\n"]);
        assert_eq!(blocks(document, "toml"), ["four\n"]);
        let test =
            examples("```\n# #[tokio::main(flavor = \"x\")]\n# async fn main() {}\n#[a]\n#\n```\n");
        let expected =
            "mod example_0 {\n#[tokio::test(flavor = \"x\")]\nasync fn works() {}\n#[a]\n#\n}\n";
        assert_eq!(test, expected.replace("\n#\n", "\n\n"));
    }
}

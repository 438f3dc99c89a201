//! The documentation of a function begins with a verb: who reads a list of them sees what each does.

use std::{fs, path::Path};

/// The words with which a sentence begins that says no more than what the function is about.
const QUESTIONS: [&str; 7] = ["What", "Whether", "Who", "How", "Which", "When", "Why"];

/// Finds the functions whose documentation begins with such a word.
fn begins_with_a_question(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            begins_with_a_question(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).expect("it is text");
            let of_file = questions(&text);
            found.extend(of_file.map(|line| format!("{}: {line}", path.display())));
        }
    }
}

/// Returns the first lines of such documentation.
fn questions(text: &str) -> impl Iterator<Item = &str> {
    let mut first = None;
    let mut in_attribute = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with("///") {
            first.get_or_insert(line);
            return None;
        }
        // Attributes may stand between them, also of several lines.
        if in_attribute || line.starts_with("#[") {
            in_attribute = !line.ends_with(']');
            return None;
        }
        let is_function = line.split_whitespace().take(4).any(|word| word == "fn");
        let sentence = first.take()?.trim_start_matches("///").trim_start();
        let word = sentence.split(' ').next().unwrap_or_default();
        (is_function && QUESTIONS.contains(&word)).then_some(sentence)
    })
}

#[test]
fn the_documentation_of_each_function_begins_with_what_it_does() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for name in ["proto", "core", "tower", "cron", "sim", "sandbox", "cli"] {
        let folder = crates.join(format!("redlock-{name}/src"));
        begins_with_a_question(&folder, &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_question_is_found_behind_attributes_and_only_on_functions() {
    let text = "
        /// What is there.
        pub struct Thing;

        /// Whether it is.
        ///
        /// Not always.
        #[expect(
            dead_code,
            reason = \"it is an example\"
        )]
        pub(crate) const fn is_it() -> bool { true }

        /// Returns whether it is.
        fn is() {}
    ";
    assert_eq!(questions(text).collect::<Vec<_>>(), ["Whether it is."]);
}

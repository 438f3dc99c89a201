//! The first line of an item's documentation: a function's begins with a verb, and nobody's with a question.
//!
//! A reader of a list of items sees these lines and nothing else.

use std::{fs, path::Path};

/// The words with which a sentence begins that says no more than what the item is about.
const QUESTIONS: [&str; 9] = [
    "What", "Whatever", "Whether", "Who", "Whoever", "How", "Which", "When", "Why",
];

/// The words that look like verbs in the third person, and are none.
const NO_VERBS: [&str; 5] = ["Always", "As", "Its", "Less", "This"];

/// An item with documentation.
struct Documented<'a> {
    /// The first line of it.
    sentence: &'a str,
    is_function: bool,
    is_module: bool,
    is_public: bool,
}

impl<'a> Documented<'a> {
    fn first_word(&self) -> &'a str {
        let mut words = self.sentence.split([' ', '.', ',', ':', ';']);
        words.next().unwrap_or_default()
    }

    fn asks(&self) -> bool {
        QUESTIONS.contains(&self.first_word())
    }

    fn begins_with_a_verb(&self) -> bool {
        let word = self.first_word();
        let is_word = word.starts_with(|first: char| first.is_ascii_uppercase());
        is_word && word.ends_with('s') && !NO_VERBS.contains(&word)
    }
}

/// Returns the items of a source that have documentation.
fn documented(text: &str) -> Vec<Documented<'_>> {
    let mut found = Vec::new();
    let mut sentence = None;
    let mut in_attribute = false;
    // The indentation of the public enum or trait around a line, whose parts are public without saying so.
    let mut within = None;
    if let Some(sentence) = text.lines().find_map(|line| line.strip_prefix("//! ")) {
        found.push(Documented {
            sentence,
            is_function: false,
            is_module: true,
            is_public: false,
        });
    }
    for line in text.lines() {
        let indentation = line.len() - line.trim_start().len();
        let line = line.trim();
        if line.starts_with("///") {
            sentence.get_or_insert_with(|| line.trim_start_matches("///").trim_start());
            continue;
        }
        // Attributes may stand between them, also of several lines.
        if in_attribute || line.starts_with("#[") {
            in_attribute = !line.ends_with(']');
            continue;
        }
        let is_public = within.is_some() || line.starts_with("pub ");
        if let Some(sentence) = sentence.take() {
            found.push(Documented {
                sentence,
                is_function: line.split_whitespace().take(4).any(|word| word == "fn"),
                is_module: false,
                is_public,
            });
        }
        if within == Some(indentation) && line == "}" {
            within = None;
        } else if line.starts_with("pub enum ") || line.starts_with("pub trait ") {
            within = Some(indentation);
        }
    }
    found
}

/// Finds the first lines of documentation in a folder that are not as they should be.
fn find(folder: &Path, is_wrong: fn(&Documented<'_>) -> bool, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            find(&path, is_wrong, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).expect("it is text");
            let items = documented(&text).into_iter().filter(is_wrong);
            found.extend(items.map(|item| format!("{}: {}", path.display(), item.sentence)));
        }
    }
}

/// Finds them in the published crates.
fn wrong(is_wrong: fn(&Documented<'_>) -> bool) -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for name in ["proto", "core", "tower", "cron", "sim", "sandbox", "cli"] {
        let folder = crates.join(format!("redlock-{name}/src"));
        find(&folder, is_wrong, &mut found);
    }
    found
}

#[test]
fn the_documentation_of_each_function_begins_with_what_it_does() {
    let found = wrong(|item| item.is_function && item.asks());
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_documentation_of_each_public_function_begins_with_a_verb() {
    let found = wrong(|item| item.is_public && item.is_function && !item.begins_with_a_verb());
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_documentation_of_each_public_item_begins_with_what_it_is() {
    let found = wrong(|item| item.is_public && item.asks());
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_documentation_of_each_module_begins_with_what_it_is() {
    let found = wrong(|item| item.is_module && item.asks());
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn first_lines_are_found_behind_attributes_and_in_what_is_public_around_them() {
    let text = "//! Which things there are.

        /// What is there.
        pub struct Thing {
            /// Whether it is.
            there: bool,
            /// How much of it.
            pub much: u32,
        }

        /// A kind.
        #[non_exhaustive]
        pub enum Kind {
            /// Why.
            One {
                /// When.
                at: u32,
            },
        }

        /// Whether it is.
        ///
        /// Not always.
        #[expect(
            dead_code,
            reason = \"it is an example\"
        )]
        pub(crate) const fn is_it() -> bool { true }

        /// Returns whether it is.
        pub fn is() {}

        /// Its name.
        pub fn name() {}
    ";
    let items = documented(text);
    let asks = |is: fn(&Documented<'_>) -> bool| {
        let items = items.iter().filter(|item| is(item) && item.asks());
        items.map(|item| item.sentence).collect::<Vec<_>>()
    };
    assert_eq!(asks(|item| item.is_module), ["Which things there are."]);
    assert_eq!(asks(|item| item.is_function), ["Whether it is."]);
    let public = ["What is there.", "How much of it.", "Why.", "When."];
    assert_eq!(asks(|item| item.is_public), public);
    let public = items
        .iter()
        .filter(|item| item.is_function && item.is_public);
    let verbs = public.map(Documented::begins_with_a_verb);
    assert_eq!(verbs.collect::<Vec<_>>(), [true, false]);
}

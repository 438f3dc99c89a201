//! The words of documentation and comments.
//!
//! The first line of an item says what it is, and that of a function begins with a verb: a reader of a list of items
//! sees only these lines.
//! Sentences name the thing that acts.

use std::{fs, path::Path};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The words that begin a sentence which only says what an item is about.
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
    for name in [
        "proto", "redis", "core", "tower", "cron", "sim", "sandbox", "cli",
    ] {
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

/// The folders whose comments must name their subjects, from the root of the repository; and the documents beside them.
const FOLDERS: [&str; 6] = [".github", "crates", "docker", "docs", "examples", "tests"];
const DOCUMENTS: [&str; 4] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
];

/// The folders whose messages must name their subjects, too: help texts, errors and the text of tests.
const MESSAGES: [&str; 4] = [
    "crates/redlock-sandbox/src",
    "crates/redlock-tower/src",
    "crates/xtask/src",
    "tests/src",
];

/// The forms that hide what a sentence is about, and the remedies; `…` stands for any words of the sentence.
const FORMS: [(&str, &str); 14] = [
    ("who", SUBJECT),
    ("whoever", SUBJECT),
    ("whom", SUBJECT),
    ("nobody", SUBJECT),
    ("somebody", SUBJECT),
    ("anew", "write 'again', or what starts over"),
    ("no more", "write 'only', 'at most' or 'no longer'"),
    ("let go of", "write 'release' or 'drop'"),
    ("goes by it", "name what uses it"),
    ("of use", "name what uses it or needs it"),
    ("has it alone", "write 'exclusive', or 'is the only holder'"),
    ("so many … that", NUMBER),
    ("so much … that", NUMBER),
    ("so few … that", NUMBER),
];

const SUBJECT: &str = "name the thing that acts: the client, the node, a caller, the test";
const NUMBER: &str = "write the number, or 'enough to', 'too many to' or 'too few to'";

/// A word of a comment, in lower case.
struct Word {
    text: String,
    /// The number of its line.
    line: usize,
    /// Set if a part of a sentence ends with the word.
    is_last: bool,
}

/// Returns the words of the comments of a file: of the lines that begin with `mark`.
fn words_of_comments(text: &str, mark: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let before = words.len();
        let comment = line.trim_start().strip_prefix(mark).unwrap_or_default();
        for part in comment.split_whitespace() {
            let texts = part.split(|c: char| !c.is_alphanumeric() && c != '_');
            let texts = texts.filter(|text| !text.is_empty());
            words.extend(texts.map(|text| Word {
                text: text.to_lowercase(),
                line: index + 1,
                is_last: false,
            }));
            if part.contains(['.', ';', ':', '?', '!']) {
                end_sentence(&mut words);
            }
        }
        if words.len() == before {
            end_sentence(&mut words);
        }
    }
    words
}

fn end_sentence(words: &mut [Word]) {
    if let Some(last) = words.last_mut() {
        last.is_last = true;
    }
}

/// Returns whether a sentence begins with a form.
fn begins_with(sentence: &[Word], form: &str) -> bool {
    let (first, then) = match form.split_once(" … ") {
        Some((first, then)) => (first, Some(then)),
        None => (form, None),
    };
    let mut rest = sentence.iter().map(|word| &*word.text);
    let begins = first.split(' ').all(|part| rest.next() == Some(part));
    begins && then.is_none_or(|then| rest.any(|word| word == then))
}

/// Returns the forms in the comments of a file, with their lines and remedies.
fn hidden_subjects(text: &str, mark: &str) -> Vec<String> {
    let words = words_of_comments(text, mark);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let sentence = &words[at..];
        let last = sentence.iter().position(|word| word.is_last);
        let sentence = &sentence[..last.map_or(sentence.len(), |last| last + 1)];
        let forms = FORMS.iter().filter(|(form, _)| begins_with(sentence, form));
        found.extend(forms.map(|(form, remedy)| format!("{}: '{form}': {remedy}", word.line)));
    }
    found
}

/// Adds the strings of a source, each with the number of its first line, without those of its documentation.
fn strings(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                let of_attribute = |token: &TokenTree| {
                    let TokenTree::Group(group) = token else {
                        return false;
                    };
                    let first = group.stream().into_iter().next();
                    group.delimiter() == Delimiter::Bracket
                        && first.is_some_and(|first| first.to_string() == "doc")
                };
                tokens.next_if(of_attribute);
            }
            TokenTree::Group(group) => strings(group.stream(), found),
            TokenTree::Literal(literal) => {
                if let Ok(string) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                    found.push((literal.span().start().line, string.value()));
                }
            }
            _ => {}
        }
    }
}

/// Returns a message without the names of the values that it shows, as in `{name}`.
fn without_values(message: &str) -> String {
    let mut parts = message.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once('}').map_or(part, |(_, after)| after)
    })
}

/// Returns the forms in the messages of a source, with their lines and remedies.
fn hidden_subjects_of_messages(text: &str) -> Vec<String> {
    let tokens: TokenStream = text.parse().expect("it is Rust");
    let mut messages = Vec::new();
    strings(tokens, &mut messages);
    let hidden = messages.into_iter().flat_map(|(line, message)| {
        let hidden = hidden_subjects(&without_values(&message), "").into_iter();
        hidden.map(move |hidden| format!("{line}: in line {hidden}"))
    });
    hidden.collect()
}

/// Finds such forms in the messages of the sources in a folder.
fn find_hidden_subjects_of_messages(path: &Path, found: &mut Vec<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("the folder is there") {
            find_hidden_subjects_of_messages(&entry.expect("it can be read").path(), found);
        }
    } else if path.extension().is_some_and(|end| end == "rs") {
        let text = fs::read_to_string(path).expect("it is text");
        let hidden = hidden_subjects_of_messages(&text).into_iter();
        found.extend(hidden.map(|hidden| format!("{}:{hidden}", path.display())));
    }
}

#[test]
fn messages_have_a_named_subject() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the repository is there");
    let mut found = Vec::new();
    for path in MESSAGES {
        find_hidden_subjects_of_messages(&root.join(path), &mut found);
    }
    assert!(
        found.is_empty(),
        "say in each of these messages what acts: {found:#?}"
    );
}

#[test]
fn hidden_subjects_are_found_in_messages_and_not_in_the_names_of_values() {
    let text = "/// Told to whoever asks.\nfn a() {\n    say(\"{who} has the key, and \\\n        nobody waits\", \"fine\");\n}\n";
    let found = hidden_subjects_of_messages(text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("3: in line 1: 'nobody': "),
        "{found:?}"
    );
}

/// Finds such forms in a source or a document, or in those of a folder.
fn find_hidden_subjects(path: &Path, found: &mut Vec<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("the folder is there") {
            find_hidden_subjects(&entry.expect("it can be read").path(), found);
        }
        return;
    }
    let mark = match path.extension().and_then(|end| end.to_str()) {
        Some("rs") => "//",
        Some("lua") => "--",
        Some("md") => "",
        _ => return,
    };
    let text = fs::read_to_string(path).expect("it is text");
    let hidden = hidden_subjects(&text, mark).into_iter();
    found.extend(hidden.map(|hidden| format!("{}:{hidden}", path.display())));
}

#[test]
fn comments_have_a_named_subject() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the repository is there");
    let mut found = Vec::new();
    for path in FOLDERS.into_iter().chain(DOCUMENTS) {
        find_hidden_subjects(&root.join(path), &mut found);
    }
    assert!(
        found.is_empty(),
        "say in each of these comments what acts: {found:#?}"
    );
}

#[test]
fn hidden_subjects_are_found_in_comments_over_the_ends_of_lines_and_nowhere_else() {
    let text = "/// Told to whoever asks.\nlet nobody = 1; // Not whole lines.\n    // So many, in\n    // all, that some fail.\n";
    let found = hidden_subjects(text, "//");
    let begins = ["1: 'whoever': ", "3: 'so many … that': "];
    let begin = |(line, begin): (&String, &str)| line.starts_with(begin);
    assert_eq!(found.len(), begins.len(), "{found:?}");
    assert!(found.iter().zip(begins).all(begin), "{found:?}");
    for (text, mark, count) in [
        ("-- It has\n-- it alone.", "--", 1),
        ("-- It has\n\n-- it alone.", "--", 0),
        ("Nobody's key is let go of.", "", 2),
        ("So few are left. A client that asks is of\nuse.", "", 1),
        ("What `whole` names is used no\nmore.", "", 1),
        ("//! The whole.", "//", 0),
    ] {
        assert_eq!(hidden_subjects(text, mark).len(), count, "{text}");
    }
}

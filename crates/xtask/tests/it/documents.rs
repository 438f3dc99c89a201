//! The documents stay within their limits, and what they name is there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The most that fits into one reading, of a document that is read as a whole.
///
/// The argument has no such limit: no step of it is left out for its length.
const MOST: [(&str, usize); 1] = [("ARCHITECTURE.md", 14 * 1_024 + 256)];

/// The most terms of the glossary.
const MOST_TERMS: usize = 40;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A link in a document, in the folder of that document.
struct Link<'a> {
    text: &'a str,
    target: &'a str,
}

/// The links of a document, but for those to other sites: those in the text, and those that are defined at its end.
fn links(document: &str) -> impl Iterator<Item = Link<'_>> {
    let in_text = document.match_indices("](").filter_map(|(at, _)| {
        let text = document[..at].rsplit_once('[')?.1;
        let target = document[at + 2..].split_once(')')?.0;
        Some(Link { text, target })
    });
    let defined = document.lines().filter_map(|line| {
        let (text, target) = line.strip_prefix('[')?.split_once("]: ")?;
        Some(Link { text, target })
    });
    let all = in_text.chain(defined);
    all.filter(|link| !link.target.contains("://"))
}

/// The names in a document that are links by being defined at its end, and are not.
fn undefined(document: &str) -> Vec<String> {
    let starts = document
        .match_indices("[`")
        .map(|(at, _)| &document[at + 1..]);
    let names = starts.filter_map(|rest| {
        let (name, after) = rest.split_once(']')?;
        (!after.starts_with(['(', ':'])).then_some(name)
    });
    let is_defined = |name: &str| document.contains(&format!("\n[{name}]: "));
    names
        .filter(|name| !is_defined(name))
        .map(str::to_owned)
        .collect()
}

/// The anchor of a heading, as hosts of repositories make it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        letter if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter),
        _ => None,
    });
    kept.collect()
}

fn has_heading(document: &str, wanted: &str) -> bool {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    let mut anchors = headings.map(|line| anchor(line.trim_start_matches('#').trim()));
    anchors.any(|found| found == wanted)
}

/// Whether a file has what a link to it names: a test or another function, a mutant, a rule, a plan or a type.
fn has(path: &Path, name: &str) -> bool {
    let text = read(path);
    let words = |part: &str| {
        text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
            .any(|word| word == part)
    };
    let is_function = |name: &str| {
        let mut letters = name.chars();
        name.contains('_') && letters.all(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '_'))
    };
    if let Some((_, mutant)) = name.split_once('/') {
        let of_its_own = path.file_stem().is_some_and(|stem| stem == mutant);
        return of_its_own || words(mutant);
    }
    if is_function(name) {
        return text.contains(&format!("fn {name}("));
    }
    let is_file = path.file_name().is_some_and(|file| file == name);
    is_file || name.rsplit("::").next().is_some_and(words)
}

/// What is wrong with the links of a document.
fn broken(path: &Path) -> Vec<String> {
    let document = read(path);
    let folder = path.parent().expect("a document is in a folder");
    // Part of a crate's documentation: rustdoc looks for the items in it, and for files it does not.
    let is_of_crate = path.starts_with(root().join("crates"))
        && folder.ancestors().any(|folder| folder.ends_with("docs"));
    let mut broken = if is_of_crate {
        Vec::new()
    } else {
        undefined(&document)
    };
    let is_file =
        |link: &Link<'_>| link.target.starts_with('#') || link.target.contains(['/', '.']);
    for Link { text, target } in links(&document).filter(|link| !is_of_crate || is_file(link)) {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let there = match file {
            "" => path.to_owned(),
            file => folder.join(file),
        };
        let code = text
            .strip_prefix('`')
            .and_then(|text| text.strip_suffix('`'));
        let is_right = there.exists()
            && (heading.is_empty() || has_heading(&read(&there), heading))
            && code.is_none_or(|name| there.is_dir() || has(&there, name));
        if !is_right {
            broken.push(format!("[{text}]({target})"));
        }
    }
    broken
}

#[test]
fn the_readme_is_a_page_of_150_lines() {
    let lines = read(&root().join("README.md")).lines().count();
    assert!(lines <= 150, "{lines} lines");
}

/// The manual of a crate is in its guides.
#[test]
fn the_front_page_of_each_crate_has_1500_words_at_most() {
    for entry in fs::read_dir(root().join("crates")).expect("there are crates") {
        let folder = entry.expect("it can be read").path();
        let page = folder.join("docs/crate.md");
        let library = folder.join("src/lib.rs");
        let text = if page.exists() {
            read(&page)
        } else if library.exists() {
            let text = read(&library);
            let lines = text.lines().filter_map(|line| line.strip_prefix("//!"));
            lines.collect()
        } else {
            continue;
        };
        let words = text.split_whitespace().count();
        assert!(words <= 1_500, "{}: {words} words", folder.display());
    }
}

#[test]
fn each_long_document_can_be_read_at_one_sitting() {
    for (document, most) in MOST {
        let length = read(&root().join(document)).len();
        assert!(length <= most, "{document} has {length} bytes, of {most}");
    }
}

#[test]
fn what_the_documents_link_to_is_there() {
    let mut documents = Vec::new();
    paths(&root(), &mut documents);
    documents.retain(|path| path.extension().is_some_and(|end| end == "md"));
    assert!(documents.len() > 20, "{documents:?}");
    let broken: Vec<String> = documents.iter().flat_map(|path| broken(path)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// What stands in backticks in a text.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_code_map_names_what_is_there() {
    let document = read(&root().join("ARCHITECTURE.md"));
    let (_, map) = document.split_once("## Code map").expect("there is one");
    let (map, _) = map.split_once("\n## ").expect("something follows");
    let (mut within, mut missing) = (root(), Vec::new());
    for row in map.lines().filter(|line| line.starts_with("| ")) {
        let cell = row.split('|').nth(1).expect("a row has cells");
        for path in code(cell) {
            let folder = if cell.contains('…') {
                &within
            } else {
                &root()
            };
            let folder = folder.join(path);
            if !folder.exists() {
                missing.push(row.to_owned());
            }
            if !cell.contains('…') {
                within = folder;
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// All files and folders of the repository, from its root, without what is built.
fn paths(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name == "target" || name.starts_with('.') && name != ".github") {
            continue;
        }
        if path.is_dir() {
            paths(&path, all);
        }
        all.push(path);
    }
}

/// The words of all sources, and the paths of all files and folders.
struct Repository {
    words: BTreeSet<String>,
    paths: Vec<PathBuf>,
}

impl Repository {
    fn read() -> Self {
        let (mut words, mut all) = (BTreeSet::new(), Vec::new());
        paths(&root(), &mut all);
        for path in &all {
            let is_source = path
                .extension()
                .is_some_and(|end| SOURCES.iter().any(|of| end == *of));
            if is_source && !path.ends_with("tests/it/documents.rs") {
                let text = read(path);
                let parts = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
                words.extend(parts.map(str::to_owned));
            }
        }
        Self { words, paths: all }
    }

    /// Returns whether what stands in backticks is there, if it is a path, a type, a function or a constant.
    fn has(&self, name: &str) -> bool {
        let is_path = name.ends_with('/') || SOURCES.iter().any(|end| ends_with(name, end));
        if is_path
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b))
        {
            return self.paths.iter().any(|path| path.ends_with(name));
        }
        let name = name.strip_suffix("()").unwrap_or(name);
        let is_word = |word: &str| {
            let mut letters = word.chars();
            letters.all(|letter| letter.is_alphanumeric() || letter == '_')
        };
        if !name.split("::").all(is_word) {
            return true;
        }
        let is_named = |word: &&str| {
            let capital = word.starts_with(|first: char| first.is_ascii_uppercase());
            word.contains('_') || capital && word.contains(|c: char| c.is_ascii_lowercase())
        };
        // A variable is the name of a setting with the command's name before it.
        let is_there = |word: &str| {
            let setting = word.strip_prefix("REDLOCK_").map(str::to_lowercase);
            self.words.contains(word) || setting.is_some_and(|name| self.words.contains(&name))
        };
        name.split("::").filter(is_named).all(is_there)
    }
}

fn ends_with(name: &str, end: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, of)| of == end)
}

/// The ends of the names of sources.
const SOURCES: [&str; 10] = [
    "rs", "lua", "c", "toml", "yaml", "yml", "sh", "conf", "json", "service",
];

/// Names of other programs and libraries, and of what is built.
const FOREIGN: &str = "\
target/ target/bench/results.json incompatible_msrv LockError::Unavailable validity_time RedissonMultiLock RedissonRedLock \
RFairLock RLock RPermitExpirableSemaphore RReadWriteLock RSemaphore RSpinLock billing_days \
RESOURCE_EXHAUSTED INVALID_ARGUMENT CorsLayer WebSocketUpgrade Cargo.lock";

#[test]
fn the_names_in_the_documents_are_there() {
    let repository = Repository::read();
    let mut missing = Vec::new();
    for path in &repository.paths {
        let is_document = path.extension().is_some_and(|end| end == "md");
        // The changelog names what went.
        if !is_document || path.ends_with("CHANGELOG.md") {
            continue;
        }
        let document = read(path);
        let text: Vec<&str> = document.split("```").step_by(2).collect();
        let text = text.concat();
        let is_foreign = |name: &str| FOREIGN.split(' ').any(|foreign| foreign == name);
        let names = code(&text).filter(|name| !is_foreign(name) && !repository.has(name));
        let file = path.strip_prefix(root()).unwrap_or(path).display();
        missing.extend(names.map(|name| format!("{file}: `{name}`")));
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(!repository.has("NoSuchType") && !repository.has("no_such_function()"));
    assert!(!repository.has("client/no_such_file.rs"));
}

/// Figures of the documents: the document, the figure, and the file and the line that it is from.
///
/// A change of the line breaks the test until the document is read again.
const FIGURES: &str = "\
CHANGELOG.md | Version 4 of the stored data | redlock-proto/src/node/quarantine.rs | VERSION: u32 = 4
docs/safety.md | 2 × error × ttl + 2 ms | redlock-proto/src/time/timing.rs | STEPS: Duration = Duration::from_millis(2)
docs/safety.md | (`max_ttl`/32, from 50 ms to 1 s) | redlock-proto/src/node/quarantine.rs | (max_ttl / 32).clamp(Duration::from_millis(50), Duration::from_secs(1))
docs/safety.md | every 250 ms while a caller has a lease | redlock-core/src/engine/driver.rs | LOOK_EVERY: Duration = Duration::from_millis(250)
docs/safety.md | 100 ms after it was won | redlock-proto/src/lease/renewal.rs | SPREAD: Duration = Duration::from_millis(100)
docs/safety.md | more than 20 ms after the wait | redlock-proto/src/client/acquisitions/acquisition.rs | LATE: Duration = Duration::from_millis(20)
docs/safety.md | hands a lease on for 250 ms | redlock-proto/src/lease/fairness.rs | LONGEST_COHORT: Duration = Duration::from_millis(250)
docs/refinements.md | the last 101 of each | redlock-proto/src/tick/record.rs | MOST: usize = 101
docs/refinements.md | for a minute at most | redlock-proto/src/client/acquisitions/waiting.rs | LONGEST_STAY: Duration = Duration::from_secs(60)
docs/refinements.md | the node keeps it for 3 s | redlock-proto/src/node/request.rs | SIGN: Duration = Duration::from_secs(3)
docs/refinements.md | and every 3 s | redlock-proto/src/client/acquisitions/waiting.rs | BEAT_OF_FIRST: Duration = Duration::from_secs(3)
docs/refinements.md | A line has 64 entries at most | redlock-proto/src/node/store/line.rs | LONGEST: usize = 64
docs/refinements.md | after 250 ms of random pauses | redlock-proto/src/client/acquisitions/waiting.rs | PATIENCE: Duration = Duration::from_millis(250)
docs/named.md | 5 s before at most | redlock-proto/src/node/quarantine.rs | FOLLOWED_WITHIN: Duration = Duration::from_secs(5)
crates/redlock-core/docs/guide/locks.md | up to 16 keys | redlock-proto/src/key/key_set.rs | MAX_LEN: usize = 16
crates/redlock-core/docs/guide/waiting.md | up to 63 times in a row | redlock-core/src/client/acquire.rs | HAND_OVERS: u32 = 63
crates/redlock-core/docs/guide/waiting.md | 64 leases or more | redlock-proto/src/client/leases/extension.rs | MANY: usize = 64";

#[test]
fn the_figures_in_the_documents_are_those_of_the_code() {
    for row in FIGURES.lines() {
        let columns: Vec<_> = row.split(" | ").collect();
        let [document, figure, source, line] = columns[..] else {
            panic!("{row} has not four columns");
        };
        assert!(
            read(&root().join(document)).contains(figure),
            "{document}: {figure}"
        );
        let source = root().join("crates").join(source);
        assert!(read(&source).contains(line), "{}: {line}", source.display());
    }
}

#[test]
fn the_ten_files_of_an_acquire_are_there() {
    let document = read(&root().join("ARCHITECTURE.md"));
    let pictures = document.split("```").skip(1).step_by(2);
    let words = pictures.flat_map(str::split_whitespace);
    let files: Vec<&str> = words
        .filter(|word| word.starts_with("redlock-") && word.contains('/'))
        .collect();
    let is_there = |file: &&str| root().join("crates").join(file).is_file();
    let missing: Vec<&str> = files
        .iter()
        .filter(|file| !is_there(file))
        .copied()
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert_eq!(files.len(), 10, "{files:#?}");
}

#[test]
fn the_glossary_has_each_term_once() {
    let document = read(&root().join("ARCHITECTURE.md"));
    let (_, glossary) = document
        .split_once("\n## Glossary\n")
        .expect("there is one");
    let (glossary, _) = glossary.split_once("\n## ").unwrap_or((glossary, ""));
    let terms: Vec<&str> = glossary.split("**").skip(1).step_by(2).collect();
    assert!(terms.len() <= MOST_TERMS, "{} terms", terms.len());
    assert!(terms.is_sorted_by(|one, next| one < next), "{terms:#?}");
}

/// The number with which the name of a test begins, such as `s15`, if it stands for a mistake of another library.
fn number(name: &str) -> Option<&str> {
    let (number, _) = name.split_once('_')?;
    let digits = number.strip_prefix(['s', 'l'])?;
    (digits.len() == 2 && digits.chars().all(|digit| digit.is_ascii_digit())).then_some(number)
}

#[test]
fn the_catalogue_has_each_mistake_and_its_tests() {
    let catalogue = root().join("docs/catalogue.md");
    let document = read(&catalogue);
    let (mut listed, mut numbers) = (Vec::new(), Vec::new());
    for section in document.split("\n## ").skip(1) {
        let (wanted, _) = section.split_once(": ").expect("a heading has a number");
        numbers.push(wanted);
        let before = listed.len();
        for Link { text, target } in links(section) {
            let name = text.trim_matches('`');
            if text.starts_with('`') {
                assert_eq!(number(name), Some(wanted), "{name}");
                listed.push((name.to_owned(), root().join("docs").join(target)));
            }
        }
        assert!(listed.len() > before, "{wanted} has no test");
    }
    let mut all = Vec::new();
    paths(&root(), &mut all);
    let mut missing = Vec::new();
    let mut found = 0;
    for path in all
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
    {
        let text = read(path);
        let functions = text.split("fn ").skip(1);
        for name in functions.filter_map(|rest| rest.split('(').next()) {
            if number(name).is_none() {
                continue;
            }
            found += 1;
            let is_it = |(other, file): &(String, PathBuf)| {
                other == name && file.canonicalize().ok() == path.canonicalize().ok()
            };
            if !listed.iter().any(is_it) {
                missing.push(format!("{name} of {}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    // Nothing stands there twice, and nothing that is gone.
    assert_eq!(listed.len(), found);
    // A number without a section has a reason, before the first of them.
    let (reasons, _) = document.split_once("\n## ").expect("there are sections");
    for kind in ["s", "l"] {
        let last = numbers
            .iter()
            .filter(|number| number.starts_with(kind))
            .max();
        let last: usize = last.expect("there is one")[1..].parse().expect("digits");
        for number in (1..=last).map(|number| format!("{kind}{number:02}")) {
            let is_there = numbers.contains(&number.as_str()) || reasons.contains(&number);
            assert!(is_there, "{number} has neither a section nor a reason");
        }
    }
}

#[test]
fn a_name_that_is_not_there_is_found() {
    let proofs = root().join("crates/redlock-proto/tests/it/clients/rounds.rs");
    assert!(has(&proofs, "an_answer_that_is_told_twice_is_heard_once"));
    assert!(!has(&proofs, "an_answer_that_is_told_twice_is_heard"));
    assert!(!has(&proofs, "protocol/no-drift"));
    assert!(has_heading(
        "# One\n## Theorem 1: exclusion\n",
        "theorem-1-exclusion"
    ));
    assert!(!has_heading("# One\n", "theorem-1-exclusion"));
}

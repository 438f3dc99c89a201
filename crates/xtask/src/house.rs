//! `cargo xtask house`: the size of the published crates that users build, and limits that CI enforces.
//!
//! A line of a source is code, or documentation (comments included), or it is blank.
//! Tests in `src` are counted apart: items below `#[cfg(test)]` or behind the feature `test-util`, and the files of such
//! modules.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, Expr, ExprLit, ImplItemFn, Item, Lit, Meta, Type, Visibility,
    visit::{self, Visit},
};

use crate::{
    mutants::{self, Mutant},
    step::{Failed, root},
};

/// The crates that are counted.
const CRATES: [&str; 7] = ["proto", "redis", "core", "tower", "cron", "console", "cli"];

/// The crates that show, and are not counted among the libraries.
const VIEWS: [&str; 2] = ["console", "cli"];

/// The builders whose options are counted, with the most that each should have.
const BUILDERS: [(&str, usize); 4] = [
    ("RedlockBuilder", 18),
    ("AcquireOptions", 8),
    ("RedlockLayerBuilder", 8),
    ("SingletonJob", 11),
];

/// The figures with limits, in the order of [`House::figures`].
const LIMITS: [Limit; 8] = [
    Limit {
        what: "lines of Rust in all",
        most: 198_500,
        struck: Some((
            140_000,
            "the simulation, the models and the tests on servers are a third, and each shows what no other does; the console with its tests is a twentieth",
        )),
    },
    Limit {
        what: "lines of code in libraries",
        most: 40_000,
        struck: Some((
            33_000,
            "the record of jobs, its registrations and its log of actions, lines that wait by events and a driver of two tasks came later",
        )),
    },
    Limit::of("lines of code in redlock-core", 9_000),
    Limit {
        what: "lines of code in redlock-console",
        most: 7_300,
        struck: Some((
            6_900,
            "3,500 beside the 3,400 that moved there from the command: pictures, dialogs and histories took more",
        )),
    },
    Limit {
        what: "lines of tests in src",
        most: 9_900,
        struck: Some((
            6_000,
            "a private rule has its test beside it; tests by the public interface are elsewhere",
        )),
    },
    Limit::of("mistakes as patches", 400),
    Limit::of("lines of the longest file of Lua", 350),
    Limit::of("names of types that are defined twice", 0),
];

/// The width of a line of names.
const WIDTH: usize = 100;

/// The part that a file has in its crate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Role {
    Shipped,
    Test,
    /// It has the place of another file, with the same types, where a feature or a system is missing.
    Substitute,
}

/// The counts of a crate, or of all.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    code: usize,
    docs: usize,
    tests: usize,
    /// The lines of Lua that are code.
    lua: usize,
    /// The files that are no tests.
    files: usize,
    types: usize,
}

/// The counts of all crates that were read.
#[derive(Debug, Default)]
struct House {
    crates: Vec<(String, Counts)>,
    /// The types by name, with the crate of each.
    types: BTreeMap<String, Vec<String>>,
    options: BTreeMap<String, Vec<String>>,
}

/// The most that a figure may be.
#[derive(Debug)]
struct Limit {
    what: &'static str,
    most: usize,
    /// A lesser figure that was aimed at, and why it is not the limit.
    struck: Option<(usize, &'static str)>,
}

impl Limit {
    const fn of(what: &'static str, most: usize) -> Self {
        Self {
            what,
            most,
            struck: None,
        }
    }
}

/// Prints the figures.
///
/// # Errors
///
/// A figure is beyond its limit, or a source cannot be read or is not Rust.
pub(crate) fn run() -> Result<(), Failed> {
    eprintln!("== house: cargo xtask house");
    let house = House::read()?;
    eprint!("{}", house.summary());
    let mut beyond = Vec::new();
    for (limit, found) in LIMITS.iter().zip(house.figures(&root())?) {
        eprintln!("{}: {found}, {limit}", limit.what);
        if found > limit.most {
            beyond.push(limit.what);
        }
    }
    if beyond.is_empty() {
        eprintln!("== house: fine");
        return Ok(());
    }
    Err(Failed(format!(
        "== house: too much of: {}",
        beyond.join(", ")
    )))
}

impl House {
    /// Counts the sources of all crates.
    fn read() -> Result<Self, Failed> {
        let mut house = Self::default();
        for name in CRATES {
            let source = root().join(format!("crates/redlock-{name}/src"));
            house.crates.push((name.to_owned(), Counts::default()));
            let mut files = Vec::new();
            sources(&source, &mut files)?;
            // A module is declared in another file, so all declarations are read before the first file is counted.
            let mut roles = BTreeMap::new();
            for (path, text) in &files {
                if path.extension().is_some_and(|end| end == "rs") {
                    let declared = declared(path, text);
                    roles.extend(declared.map_err(|error| failed(path, &error))?);
                }
            }
            for (path, text) in &files {
                let role = path.ancestors().find_map(|path| roles.get(path));
                let role = role.copied().unwrap_or(Role::Shipped);
                house
                    .add(path, text, role)
                    .map_err(|error| failed(path, &error))?;
            }
        }
        Ok(house)
    }

    /// Returns the figures that have limits.
    fn figures(&self, root: &Path) -> Result<[usize; LIMITS.len()], Failed> {
        let mut rust = Vec::new();
        for folder in ["crates", "examples", "tests"] {
            sources(&root.join(folder), &mut rust)?;
        }
        let lines = |end: &'static str| {
            let files = rust.iter();
            files
                .filter(move |(path, _)| path.extension().is_some_and(|of| of == end))
                .map(|(_, text)| text.lines().count())
        };
        let code = |is_counted: &dyn Fn(&str) -> bool| {
            let crates = self.crates.iter().filter(|(name, _)| is_counted(name));
            crates.map(|(_, counts)| counts.code).sum()
        };
        let tests = self.crates.iter().map(|(_, counts)| counts.tests).sum();
        let patches = Mutant::all(&mutants::folder())?.len();
        let twice = self.types.values().filter(|of| of.len() > 1).count();
        Ok([
            lines("rs").sum(),
            code(&|name| !VIEWS.contains(&name)),
            code(&|name| name == "core"),
            code(&|name| name == "console"),
            tests,
            patches,
            lines("lua").max().unwrap_or_default(),
            twice,
        ])
    }

    /// Counts a file of the last crate.
    fn add(&mut self, path: &Path, text: &str, role: Role) -> syn::Result<()> {
        let is_lua = path.extension().is_some_and(|end| end == "lua");
        let (name, counts) = self.crates.last_mut().expect("a crate was begun");
        let name = name.clone();
        let lines = text.lines().map(str::trim);
        if role == Role::Test {
            counts.tests += lines.filter(|line| !line.is_empty()).count();
            return Ok(());
        }
        if is_lua {
            counts.files += 1;
            counts.lua += lines
                .filter(|line| !line.is_empty() && !line.starts_with("--"))
                .count();
            return Ok(());
        }
        let file = syn::parse_file(text)?;
        if file.attrs.iter().any(is_of_tests) {
            return self.add(path, text, Role::Test);
        }
        let mut items = Items::default();
        items.visit_file(&file);
        counts.files += 1;
        for (number, line) in (1..).zip(lines) {
            let is_in = |(first, last): &(usize, usize)| (first..=last).contains(&&number);
            if line.is_empty() {
            } else if items.tests.iter().any(is_in) {
                counts.tests += 1;
            } else if line.starts_with("//") {
                counts.docs += 1;
            } else {
                counts.code += 1;
            }
        }
        if role != Role::Substitute {
            counts.types += items.types.len();
            for of in items.types {
                self.types.entry(of).or_default().push(name.clone());
            }
        }
        for (of, option) in items.options {
            self.options.entry(of).or_default().push(option);
        }
        Ok(())
    }

    /// Returns the figures, in one screen.
    fn summary(&self) -> String {
        let row = |name: &str, figures: [String; 6]| {
            let figures = figures.map(|figure| format!("{figure:>8}"));
            format!("{name:<16}{}\n", figures.concat())
        };
        let heads = ["code", "lua", "docs", "tests", "files", "types"];
        let mut said = row("", heads.map(str::to_owned));
        let counts = |of: &Counts| [of.code, of.lua, of.docs, of.tests, of.files, of.types];
        let mut all = [0; 6];
        for (name, of) in &self.crates {
            let of = counts(of);
            all.iter_mut().zip(of).for_each(|(sum, of)| *sum += of);
            said += &row(
                &format!("redlock-{name}"),
                of.map(|count| count.to_string()),
            );
        }
        said += &row("all", all.map(|count| count.to_string()));
        let options = BUILDERS.map(|(name, most)| {
            let count = self.options.get(name).map_or(0, Vec::len);
            format!("{name} {count} ({most})")
        });
        said += &format!("\noptions: {}\n", options.join(", "));
        let twice: Vec<String> = self
            .types
            .iter()
            .filter(|(_, of)| of.len() > 1)
            .map(|(name, of)| format!("{name} ({})", counted(of)))
            .collect();
        said += &format!(
            "names of types that are defined twice or more: {}\n",
            twice.len()
        );
        said + &wrapped(&twice)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {}", self.most)?;
        match self.struck {
            Some((aim, why)) => write!(f, " ({aim} was aimed at: {why})"),
            None => Ok(()),
        }
    }
}

/// Returns the names of crates, each once with the number of times that it follows itself.
fn counted(crates: &[String]) -> String {
    let runs = crates.chunk_by(|one, next| one == next);
    let runs = runs.map(|run| match run.len() {
        1 => run[0].clone(),
        count => format!("{count} × {}", run[0]),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// Returns names with semicolons between them, in lines of at most [`WIDTH`].
fn wrapped(names: &[String]) -> String {
    let mut text = String::new();
    let mut length = 0;
    for name in names {
        if length == 0 || length + name.len() + 2 > WIDTH {
            text += if length == 0 { "  " } else { ";\n  " };
            length = 2;
        } else {
            text += "; ";
            length += 2;
        }
        text += name;
        length += name.len();
    }
    if length > 0 {
        text.push('\n');
    }
    text
}

/// The items of a file.
#[derive(Default)]
struct Items {
    types: Vec<String>,
    /// The methods that are options, each with its type.
    options: Vec<(String, String)>,
    /// The lines of unit tests, from the first to the last.
    tests: Vec<(usize, usize)>,
}

impl Items {
    /// Notes the lines of a test, and returns whether it is one.
    fn is_test(&mut self, attributes: &[Attribute], item: &impl syn::spanned::Spanned) -> bool {
        let is_test = attributes.iter().any(is_of_tests);
        if is_test {
            let span = item.span();
            self.tests.push((span.start().line, span.end().line));
        }
        is_test
    }
}

impl<'ast> Visit<'ast> for Items {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = match item {
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Mod(item) => (&item.attrs, None),
            Item::Fn(item) => (&item.attrs, None),
            Item::Impl(item) => (&item.attrs, None),
            Item::Use(item) => (&item.attrs, None),
            Item::Const(item) => (&item.attrs, None),
            Item::Static(item) => (&item.attrs, None),
            Item::Macro(item) => (&item.attrs, None),
            _ => return visit::visit_item(self, item),
        };
        if self.is_test(attributes, item) {
            return;
        }
        self.types.extend(name.map(ToString::to_string));
        if let Item::Impl(item) = item
            && item.trait_.is_none()
            && let Type::Path(of) = &*item.self_ty
            && let Some(of) = of.path.segments.last()
        {
            let methods = item.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(method) => Some(method),
                _ => None,
            });
            let options =
                methods.filter(|method| is_option(method) && !method.attrs.iter().any(is_of_tests));
            let options =
                options.map(|method| (of.ident.to_string(), method.sig.ident.to_string()));
            self.options.extend(options);
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, method: &'ast ImplItemFn) {
        if !self.is_test(&method.attrs, method) {
            visit::visit_impl_item_fn(self, method);
        }
    }
}

/// Returns the files and the folders of the modules that a file declares under a condition, with their roles.
fn declared(path: &Path, text: &str) -> syn::Result<Vec<(PathBuf, Role)>> {
    let is_root = ["mod.rs", "lib.rs", "main.rs"]
        .iter()
        .any(|name| path.ends_with(name));
    let parent = path.parent().unwrap_or(path);
    let folder = if is_root {
        parent.to_owned()
    } else {
        path.with_extension("")
    };
    let mut declared = Vec::new();
    for item in syn::parse_file(text)?.items {
        let Item::Mod(module) = item else {
            continue;
        };
        let role = if module.attrs.iter().any(is_of_tests) {
            Role::Test
        } else if module.attrs.iter().any(is_of_substitute) {
            Role::Substitute
        } else {
            continue;
        };
        let name = module.ident.to_string();
        match module.attrs.iter().find_map(path_of) {
            Some(path) => declared.push((parent.join(path), role)),
            None => {
                declared.push((folder.join(format!("{name}.rs")), role));
                declared.push((folder.join(name), role));
            }
        }
    }
    Ok(declared)
}

/// Returns the path in an attribute such as `#[path = "no_tree.rs"]`.
fn path_of(attribute: &Attribute) -> Option<String> {
    let value = &attribute.meta.require_name_value().ok()?.value;
    literal(value).filter(|_| attribute.path().is_ident("path"))
}

/// Returns whether an attribute is of the form `#[cfg(not(…))]`.
fn is_of_substitute(attribute: &Attribute) -> bool {
    let condition = attribute.parse_args::<syn::MetaList>();
    attribute.path().is_ident("cfg") && condition.is_ok_and(|list| list.path.is_ident("not"))
}

/// Returns whether a method takes a builder and returns it.
fn is_option(method: &syn::ImplItemFn) -> bool {
    let takes = method
        .sig
        .receiver()
        .is_some_and(|self_| self_.reference.is_none());
    let returns = match &method.sig.output {
        syn::ReturnType::Type(_, returned) => {
            matches!(&**returned, Type::Path(path) if path.path.is_ident("Self"))
        }
        syn::ReturnType::Default => false,
    };
    takes && returns && matches!(method.vis, Visibility::Public(_))
}

/// Returns whether an item is for tests only: of this crate, or of a user that turns on the feature `test-util`.
fn is_of_tests(attribute: &Attribute) -> bool {
    let of_tests = |condition: Meta| match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::NameValue(feature) => literal(&feature.value).is_some_and(|name| name == "test-util"),
        Meta::List(_) => false,
    };
    attribute.path().is_ident("cfg") && attribute.parse_args::<Meta>().is_ok_and(of_tests)
}

/// Returns a string literal.
fn literal(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Some(text.value()),
        _ => None,
    }
}

/// Reads the sources in a folder and below it.
fn sources(folder: &Path, files: &mut Vec<(PathBuf, String)>) -> Result<(), Failed> {
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, &error))? {
        let path = entry.map_err(|error| failed(folder, &error))?.path();
        if path.is_dir() {
            sources(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|end| end == "rs" || end == "lua")
        {
            let text = fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
            files.push((path, text));
        }
    }
    Ok(())
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Failed {
    Failed(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
//! A module.

/// A type.
pub struct AcquireOptions;

impl AcquireOptions {
    /// An option.
    pub fn ttl(self) -> Self {
        self
    }
    fn own(self) -> Self {
        self
    }
    #[cfg(test)]
    pub fn look(self) -> Self {
        self
    }
}

#[cfg(test)]
mod fixtures;

#[cfg(test)]
mod tests {
    struct State;
}
";

    #[test]
    fn code_documentation_and_tests_are_counted_apart() {
        let mut house = House::default();
        house.crates.push(("core".to_owned(), Counts::default()));
        house.add(Path::new("a.rs"), TEXT, Role::Shipped).unwrap();
        house
            .add(
                Path::new("a.lua"),
                "-- A script.\n\nreturn 1\n",
                Role::Shipped,
            )
            .unwrap();
        house
            .add(
                Path::new("fixtures.rs"),
                "//! Made up.\nstruct Other;\n",
                Role::Test,
            )
            .unwrap();
        let counts = Counts {
            code: 9,
            docs: 3,
            tests: 12,
            lua: 1,
            files: 2,
            types: 1,
        };
        assert_eq!(house.crates[0].1, counts);
        assert_eq!(house.options["AcquireOptions"], ["ttl"]);
    }

    #[test]
    fn names_that_two_crates_define_are_named() {
        let mut house = House::default();
        for (name, text) in [
            ("core", "enum State { One } mod a { struct State; }"),
            ("tower", "trait State {}"),
        ] {
            house.crates.push((name.to_owned(), Counts::default()));
            house.add(Path::new("a.rs"), text, Role::Shipped).unwrap();
        }
        let said = house.summary();
        assert!(
            said.ends_with("twice or more: 1\n  State (2 × core, tower)\n"),
            "{said}"
        );
        assert!(said.contains("all                    2       0"), "{said}");
    }

    #[test]
    fn the_files_of_modules_have_the_roles_that_their_declarations_say() {
        let text = "#[cfg(test)] mod a; mod b; #[cfg(unix)] mod c;
            #[cfg(not(unix))] #[path = \"no_c.rs\"] mod c;";
        let roles = |path| declared(Path::new(path), text).unwrap();
        let wanted = [
            ("src/m/a.rs", Role::Test),
            ("src/m/a", Role::Test),
            ("src/m/no_c.rs", Role::Substitute),
        ];
        let wanted = wanted.map(|(path, role)| (PathBuf::from(path), role));
        assert_eq!(roles("src/m/mod.rs"), wanted);
        assert_eq!(roles("src/m.rs")[0], wanted[0]);
    }

    #[test]
    fn long_lists_of_names_are_wrapped() {
        let names = vec!["x".repeat(60); 3];
        let lines = wrapped(&names);
        assert_eq!(lines.lines().count(), 3);
        assert!(lines.lines().all(|line| line.len() <= WIDTH));
        assert_eq!(wrapped(&[]), "");
    }
}

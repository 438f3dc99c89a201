//! `cargo xtask house`: how large the house is, in figures that are directions.
//!
//! Shipped code is what is below `src` of the published crates that users build, without documentation, tests and blank
//! lines.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, Expr, ExprLit, Item, Lit, Meta, Type, Visibility,
    visit::{self, Visit},
};

use crate::step::{Failed, root};

/// The crates that are counted.
const CRATES: [&str; 5] = ["proto", "core", "tower", "cron", "cli"];

/// The builders whose options are counted.
const BUILDERS: [&str; 4] = [
    "RedlockBuilder",
    "AcquireOptions",
    "RedlockLayerBuilder",
    "SingletonJob",
];

/// The figures, with what each is to become.
#[derive(Debug, Default)]
struct House {
    files: usize,
    lines: usize,
    /// The types by name, with the crate of each.
    types: BTreeMap<String, Vec<String>>,
    options: BTreeMap<String, Vec<String>>,
}

/// Prints the figures.
///
/// # Errors
///
/// A source cannot be read, or is not Rust.
pub(crate) fn run() -> Result<(), Failed> {
    let mut house = House::default();
    for name in CRATES {
        let source = root().join(format!("crates/redlock-{name}/src"));
        let (files, lines) = (house.files, house.lines);
        house.read(&source, name)?;
        let (files, lines) = (house.files - files, house.lines - lines);
        eprintln!("redlock-{name}: {lines} lines of code in {files} files");
    }
    eprint!("{}", house.summary());
    Ok(())
}

impl House {
    /// Counts what is in a folder.
    fn read(&mut self, folder: &Path, of: &str) -> Result<(), Failed> {
        for path in entries(folder)? {
            if path.is_dir() {
                if !path.ends_with("tests") {
                    self.read(&path, of)?;
                }
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs")
            {
                let failed =
                    |error: &dyn std::fmt::Display| Failed(format!("{}: {error}", path.display()));
                let text = fs::read_to_string(&path).map_err(|error| failed(&error))?;
                self.add(&text, of).map_err(|error| failed(&error))?;
            }
        }
        Ok(())
    }

    /// Counts what is in a file.
    fn add(&mut self, text: &str, of: &str) -> syn::Result<()> {
        let file = syn::parse_file(text)?;
        if file.attrs.iter().any(is_of_tests) {
            return Ok(());
        }
        let mut counted = Counted {
            of,
            house: self,
            tests: Vec::new(),
        };
        counted.visit_file(&file);
        let tests = counted.tests;
        let is_code = |(number, line): &(usize, &str)| {
            let line = line.trim();
            let in_tests = tests
                .iter()
                .any(|(first, last)| (first..=last).contains(&number));
            !line.is_empty() && !line.starts_with("//") && !in_tests
        };
        self.files += 1;
        self.lines += (1..).zip(text.lines()).filter(is_code).count();
        Ok(())
    }

    fn summary(&self) -> String {
        let types: usize = self.types.values().map(Vec::len).sum();
        let twice: Vec<String> = self
            .types
            .iter()
            .filter(|(_, of)| of.len() > 1)
            .map(|(name, of)| format!("{name} ({})", of.join(", ")))
            .collect();
        let options = BUILDERS.map(|name| self.options.get(name).map_or(0, Vec::len));
        let mut said = format!(
            "shipped code: {} lines (31000)\nfiles: {} (280)\ntypes: {types} (380)\n\
             options: {} of RedlockBuilder (18), {} of AcquireOptions (8), \
             {} of RedlockLayerBuilder (8), {} of SingletonJob (11)\n\
             names of types that are defined twice or more: {} (0)\n",
            self.lines,
            self.files,
            options[0],
            options[1],
            options[2],
            options[3],
            twice.len(),
        );
        for name in twice {
            said.push_str("  ");
            said.push_str(&name);
            said.push('\n');
        }
        said
    }
}

/// Counts the items of a file.
struct Counted<'a> {
    of: &'a str,
    house: &'a mut House,
    /// The lines of unit tests, from the first to the last.
    tests: Vec<(usize, usize)>,
}

impl<'ast> Visit<'ast> for Counted<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = match item {
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Mod(item) => (&item.attrs, None),
            Item::Fn(item) => (&item.attrs, None),
            Item::Impl(item) => (&item.attrs, None),
            _ => return visit::visit_item(self, item),
        };
        if attributes.iter().any(is_of_tests) {
            let span = syn::spanned::Spanned::span(item);
            self.tests.push((span.start().line, span.end().line));
            return;
        }
        if let Some(name) = name {
            let of = self.house.types.entry(name.to_string()).or_default();
            of.push(self.of.to_owned());
        }
        if let Item::Impl(item) = item
            && item.trait_.is_none()
            && let Type::Path(of) = &*item.self_ty
            && let Some(of) = of.path.segments.last()
        {
            let of = of.ident.to_string();
            let methods = item.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(method) => Some(method),
                _ => None,
            });
            for method in methods.filter(|method| is_option(method)) {
                let options = self.house.options.entry(of.clone()).or_default();
                options.push(method.sig.ident.to_string());
            }
        }
        visit::visit_item(self, item);
    }
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

/// Returns whether an item is for tests only: of this crate, or of its users, who turn the feature `test-util` on.
fn is_of_tests(attribute: &Attribute) -> bool {
    let of_tests = |condition: &Meta| match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::NameValue(feature) => {
            matches!(&feature.value, Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) if name.value() == "test-util")
        }
        Meta::List(_) => false,
    };
    attribute.path().is_ident("cfg")
        && attribute
            .parse_args::<Meta>()
            .is_ok_and(|condition| of_tests(&condition))
}

/// Returns what is in a folder, in the order of the names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let failed = |error: std::io::Error| Failed(format!("{}: {error}", folder.display()));
    let entries = fs::read_dir(folder).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_types_and_options_are_counted_and_tests_are_not() {
        let text = "\
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
    pub fn look(&self) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    struct State;
}
";
        let mut house = House::default();
        house.add(text, "core").unwrap();
        house.add("enum State { One }\n", "core").unwrap();
        house.add("trait State {}\n", "tower").unwrap();
        assert_eq!((house.files, house.lines), (3, 14));
        assert_eq!(house.options["AcquireOptions"], ["ttl"]);
        let said = house.summary();
        assert!(said.contains("State (core, tower)"), "{said}");
        assert!(said.contains("types: 3 "), "{said}");
    }
}

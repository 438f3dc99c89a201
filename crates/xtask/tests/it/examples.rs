//! Each type that a user names has an example, and so has each function that waits or fails, or it is in that of another item.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, Expr, ImplItem, Item, Lit, Meta, ReturnType, Signature, TraitItem, Type, UseTree,
    Visibility,
};

/// The crates that a user names.
const CRATES: [&str; 3] = ["core", "cron", "tower"];

/// The examples of a crate.
#[derive(Default)]
struct Examples {
    /// Those of each type and of its methods.
    of_type: BTreeMap<String, String>,
    /// The types that have one of their own.
    shown: BTreeSet<String>,
    /// The public methods that wait or fail, by type and name, with the examples of their own.
    methods: Vec<(String, String, String)>,
    /// The public functions that wait or fail, and the public traits, with the examples of their own.
    others: Vec<(String, String)>,
}

impl Examples {
    fn of_folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                self.of_folder(&path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).expect("it is text");
                let file = syn::parse_file(&text).expect("it compiles");
                self.of_items(&file.items);
            }
        }
    }

    fn of_items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Struct(item) if is_public(&item.vis) => {
                    self.add_type(item.ident.to_string(), &item.attrs);
                }
                Item::Enum(item) if is_public(&item.vis) => {
                    self.add_type(item.ident.to_string(), &item.attrs);
                }
                Item::Fn(item) if is_public(&item.vis) && waits_or_fails(&item.sig) => {
                    let code = code(&item.attrs);
                    self.others.push((item.sig.ident.to_string(), code));
                }
                Item::Trait(item) if is_public(&item.vis) => {
                    let mut all = code(&item.attrs);
                    for part in &item.items {
                        if let TraitItem::Fn(method) = part {
                            all += &code(&method.attrs);
                        }
                    }
                    self.others.push((item.ident.to_string(), all));
                }
                Item::Impl(item) if item.trait_.is_none() => {
                    let Some(name) = name_of(&item.self_ty) else {
                        continue;
                    };
                    for part in &item.items {
                        if let ImplItem::Fn(method) = part
                            && is_public(&method.vis)
                        {
                            let own = self.add(name.clone(), &method.attrs);
                            if waits_or_fails(&method.sig) {
                                let method = method.sig.ident.to_string();
                                self.methods.push((name.clone(), method, own));
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn add_type(&mut self, name: String, attributes: &[Attribute]) {
        if !self.add(name.clone(), attributes).is_empty() {
            self.shown.insert(name);
        }
    }

    fn add(&mut self, name: String, attributes: &[Attribute]) -> String {
        let code = code(attributes);
        *self.of_type.entry(name).or_default() += &code;
        code
    }

    /// Returns the exported items of which no example shows anything.
    fn missing(&self, exported: &BTreeSet<String>) -> Vec<String> {
        let all: String = self.of_type.values().cloned().collect();
        let others = self.others.iter().map(|(_, code)| code.as_str());
        let all = all + &others.collect::<String>();
        let mut missing = Vec::new();
        for name in self.of_type.keys().filter(|name| exported.contains(*name)) {
            // A kind of errors, say, is shown where the error is.
            if !self.shown.contains(name) && !all.contains(name.as_str()) {
                missing.push(name.clone());
            }
        }
        for (name, code) in &self.others {
            if exported.contains(name) && code.is_empty() {
                missing.push(name.clone());
            }
        }
        for (name, method, own) in &self.methods {
            let is_shown = ['.', ':'].map(|before| all.contains(&format!("{before}{method}(")));
            if exported.contains(name) && own.is_empty() && !is_shown.contains(&true) {
                missing.push(format!("{name}::{method}"));
            }
        }
        missing
    }
}

/// Returns whether a function waits for something or may fail: its signature does not say how it is called.
///
/// The signature and the first line of any other function say all of it, and an example would repeat them.
fn waits_or_fails(function: &Signature) -> bool {
    let may_fail = match &function.output {
        ReturnType::Type(_, output) => name_of(output).is_some_and(|name| name == "Result"),
        ReturnType::Default => false,
    };
    may_fail || function.asyncness.is_some()
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn name_of(of: &Type) -> Option<String> {
    let Type::Path(path) = of else {
        return None;
    };
    Some(path.path.segments.last()?.ident.to_string())
}

/// Returns the code in an item's documentation.
fn code(attributes: &[Attribute]) -> String {
    let mut code = String::new();
    let mut is_code = false;
    for attribute in attributes {
        let Meta::NameValue(doc) = &attribute.meta else {
            continue;
        };
        let Expr::Lit(text) = &doc.value else {
            continue;
        };
        let Lit::Str(line) = &text.lit else { continue };
        if line.value().trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            code += &line.value();
            code.push('\n');
        }
    }
    code
}

/// Adds the names that a crate gives out.
fn exported(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => exported(&path.tree, names),
        UseTree::Group(group) => group.items.iter().for_each(|tree| exported(tree, names)),
        UseTree::Name(name) => {
            names.insert(name.ident.to_string());
        }
        UseTree::Rename(_) | UseTree::Glob(_) => {}
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../redlock-{name}/src"))
}

#[test]
fn each_type_and_each_function_that_waits_or_fails_has_an_example() {
    let mut missing = Vec::new();
    for name in CRATES {
        let text = fs::read_to_string(source(name).join("lib.rs")).expect("it is text");
        let file = syn::parse_file(&text).expect("it compiles");
        let mut names = BTreeSet::new();
        for item in &file.items {
            if let Item::Use(item) = item
                && is_public(&item.vis)
            {
                exported(&item.tree, &mut names);
            }
        }
        assert!(names.len() > 15, "{name}: {names:?}");
        let mut examples = Examples::default();
        examples.of_folder(&source(name));
        let of_crate = examples.missing(&names);
        missing.extend(of_crate.into_iter().map(|item| format!("{name}: {item}")));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn an_item_that_no_example_shows_is_found() {
    let file = syn::parse_file(
        "
        /// A thing.
        ///
        /// ```
        /// let thing = Thing::of_size(1).grown();
        /// ```
        pub struct Thing;

        impl Thing {
            /// Makes one.
            pub fn of_size(size: u32) -> Self { Self }

            /// Makes it grow.
            pub fn grown(self) -> Result<Self, Error> { Ok(self) }

            /// Makes it shrink, as `shrunk()`.
            pub fn shrunk(self) -> std::io::Result<Self> { Ok(self) }

            /// Returns the size.
            pub fn size(&self) -> u32 { 1 }

            /// Waits until it has grown.
            pub async fn has_grown(&self) -> u32 { 1 }
        }

        /// Another.
        pub struct Other;

        /// One that is not given out.
        pub struct Hidden;
        ",
    );
    let mut examples = Examples::default();
    examples.of_items(&file.expect("it compiles").items);
    let names = BTreeSet::from(["Thing".to_owned(), "Other".to_owned()]);
    let missing = ["Other", "Thing::shrunk", "Thing::has_grown"];
    assert_eq!(examples.missing(&names), missing);
}

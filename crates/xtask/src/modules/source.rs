//! The modules of a crate as they are written down: their items, their imports, and the paths in them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, mem,
    path::{Path, PathBuf},
};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Attribute, Ident, Item, ItemMod, ItemUse, Macro, Meta, UseTree,
    spanned::Spanned,
    visit::{self, Visit},
};

use crate::step::Failed;

/// A module, by its place in [`Source`]; the crate's root is the first.
pub(super) type Id = usize;

/// All modules of a crate, but for those of its unit tests.
#[derive(Debug, Default)]
pub(super) struct Source {
    modules: Vec<Module>,
}

/// What is written in a module.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) name: String,
    /// It is its own parent if it is the root.
    pub(super) parent: Id,
    pub(super) file: PathBuf,
    pub(super) children: BTreeMap<String, Id>,
    /// The names of its own items.
    pub(super) items: BTreeSet<String>,
    /// What it imports or re-exports, by the names that this has here.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    /// The modules of which it imports all.
    pub(super) globs: Vec<Vec<String>>,
    /// Every path in it, those of imports included.
    pub(super) paths: Vec<Written>,
}

/// A path where it is written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

impl Source {
    /// Reads the crate that begins with the file `root`.
    ///
    /// # Errors
    ///
    /// A file of it is not there, or is not Rust.
    pub(super) fn read(root: &Path) -> Result<Self, Failed> {
        let mut source = Self::default();
        let folder = root.parent().unwrap_or_else(|| Path::new("."));
        source.read_file(root, folder, "crate".to_owned(), 0)?;
        Ok(source)
    }

    /// Reads a crate of one file.
    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        let mut source = Self::default();
        let file = syn::parse_file(text).unwrap();
        let [file_name, folder] = ["lib.rs", "."].map(Path::new);
        source
            .add(&file.items, file_name, folder, "crate".to_owned(), 0)
            .unwrap();
        source
    }

    /// The module `id`.
    pub(super) fn module(&self, id: Id) -> &Module {
        &self.modules[id]
    }

    /// How many modules there are.
    pub(super) fn len(&self) -> usize {
        self.modules.len()
    }

    /// The names on the way from the root to a module.
    pub(super) fn path(&self, id: Id) -> String {
        let module = self.module(id);
        if id == 0 {
            return module.name.clone();
        }
        format!("{}::{}", self.path(module.parent), module.name)
    }

    fn read_file(
        &mut self,
        file: &Path,
        folder: &Path,
        name: String,
        parent: Id,
    ) -> Result<Id, Failed> {
        let failed = |error: &dyn std::fmt::Display| Failed(format!("{}: {error}", file.display()));
        let text = fs::read_to_string(file).map_err(|error| failed(&error))?;
        let items = syn::parse_file(&text)
            .map_err(|error| failed(&error))?
            .items;
        self.add(&items, file, folder, name, parent)
    }

    /// Adds a module of these items; the files of its children are in `folder`.
    fn add(
        &mut self,
        items: &[Item],
        file: &Path,
        folder: &Path,
        name: String,
        parent: Id,
    ) -> Result<Id, Failed> {
        let id = self.modules.len();
        self.modules.push(Module::default());
        let mut reader = Reader::default();
        for item in items {
            reader.visit_item(item);
        }
        let Reader { mut module, below } = reader;
        for child in below {
            let name = child.ident.to_string();
            let inner = folder.join(&name);
            let child = match &child.content {
                Some((_, items)) => self.add(items, file, &inner, name.clone(), id)?,
                None => {
                    let [beside, within] =
                        [folder.join(format!("{name}.rs")), inner.join("mod.rs")];
                    let file = if beside.is_file() { beside } else { within };
                    self.read_file(&file, &inner, name.clone(), id)?
                }
            };
            module.children.insert(name, child);
        }
        self.modules[id] = Module {
            name,
            parent,
            file: file.to_owned(),
            ..module
        };
        Ok(id)
    }
}

/// Gathers what one module has, and its children to be read next.
#[derive(Default)]
struct Reader<'ast> {
    module: Module,
    below: Vec<&'ast ItemMod>,
}

impl<'ast> Visit<'ast> for Reader<'ast> {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = head(item);
        if attributes.iter().any(is_for_tests) {
            return;
        }
        self.module.items.extend(name.map(Ident::to_string));
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.below.push(item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&item.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names = path
                .segments
                .iter()
                .map(|segment| segment.ident.to_string());
            self.note(names.collect(), path.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

impl Reader<'_> {
    fn note(&mut self, path: Vec<String>, span: Span) {
        let line = span.start().line;
        self.module.paths.push(Written { path, line });
    }

    fn import(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        let depth = before.len();
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(&path.tree, before);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before);
                }
            }
            UseTree::Glob(star) => {
                self.note(before.clone(), star.span());
                self.module.globs.push(before.clone());
            }
            UseTree::Name(name) => self.import_as(before, &name.ident, None),
            UseTree::Rename(name) => self.import_as(before, &name.ident, Some(&name.rename)),
        }
        before.truncate(depth);
    }

    fn import_as(&mut self, before: &[String], name: &Ident, new: Option<&Ident>) {
        let mut path = before.to_vec();
        if name != "self" {
            path.push(name.to_string());
        }
        self.note(path.clone(), name.span());
        let here = new.map(Ident::to_string).or_else(|| path.last().cloned());
        self.module.imports.extend(here.map(|here| (here, path)));
    }

    /// Finds the paths in what a macro is given, whatever the macro makes of it.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        let mut place = Span::call_site();
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.found(&mut path, place);
                        place = name.span();
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => colons += 1,
                token => {
                    self.found(&mut path, place);
                    colons = 0;
                    if let TokenTree::Group(group) = token {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.found(&mut path, place);
    }

    fn found(&mut self, path: &mut Vec<String>, place: Span) {
        if !path.is_empty() {
            self.note(mem::take(path), place);
        }
    }
}

/// The attributes and the name of an item, as far as they matter here.
fn head(item: &Item) -> (&[Attribute], Option<&Ident>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Impl(item) => (&item.attrs, None),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Mod(item) => (&item.attrs, None),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Union(item) => (&item.attrs, Some(&item.ident)),
        Item::Use(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}

/// Says whether an attribute is `#[cfg(test)]`, or the same with more conditions.
fn is_for_tests(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string().replace(' ', "");
            condition == "test" || condition.starts_with("all(test,")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let source = Source::of(text);
        let paths = source.modules.iter().flat_map(|module| &module.paths);
        paths.map(|written| written.path.join("::")).collect()
    }

    #[test]
    fn imports_are_read_in_groups_under_new_names_and_whole() {
        let source = Source::of("use a::{self, b::{C, D as E}, f::*}; use super::g;");
        let module = source.module(0);
        let imported = |name: &str| module.imports[name].join("::");
        assert_eq!(imported("a"), "a");
        assert_eq!(imported("C"), "a::b::C");
        assert_eq!(imported("E"), "a::b::D");
        assert_eq!(imported("g"), "super::g");
        assert_eq!(module.globs, [["a", "f"]]);
        assert_eq!(module.imports.len(), 4);
    }

    #[test]
    fn paths_are_read_in_types_bodies_and_macros() {
        let text = r#"
            struct A(crate::b::B);
            impl crate::c::C for A { fn d() { super::e::f(); } }
            fn g() { println!("crate::none {}", [crate::h::I::new(1)]); }
        "#;
        let found = paths(text);
        for path in [
            "crate::b::B",
            "crate::c::C",
            "super::e::f",
            "crate::h::I::new",
        ] {
            assert!(
                found.iter().any(|found| found == path),
                "{path} in {found:?}"
            );
        }
        assert!(!found.iter().any(|path| path.contains("none")), "{found:?}");
    }

    #[test]
    fn what_is_compiled_for_tests_only_is_left_out() {
        let text = "
            #[cfg(test)] mod tests { use crate::a; }
            #[cfg(test)] use crate::b;
            #[cfg(all(test, unix))] fn c() { crate::d() }
            #[cfg(feature = \"e\")] use crate::e;
        ";
        assert_eq!(paths(text), ["crate::e"]);
        assert_eq!(Source::of(text).len(), 1);
    }

    #[test]
    fn a_path_has_the_line_where_it_is_written() {
        let source = Source::of("\n\nuse a::{\n    b,\n    c,\n};\n");
        let lines: Vec<_> = source
            .module(0)
            .paths
            .iter()
            .map(|path| path.line)
            .collect();
        assert_eq!(lines, [4, 5]);
    }
}

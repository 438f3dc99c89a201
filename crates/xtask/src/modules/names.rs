//! Which module a path leads to.

use super::source::{Id, Source};

impl Source {
    /// The module that has the item to which `path` leads in the module `from`.
    ///
    /// `None` if it leads out of the crate, or is a local name.
    /// Where an import goes on to another module, the module at its end is the answer.
    pub(super) fn home(&self, from: Id, path: &[String]) -> Option<Id> {
        self.follow(from, path, &mut Vec::new())
    }

    /// As [`home`](Self::home); `open` are the names that are looked up on the way here.
    fn follow(&self, from: Id, path: &[String], open: &mut Vec<(Id, String)>) -> Option<Id> {
        let (first, rest) = path.split_first()?;
        let module = self.module(from);
        match &**first {
            "crate" => self.below(0, rest, open),
            "self" | "super" => {
                let next = if first == "self" { from } else { module.parent };
                if rest.first().is_some_and(|name| name == "super") {
                    self.follow(next, rest, open)
                } else {
                    self.below(next, rest, open)
                }
            }
            _ => self.find(from, first, rest, open),
        }
    }

    /// Where `path` leads from `module`, which is `module` itself if that does not have the next name.
    fn below(&self, module: Id, path: &[String], open: &mut Vec<(Id, String)>) -> Option<Id> {
        match path.split_first() {
            None => Some(module),
            Some((name, rest)) => self.find(module, name, rest, open).or(Some(module)),
        }
    }

    /// Where `name` of `module`, and `rest` behind it, lead.
    fn find(
        &self,
        module: Id,
        name: &str,
        rest: &[String],
        open: &mut Vec<(Id, String)>,
    ) -> Option<Id> {
        let written = self.module(module);
        if let Some(child) = written.children.get(name) {
            return self.below(*child, rest, open);
        }
        if written.items.contains(name) {
            return Some(module);
        }
        // An import of a name by itself, as that of a crate, and two modules that import all of each other.
        let look = (module, name.to_owned());
        if open.contains(&look) {
            return None;
        }
        open.push(look);
        let imported = written.imports.get(name).and_then(|import| {
            let path: Vec<String> = import.iter().chain(rest).cloned().collect();
            self.follow(module, &path, open)
        });
        let found = imported.or_else(|| {
            written.globs.iter().find_map(|glob| {
                let all = self.follow(module, glob, open)?;
                self.find(all, name, rest, open)
            })
        });
        open.pop();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRATE: &str = "
        mod a {
            pub struct A;
            pub mod deep { pub fn f() {} pub use super::super::b::B as Other; }
        }
        mod b { pub use other_crate::Outside; pub struct B; pub enum Kind { One } }
        mod c { use super::*; }
        mod d { pub(crate) use super::b; macro_made! { pub struct Made; } }
        pub use self::a::{A, deep};
        pub use b::Kind::{self, One};
    ";

    /// Where a path in the module `c` leads.
    fn home(path: &str) -> Option<String> {
        let source = Source::of(CRATE);
        let from = source.module(0).children["c"];
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        source.home(from, &path).map(|id| source.path(id))
    }

    #[test]
    fn re_exports_are_followed_to_where_the_item_is() {
        for (path, expected) in [
            ("crate::A", "crate::a"),
            ("crate::deep::f", "crate::a::deep"),
            ("crate::deep::Other", "crate::b"),
            ("super::a::deep::Other", "crate::b"),
            ("crate::Kind::One", "crate::b"),
            ("crate::One", "crate::b"),
            ("crate::d::b::B", "crate::b"),
            ("self::super::a::A", "crate::a"),
        ] {
            assert_eq!(home(path).as_deref(), Some(expected), "{path}");
        }
    }

    #[test]
    fn names_that_were_imported_with_all_others_are_found() {
        assert_eq!(home("A").as_deref(), Some("crate::a"));
        assert_eq!(home("b::B").as_deref(), Some("crate::b"));
    }

    #[test]
    fn what_a_macro_made_is_in_the_module_that_the_path_names() {
        assert_eq!(home("crate::d::Made").as_deref(), Some("crate::d"));
    }

    #[test]
    fn what_another_module_got_from_outside_is_had_from_that_module() {
        assert_eq!(home("crate::b::Outside").as_deref(), Some("crate::b"));
    }

    #[test]
    fn other_crates_and_local_names_lead_nowhere() {
        for path in ["std::fmt::Debug", "local", "other_crate::b"] {
            assert_eq!(home(path), None, "{path}");
        }
    }

    #[test]
    fn imports_that_lead_to_each_other_end() {
        let source =
            Source::of("mod a { pub use super::b::*; } mod b { pub use super::a::*; } use serde;");
        let path = ["a", "X"].map(str::to_owned);
        assert_eq!(source.home(0, &path), Some(source.module(0).children["a"]));
        assert_eq!(source.home(0, &["serde".to_owned()]), None);
    }
}

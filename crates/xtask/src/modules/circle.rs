//! The circles among the modules of each folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::source::{Id, Source};

/// Modules of one folder each of which uses, over others of them, all the others.
#[derive(Debug)]
pub(super) struct Circle {
    /// The module whose children they are.
    folder: String,
    /// The uses among them, each with the first place where it is written.
    arrows: Vec<Arrow>,
}

#[derive(Clone, Debug)]
struct Arrow {
    from: String,
    to: String,
    /// The path, the file and the line.
    place: String,
}

/// The uses among the modules of each folder, each with the first place where it is written.
type Folders = BTreeMap<Id, BTreeMap<(Id, Id), String>>;

/// Finds the uses among the modules of each folder of a crate.
fn folders(source: &Source) -> Folders {
    let mut folders = Folders::new();
    for from in 0..source.len() {
        for written in &source.module(from).paths {
            let Some(home) = source.home(from, &written.path) else {
                continue;
            };
            if let Some((folder, user, used)) = siblings(source, from, home) {
                let arrows = folders.entry(folder).or_default();
                let file = source.module(from).file.file_name().unwrap_or_default();
                arrows.entry((user, used)).or_insert_with(|| {
                    let (path, line) = (written.path.join("::"), written.line);
                    format!("{path} in {}, {}:{line}", source.path(from), file.display())
                });
            }
        }
    }
    folders
}

/// Returns the longest chain of modules of one folder each of which uses the next, from the top; the crate has no circle.
pub(super) fn longest_chain(source: &Source) -> Vec<String> {
    fn below(
        arrows: &BTreeMap<(Id, Id), String>,
        at: Id,
        known: &mut BTreeMap<Id, Vec<Id>>,
    ) -> Vec<Id> {
        if let Some(chain) = known.get(&at) {
            return chain.clone();
        }
        let next = arrows.range((at, 0)..=(at, Id::MAX));
        let next: Vec<Id> = next.map(|((_, to), _)| *to).collect();
        let chains = next.into_iter().map(|to| below(arrows, to, known));
        let mut chain = chains.max_by_key(Vec::len).unwrap_or_default();
        chain.insert(0, at);
        known.insert(at, chain.clone());
        chain
    }
    let folders = folders(source);
    let chains = folders.values().map(|arrows| {
        let mut known = BTreeMap::new();
        let tops = arrows.keys().map(|(from, _)| *from);
        let chains = tops.map(|top| below(arrows, top, &mut known));
        chains.max_by_key(Vec::len).unwrap_or_default()
    });
    let chain = chains.max_by_key(Vec::len).unwrap_or_default();
    chain.into_iter().map(|id| source.path(id)).collect()
}

/// Finds every circle of a crate.
pub(super) fn circles(source: &Source) -> Vec<Circle> {
    let mut circles = Vec::new();
    for (folder, arrows) in folders(source) {
        for members in knots(&arrows.keys().copied().collect()) {
            let within = |(from, to): &(Id, Id)| members.contains(from) && members.contains(to);
            let name = |id: Id| source.module(id).name.clone();
            let arrows = arrows.iter().filter(|(ends, _)| within(ends));
            circles.push(Circle {
                folder: source.path(folder),
                arrows: arrows
                    .map(|((from, to), place)| Arrow {
                        from: name(*from),
                        to: name(*to),
                        place: place.clone(),
                    })
                    .collect(),
            });
        }
    }
    circles
}

/// The folder where the ways to two modules part, and the two children of it that lead to them.
///
/// `None` if one of the two is above the other, or is it.
fn siblings(source: &Source, from: Id, to: Id) -> Option<(Id, Id, Id)> {
    let [from, to] = [from, to].map(|id| way(source, id));
    let parting = from.iter().zip(&to).position(|(a, b)| a != b)?;
    Some((from[parting - 1], from[parting], to[parting]))
}

/// The modules on the way from the root to one, which is the last.
fn way(source: &Source, id: Id) -> Vec<Id> {
    let mut way = if id == 0 {
        Vec::new()
    } else {
        way(source, source.module(id).parent)
    };
    way.push(id);
    way
}

/// Groups of two and more from each of which all others of the group can be reached.
fn knots(arrows: &BTreeSet<(Id, Id)>) -> Vec<BTreeSet<Id>> {
    let reached = |from: Id| {
        let mut reached = BTreeSet::new();
        let mut left = vec![from];
        while let Some(at) = left.pop() {
            let next = arrows.range((at, 0)..=(at, Id::MAX)).map(|(_, to)| *to);
            left.extend(next.filter(|to| reached.insert(*to)));
        }
        reached
    };
    let all: BTreeMap<Id, BTreeSet<Id>> = arrows
        .iter()
        .map(|(from, _)| (*from, reached(*from)))
        .collect();
    let knot = |id: Id| -> BTreeSet<Id> {
        let others = all[&id].iter().copied();
        others
            .filter(|other| all.get(other).is_some_and(|back| back.contains(&id)))
            .collect()
    };
    let knots: BTreeSet<BTreeSet<Id>> = all.keys().map(|id| knot(*id)).collect();
    knots.into_iter().filter(|knot| !knot.is_empty()).collect()
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: BTreeSet<&str> = self.arrows.iter().map(|arrow| &*arrow.from).collect();
        let names: Vec<&str> = names.into_iter().collect();
        writeln!(f, "a circle in {}: {}", self.folder, names.join(", "))?;
        for Arrow { from, to, place } in &self.arrows {
            writeln!(f, "    {from} -> {to}: {place}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles of a crate, each as its folder and its arrows.
    fn found(text: &str) -> Vec<String> {
        let circles = circles(&Source::of(text));
        let told = circles.iter().map(|circle| {
            let arrows = circle.arrows.iter();
            let arrows: Vec<_> = arrows
                .map(|arrow| format!("{}>{}", arrow.from, arrow.to))
                .collect();
            format!("{} {}", circle.folder, arrows.join(" "))
        });
        told.collect()
    }

    #[test]
    fn modules_that_use_each_other_through_re_exports_of_the_root_are_a_circle() {
        let text = "
            mod a { use crate::B; pub struct A; }
            mod b { use crate::c::C; pub struct B; }
            mod c { fn f(_: crate::A) {} pub struct C; }
            mod d { use crate::{A, B}; }
            pub use self::{a::A, b::B};
        ";
        assert_eq!(found(text), ["crate a>b b>c c>a"]);
    }

    #[test]
    fn a_circle_within_a_folder_counts() {
        let text = "mod top { mod a { use super::b; } mod b { use crate::top::a::A; } }";
        assert_eq!(found(text), ["crate::top a>b b>a"]);
    }

    #[test]
    fn modules_below_stand_for_their_folder_where_its_siblings_are_used() {
        let text = "
            mod a { mod deep { use crate::b::B; } pub struct A; }
            mod b { pub struct B; pub mod deep { use crate::a; } }
        ";
        assert_eq!(found(text), ["crate a>b b>a"]);
    }

    #[test]
    fn a_child_and_its_parent_are_no_circle() {
        let text = "
            mod top {
                pub struct State(a::A);
                mod a { use super::State; pub struct A; }
                mod b { impl crate::top::State {} use super::a::A; }
            }
        ";
        assert_eq!(found(text), [""; 0]);
    }

    #[test]
    fn two_circles_of_one_folder_are_two() {
        let text = "
            mod a { use crate::b; } mod b { use crate::{a, c}; }
            mod c { use crate::d; } mod d { use crate::c; }
        ";
        assert_eq!(found(text), ["crate a>b b>a", "crate c>d d>c"]);
    }

    #[test]
    fn the_longest_chain_is_of_modules_of_one_folder() {
        let text = "
            mod a { use crate::{b, c}; mod x { use super::y; } mod y {} }
            mod b {} mod c { use crate::d; } mod d { mod z {} }
        ";
        let chain = longest_chain(&Source::of(text));
        assert_eq!(chain, ["crate::a", "crate::c", "crate::d"]);
        assert!(longest_chain(&Source::of("mod a {}")).is_empty());
    }

    #[test]
    fn a_circle_is_told_with_where_each_arrow_is_written() {
        let circles = circles(&Source::of(
            "mod a { use crate::b; }\nmod b {\n  use crate::a; }",
        ));
        let expected = "\
a circle in crate: a, b
    a -> b: crate::b in crate::a, lib.rs:1
    b -> a: crate::a in crate::b, lib.rs:3
";
        assert_eq!(circles[0].to_string(), expected);
    }
}

//! The change that makes a mutant, as `git diff` prints it.

use std::collections::BTreeMap;

/// What is changed in which files.
#[derive(Debug, Default)]
pub(super) struct Patch {
    pub(super) files: Vec<FilePatch>,
}

/// What is changed in one file.
#[derive(Debug, Default)]
pub(super) struct FilePatch {
    /// From the root of the repository.
    pub(super) path: String,
    hunks: Vec<Hunk>,
}

/// Lines that follow each other, and those that take their place.
///
/// Where they are in the file is not kept: the lines say it, without their indentation, and the function that they are in if
/// the hunk's head names one.
/// So a mutant survives that its code is moved, nested deeper or less deep.
#[derive(Debug, Default)]
struct Hunk {
    /// The name of the function.
    within: Option<String>,
    // invariant: there is one at least, because nothing is found by no lines.
    before: Vec<String>,
    after: Vec<String>,
}

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    ///
    /// It is none, adds or removes whole files, or a hunk has fewer lines than it says.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut files: Vec<FilePatch> = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(path) = line.strip_prefix("+++ ") {
                let path = path
                    .strip_prefix("b/")
                    .ok_or("a file is not of the form b/PATH")?;
                files.push(FilePatch {
                    path: path.to_owned(),
                    hunks: Vec::new(),
                });
            } else if line.starts_with("@@ ") {
                let file = files.last_mut().ok_or("a hunk is of no file")?;
                file.hunks.push(Hunk::parse(line, &mut lines)?);
            } else if !["diff --git ", "index ", "--- a/"]
                .iter()
                .any(|known| line.starts_with(known))
            {
                return Err(format!("a line is not of a patch: {line}"));
            }
        }
        if files.is_empty() || files.iter().any(|file| file.hunks.is_empty()) {
            return Err("it changes nothing".to_owned());
        }
        Ok(Self { files })
    }
}

impl FilePatch {
    /// Returns `source` with the change in it.
    ///
    /// # Errors
    ///
    /// The lines of a hunk are not there exactly once: the code has changed, and the mutant must follow it.
    pub(super) fn apply(&self, source: &str) -> Result<String, String> {
        let mut lines: Vec<&str> = source.split('\n').collect();
        for hunk in &self.hunks {
            let places = hunk.places(&lines);
            let &[place] = &places[..] else {
                let found = if places.is_empty() {
                    "not"
                } else {
                    "more than once"
                };
                let within = hunk.within.as_deref();
                let within =
                    within.map_or(String::new(), |name| format!(" in the function {name}"));
                return Err(format!(
                    "these lines of {} are {found} there{within}, and must be there once:\n{}",
                    self.path,
                    hunk.before.join("\n")
                ));
            };
            let after = hunk.after.iter().map(String::as_str);
            lines.splice(place..place + hunk.before.len(), after);
        }
        Ok(lines.join("\n"))
    }

    /// Returns the file that the patch changes, and its source before and after: the one that the patch names, or, after a
    /// move, the only other file that the patch fits, in its crate or else anywhere.
    ///
    /// # Errors
    ///
    /// It fits none, or several but not the one that it names.
    pub(super) fn apply_to<'a>(
        &self,
        sources: &'a Sources,
    ) -> Result<(&'a str, &'a str, String), String> {
        let named = sources.get_key_value(&self.path);
        let applied = match named {
            Some((path, source)) => self.apply(source).map(|after| (&**path, &**source, after)),
            None => Err(format!("{} is not there", self.path)),
        };
        applied.or_else(|error| {
            let end = self.path.rsplit('.').next();
            let others =
                |(path, _): &(&String, _)| path.rsplit('.').next() == end && **path != self.path;
            let fits = sources.iter().filter(others).filter_map(|(path, source)| {
                let after = self.apply(source).ok()?;
                Some((&**path, &**source, after))
            });
            let mut fits: Vec<_> = fits.collect();
            let is_near = |path| crate_of(path) == crate_of(&self.path);
            if fits.iter().any(|(path, ..)| is_near(path)) {
                fits.retain(|(path, ..)| is_near(path));
            }
            match fits.len() {
                1 => Ok(fits.remove(0)),
                0 => Err(error),
                _ => {
                    let paths: Vec<&str> = fits.iter().map(|(path, ..)| *path).collect();
                    Err(format!("{error}\nthey are in {}", paths.join(" and ")))
                }
            }
        })
    }
}

/// The sources that mutants change, by their paths from the root of the repository.
pub(super) type Sources = BTreeMap<String, String>;

/// Returns the folder that a file may be moved in: its crate, or its first folder.
fn crate_of(path: &str) -> &str {
    let depth = if path.starts_with("crates/") || path.starts_with("examples/") {
        2
    } else {
        1
    };
    let end = path.match_indices('/').nth(depth - 1);
    end.map_or(path, |(end, _)| &path[..end])
}

impl Hunk {
    /// Reads a hunk whose first line, `@@ -1,2 +1,3 @@`, is `head`.
    fn parse<'a>(head: &str, lines: &mut impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let wrong = || format!("a hunk has another head or length: {head}");
        let mut ranges = head.split(' ').skip(1);
        let mut length = |sign: char| {
            let range = ranges.next()?.strip_prefix(sign)?;
            range
                .split_once(',')
                .map_or(Some(1), |(_, length)| length.parse().ok())
        };
        let (removed, added) = length('-').zip(length('+')).ok_or_else(wrong)?;
        let mut hunk = Self {
            within: function(head),
            ..Self::default()
        };
        while hunk.before.len() < removed || hunk.after.len() < added {
            let line = lines.next().ok_or_else(wrong)?;
            // Some editors take the blank away that stands for an empty line.
            let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
            if sign == " " || sign == "-" {
                hunk.before.push(text.to_owned());
            }
            if sign == " " || sign == "+" {
                hunk.after.push(text.to_owned());
            }
            if ![" ", "-", "+"].contains(&sign) {
                return Err(wrong());
            }
        }
        if (hunk.before.len(), hunk.after.len()) != (removed, added) {
            return Err(wrong());
        }
        if hunk.before.is_empty() {
            return Err(
                "a hunk says nowhere where it belongs: give it a line of context".to_owned(),
            );
        }
        Ok(hunk)
    }

    /// Returns where the lines are: as they stand in the patch, or if they are nowhere, with another indentation.
    fn places(&self, lines: &[&str]) -> Vec<usize> {
        let places = self.places_of(lines, |line, before| line == before);
        if !places.is_empty() {
            return places;
        }
        self.places_of(lines, |line, before| {
            line.trim_start() == before.trim_start()
        })
    }

    fn places_of(&self, lines: &[&str], is_same: fn(&str, &str) -> bool) -> Vec<usize> {
        let windows = lines.windows(self.before.len()).enumerate();
        let places = windows.filter(|(_, lines)| {
            let mut pairs = lines.iter().zip(&self.before);
            pairs.all(|(line, before)| is_same(line, before))
        });
        let places = places.map(|(place, _)| place);
        match &self.within {
            None => places.collect(),
            Some(within) => {
                // The function may begin in the lines themselves.
                let begun = |place: usize| {
                    let until = lines[..place + self.before.len()].iter().rev();
                    let mut names = until.filter_map(|line| function(line));
                    names.next()
                };
                places
                    .filter(|place| begun(*place).as_ref() == Some(within))
                    .collect()
            }
        }
    }
}

/// Returns the name of the function, in Rust or in Lua, that begins in a line.
fn function(line: &str) -> Option<String> {
    let mut names = ["fn ", "local function "].into_iter();
    let text = names.find_map(|word| line.split(word).nth(1))?;
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(text[..end.unwrap_or(text.len())].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/a.rs b/a.rs
index 1..2 100644
--- a/a.rs
+++ b/a.rs
@@ -40,2 +40,3 @@ impl A {
 one
-two
+2
+and a half

@@ -90 +90,0 @@
-five
--- a/b.lua
+++ b/b.lua
@@ -1 +1 @@
--- a comment
+-- another
";

    fn applied(patch: &str, source: &str) -> Result<String, String> {
        Patch::parse(patch)?.files[0].apply(source)
    }

    #[test]
    fn a_patch_changes_what_it_names_wherever_that_is() {
        let patch = PATCH.replace("+and a half\n\n", "+and a half\n");
        let changed = applied(&patch, "zero\none\ntwo\nfour\nfive\n");
        assert_eq!(changed.as_deref(), Ok("zero\none\n2\nand a half\nfour\n"));
        let files = Patch::parse(&patch).unwrap().files;
        assert_eq!(
            files[1].apply("-- a comment\n").as_deref(),
            Ok("-- another\n")
        );
        assert_eq!([&*files[0].path, &*files[1].path], ["a.rs", "b.lua"]);
    }

    #[test]
    fn a_patch_fits_code_that_was_moved_and_nested() {
        let patch = Patch::parse(
            "--- a/crates/a/x.rs\n+++ b/crates/a/x.rs\n@@ -1 +1 @@\n-    one\n+    1\n",
        );
        let file = &patch.unwrap().files[0];
        let sources = |files: &[(&str, &str)]| -> Sources {
            let files = files.iter();
            files
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect()
        };
        let moved = sources(&[
            ("crates/a/y/z.rs", "two\n        one\n"),
            ("crates/b/x.rs", "one\n"),
        ]);
        let (path, _, after) = file.apply_to(&moved).unwrap();
        assert_eq!((path, &*after), ("crates/a/y/z.rs", "two\n    1\n"));
        let to_another_crate = sources(&[("crates/a/y/z.rs", "two\n"), ("crates/b/x.rs", "one\n")]);
        let (path, ..) = file.apply_to(&to_another_crate).unwrap();
        assert_eq!(path, "crates/b/x.rs");
        let copied = sources(&[("crates/a/y.rs", "one\n"), ("crates/a/z.rs", "one\n")]);
        let error = file.apply_to(&copied).unwrap_err();
        assert!(error.contains("crates/a/y.rs and crates/a/z.rs"), "{error}");
        assert!(
            file.apply_to(&sources(&[("crates/a/x.rs", "two\n")]))
                .is_err()
        );
    }

    #[test]
    fn a_patch_that_names_a_function_fits_lines_that_others_have_too() {
        let patch =
            "--- a/a.rs\n+++ b/a.rs\n@@ -4 +4 @@ impl A { fn second(&self) {\n-    one\n+    1\n";
        let source =
            "fn first() {\n    one\n}\npub fn second() {\n    one\n}\nfn third() {\n    one\n}\n";
        let changed = applied(patch, source).unwrap();
        assert_eq!(
            changed,
            source.replacen("second() {\n    one", "second() {\n    1", 1)
        );
        assert!(applied(&patch.replace("second", "fourth"), source).is_err());
        let patch = patch.replace("fn second(&self)", "local function second");
        let lua = source.replace("pub fn ", "local function ");
        assert!(applied(&patch, &lua).unwrap().contains("second() {\n    1"));
    }

    #[test]
    fn an_empty_line_of_context_may_have_lost_its_blank() {
        let patch = "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n\n-two\n+2\n";
        assert_eq!(applied(patch, "one\n\ntwo\n").as_deref(), Ok("one\n\n2\n"));
    }

    #[test]
    fn lines_that_are_not_there_once_are_an_error() {
        let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n";
        assert_eq!(applied(patch, "one\n").as_deref(), Ok("1\n"));
        for source in ["one\none\n", "two\n", "one more\n", ""] {
            assert!(applied(patch, source).is_err(), "{source}");
        }
    }

    #[test]
    fn what_is_no_patch_is_an_error() {
        for text in [
            "",
            "--- a/a\n+++ b/a\n",
            "@@ -1 +1 @@\n-one\n+1\n",
            "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n",
            "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n-two\n+1\n",
            "--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+one\n",
            "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\nmore\n",
            "--- a/a\n+++ b/a\n@@ one @@\n-one\n+1\n",
        ] {
            assert!(Patch::parse(text).is_err(), "{text}");
        }
    }
}

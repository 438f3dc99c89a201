//! The change that makes a mutant, as `git diff` prints it.

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
/// Where they are in the file is not kept: the lines say it, and whatever else changes moves them.
#[derive(Debug, Default)]
struct Hunk {
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
            let before = &hunk.before;
            let mut places = lines.windows(before.len()).enumerate();
            let mut next = || {
                places
                    .find(|(_, lines)| lines == before)
                    .map(|(place, _)| place)
            };
            let (first, second) = (next(), next());
            let (Some(place), None) = (first, second) else {
                let found = if first.is_some() {
                    "more than once"
                } else {
                    "not"
                };
                return Err(format!(
                    "these lines of {} are {found} there, and must be there once:\n{}",
                    self.path,
                    before.join("\n")
                ));
            };
            let after = hunk.after.iter().map(String::as_str);
            lines.splice(place..place + before.len(), after);
        }
        Ok(lines.join("\n"))
    }
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
        let mut hunk = Self::default();
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/a.rs b/a.rs
index 1..2 100644
--- a/a.rs
+++ b/a.rs
@@ -40,2 +40,3 @@ fn f() {
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

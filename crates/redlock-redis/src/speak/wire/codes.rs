//! The codes by which a node answers a request, beside numbers of milliseconds.
//!
//! `script/codes.lua` has those that are negative and not of a server's own; a test compares them.

/// It did what it was asked to.
pub(super) const DONE: i64 = 0;
/// Another owner has the key, and it never expires: a server's own answer to `PTTL`.
pub(super) const NEVER: i64 = -1;
/// No owner has the key, or not the expected one.
pub(super) const MISSING: i64 = -2;
/// The owner was tombstoned.
pub(super) const TOMBSTONED: i64 = -3;
/// The namespace has another policy there.
pub(super) const OTHER_POLICY: i64 = -4;
/// The tick has passed.
pub(super) const PASSED: i64 = -5;
/// It is too early for the tick.
pub(super) const EARLY: i64 = -6;
/// It is too late for the tick.
pub(super) const LATE: i64 = -7;
/// The tick may have been forgotten.
pub(super) const FORGOTTEN: i64 = -8;
/// Others give the lock another number of slots.
pub(super) const OTHER_SLOTS: i64 = -9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script;

    #[test]
    fn the_script_has_the_same_codes() {
        let codes = [
            ("MISSING", MISSING),
            ("TOMBSTONED", TOMBSTONED),
            ("OTHER_POLICY", OTHER_POLICY),
            ("PASSED", PASSED),
            ("EARLY", EARLY),
            ("LATE", LATE),
            ("FORGOTTEN", FORGOTTEN),
            ("OTHER_SLOTS", OTHER_SLOTS),
        ];
        let lines = script::CODES.lines();
        let read = lines.filter_map(|line| {
            let (name, rest) = line.strip_prefix("local ")?.split_once(" = ")?;
            let code = rest.split(' ').next()?.parse::<i64>().ok()?;
            Some((name, code))
        });
        assert_eq!(read.collect::<Vec<_>>(), codes);
    }

    /// Where a server has an answer of its own, or a text is cut, a number stands for no code.
    #[test]
    fn no_other_part_of_the_script_has_a_bare_code() {
        let parts = script::call(false)[1].replace(script::CODES, "");
        for line in parts
            .lines()
            .filter(|line| !line.trim_start().starts_with("--"))
        {
            let line = line.replace("sub(KEYS[1], 1, -5)", "");
            let bare = (2..=9).find(|code| line.contains(&format!(" -{code}")));
            assert_eq!(bare, None, "{line}");
        }
    }
}

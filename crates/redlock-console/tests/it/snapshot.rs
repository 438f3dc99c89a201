//! The snapshot as programs read it.

use redlock_console::Snapshot;
use serde_json::Value;

#[test]
fn the_fields_of_a_snapshot_stay_as_they_are() {
    let text = include_str!("../snapshot.json");
    let written: Value = serde_json::from_str(text).unwrap();
    let snapshot: Snapshot = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_value(&snapshot).unwrap(), written);
}

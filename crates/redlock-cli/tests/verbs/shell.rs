//! Completions and manual pages.

use crate::kit::{redlock, run};

#[test]
fn completions_and_manual_pages_have_every_verb() {
    let help = run(&mut redlock(&["--help"])).out;
    let listed = help.split("Commands:").nth(1).unwrap();
    let listed = listed.split("Options:").next().unwrap().lines();
    // A verb stands two columns in; what is further in goes on with a description.
    let verbs = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let verbs: Vec<_> = verbs.filter(|verb| !["", "help"].contains(verb)).collect();
    assert!(verbs.len() > 10, "{help}");
    for shell in ["bash", "zsh", "fish"] {
        let done = run(&mut redlock(&["completions", shell]));
        for verb in &verbs {
            // As a word of its own: `top` is in `stop` too.
            let mut words = done.out.split(|c: char| !c.is_alphanumeric());
            assert!(words.any(|word| word == *verb), "{shell}: {verb}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let done = run(&mut redlock(&[
        "man",
        "--dir",
        folder.path().to_str().unwrap(),
    ]));
    assert_eq!(done.code, 0, "{done:?}");
    for verb in &verbs {
        assert!(
            folder.path().join(format!("redlock-{verb}.1")).exists(),
            "{verb}"
        );
    }
    let page = run(&mut redlock(&["man"])).out;
    assert!(
        page.contains(".TH redlock 1") && page.contains("Exit codes"),
        "{page}"
    );
    assert_eq!(run(&mut redlock(&["man", "dance"])).code, 2);
    assert!(help.contains("no quorum"), "{help}");
}

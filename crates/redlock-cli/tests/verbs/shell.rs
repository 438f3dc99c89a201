//! Completions and manual pages.

use crate::kit::{redlock, run};

#[test]
fn completions_and_manual_pages_have_every_verb() {
    let help = run(&mut redlock(&["--help"])).out;
    let verbs = [
        "doctor", "ready", "status", "ls", "release", "bless", "watch", "roll", "sandbox",
    ];
    for shell in ["bash", "zsh", "fish"] {
        let done = run(&mut redlock(&["completions", shell]));
        for verb in verbs {
            assert!(
                done.out.contains(verb) && help.contains(verb),
                "{shell}: {verb}"
            );
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let done = run(&mut redlock(&[
        "man",
        "--dir",
        folder.path().to_str().unwrap(),
    ]));
    assert_eq!(done.code, 0, "{done:?}");
    for verb in verbs {
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

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
    run(&mut redlock(&[
        "man",
        "--dir",
        folder.path().to_str().unwrap(),
    ]))
    .ended(0);
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

/// The verbs that the help of the command, or of a verb, lists.
fn verbs_of(arguments: &[&str]) -> Vec<String> {
    let help = run(&mut redlock(&[arguments, &["--help"]].concat())).out;
    let listed = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty());
    names.map(ToOwned::to_owned).collect()
}

#[test]
fn the_help_of_each_verb_has_an_example() {
    let verbs = verbs_of(&[]);
    assert!(verbs.len() > 10, "{verbs:?}");
    let of_jobs = verbs_of(&["jobs"]);
    let of_jobs = of_jobs.iter().map(|verb| vec!["jobs", verb]);
    for verb in verbs.iter().map(|verb| vec![&**verb]).chain(of_jobs) {
        let help = run(&mut redlock(&[&*verb, &["--help"]].concat())).out;
        let example = help.split("Example:\n").nth(1).unwrap_or_default();
        let name = format!("  redlock {} ", verb.join(" "));
        assert!(format!("{example} ").starts_with(&name), "{verb:?}: {help}");
    }
}

#[test]
fn the_help_of_the_command_names_all_that_jobs_can_do() {
    let help = run(redlock(&["--help"]).env("COLUMNS", "100")).out;
    let line = help.lines().find(|line| line.starts_with("  jobs "));
    let line = line.unwrap_or_else(|| panic!("{help}"));
    for verb in verbs_of(&["jobs"]) {
        // As in `pauses`.
        assert!(line.contains(&verb), "{verb}: {line}");
    }
    for verb in ["run", "elect"] {
        assert!(verbs_of(&[]).iter().any(|name| name == verb), "{help}");
    }
    assert!(help.starts_with("Runs commands under a lock"), "{help}");
}

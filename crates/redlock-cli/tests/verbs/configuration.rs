//! Where settings come from, and what is said of those that are wrong.

use std::{fs, process::Stdio};

use redlock_core::NodeAnswer;

use crate::kit::{Examined, Nodes, at_terminal, redlock, run};

#[test]
fn without_nodes_nothing_is_asked() {
    let done = run(&mut redlock(&["doctor"]));
    assert_eq!(done.code, 2);
    assert!(done.err.contains("REDLOCK_NODES"), "{done:?}");
    let done = run(&mut redlock(&["doctor", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&done.err).unwrap();
    assert!(json["error"].as_str().unwrap().contains("REDLOCK_NODES"));
}

/// A script's variable is empty, and the nodes of the environment are others than it means.
#[tokio::test]
async fn a_flag_without_nodes_does_not_mean_those_of_the_environment() {
    let nodes = Nodes::blessed(3).await;
    for none in ["", ",", " , "] {
        let done = nodes.run(&["ready", "1", "--nodes", none]);
        done.complained(2, "--nodes names no node");
    }
}

#[test]
fn unknown_verbs_flags_and_values_are_refused_with_2() {
    for arguments in [
        &["dance"][..],
        &["doctor", "--depe"],
        &["doctor", "--max-ttl", "soon"],
        &[
            "doctor",
            "--nodes",
            "redis://127.0.0.1:1",
            "--namespace",
            "a b",
        ],
        &["doctor", "--nodes", "me:hunter2@127.0.0.1"],
        &[
            "doctor",
            "--nodes",
            "redis://127.0.0.1:1",
            "--namespace",
            "a",
            "--verbatim-keys",
        ],
        &["doctor", "redis://me:hunter2@h"],
        &["redis://me:hunter2@h"],
        &["doctor", "--max-ttl", "redis://me:hunter2@h"],
        &["doctor", "--config", "redis://me:hunter2@h"],
        &[
            "doctor",
            "--nodes",
            "redis://127.0.0.1:1",
            "--namespace",
            "redis://me:hunter2@h",
        ],
        &["bench", "--nodes", "redis://127.0.0.1:1", "--for", "0s"],
        &[],
    ] {
        let done = run(&mut redlock(arguments));
        assert_eq!(done.code, 2, "{arguments:?}: {done:?}");
        assert!(!done.err.contains("panicked"), "{done:?}");
        assert!(!format!("{done:?}").contains("hunter2"), "{done:?}");
    }
}

#[tokio::test]
async fn flags_win_over_the_environment_and_that_wins_over_a_file() {
    let nodes = Nodes::start(1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redlock.toml");
    let url = nodes[0].url();
    fs::write(
        &file,
        format!("nodes = ['{url}']\nnamespace = 'file'\nmax_ttl = '1s'\nttl = '1s'\n"),
    )
    .unwrap();
    let namespace = |arguments: &[&str], variable: Option<&str>| {
        let all = [
            &["doctor", "--json", "--config", file.to_str().unwrap()],
            arguments,
        ]
        .concat();
        let mut command = redlock(&all);
        if let Some(name) = variable {
            command.env("REDLOCK_NAMESPACE", name);
        }
        let done = run(&mut command);
        let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        json["namespace"].as_str().unwrap().to_owned()
    };
    assert_eq!(namespace(&[], None), "file");
    // Before the verb, as --json.
    for verb in [
        &["doctor"][..],
        &["ls"],
        &["jobs"],
        &["jobs", "pause", "a/b"],
    ] {
        let file = ["--config", file.to_str().unwrap()];
        for arguments in [[&file[..], verb].concat(), [verb, &file[..]].concat()] {
            let done = run(&mut redlock(&arguments));
            for words in ["no node is given", "argument"] {
                assert!(!done.err.contains(words), "{arguments:?}: {done:?}");
            }
        }
    }
    assert_eq!(namespace(&[], Some("variable")), "variable");
    let verbatim = namespace(&["--verbatim-keys"], Some("variable"));
    assert_eq!(verbatim, "(verbatim keys)");
    assert_eq!(
        namespace(&["--namespace", "flag"], Some("variable")),
        "flag"
    );
}

#[test]
fn urls_of_the_environment_that_cannot_be_read_are_told_of_by_its_name() {
    for (urls, number) in [
        ("redis://me:hunter2@a;redis://me:hunter2@b", 1),
        ("redis://a, redis://me:hunter2@b redis://c", 2),
        ("redis://a,me:hunter2@b", 2),
    ] {
        let mut command = redlock(&["doctor"]);
        let done = run(command.env("REDLOCK_NODES", urls)).ended(2);
        let begin = format!("REDLOCK_NODES: URL {number} ");
        assert!(done.err.contains(&begin), "{done:?}");
        assert!(done.err.contains("commas separate URLs"), "{done:?}");
        assert!(!format!("{done:?}").contains("hunter2"), "{done:?}");
    }
}

#[tokio::test]
async fn settings_with_which_no_service_can_start_fail_the_doctor() {
    let nodes = Nodes::blessed(3).await;
    let examined = |arguments: &[&str], ttl: Option<&str>, max_ttl: Option<&str>| {
        let mut command = nodes.command(&[&["doctor", "--strict", "--json"], arguments].concat());
        for (name, value) in [("REDLOCK_TTL", ttl), ("REDLOCK_MAX_TTL", max_ttl)] {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Examined::of(&run(&mut command))
    };
    for (ttl, words) in [
        (Some("60s"), "ttl: 60s is not between"),
        (None, "ttl: 10s, the default, is not between"),
    ] {
        let refused = examined(&[], ttl, Some("2s"));
        refused.one(
            "settings",
            &format!("failure … {words} … max_ttl, which is 2s"),
        );
        assert_eq!(refused.code, 2, "{refused:?}");
    }
    for fit in [
        examined(&[], Some("2s"), Some("2s")),
        // The flag stands for no setting of a service.
        examined(&["--max-ttl", "2s"], None, None),
    ] {
        assert_eq!((fit.code, fit.found("settings").len()), (0, 0), "{fit:?}");
    }
}

#[test]
fn a_malformed_file_is_told_of_by_line_and_field_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redlock.toml");
    let path = file.to_str().unwrap();
    for (text, words) in [
        ("namespace = 'a'\nmax_ttl = 'soon'\n", ":2: max_ttl: "),
        ("\n\ntll = '3s'\n", ":3: tll: unknown field"),
        ("nodes = 'redis://me:hunter2@host'\n", ":1: nodes: "),
        ("ttl = 'redis://me:hunter2@host'\n", ":1: ttl: "),
        (
            "[[nodes]]\nconnection = { addr = { Tcp = ['h', 1] }, db = 0, password = 'hunter2', username = 5 }\n",
            ":2: nodes[0].connection: ",
        ),
        (
            "[[nodes]]\nconnection = { addr = { Tcp = ['h', 1] }, db = 0, password = 731731 }\n",
            ":2: nodes[0].connection: ",
        ),
        ("nodes = ['redis://me:hunter2@host\n", ":1: nodes: "),
        (
            "[expert]\nverbatim_keys = 'redis://me:hunter2@h'\n",
            ":2: expert.verbatim_keys: ",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let done = run(&mut redlock(&["doctor", "--config", path])).ended(2);
        assert!(done.err.contains(words), "{words}: {done:?}");
        assert!(!done.err.contains("hunter2"), "{done:?}");
        assert!(!done.err.contains("731731"), "{done:?}");
    }
    let done = run(&mut redlock(&[
        "doctor",
        "--config",
        "/nowhere/at/all.toml",
    ]));
    assert_eq!(done.code, 2);
    assert!(done.err.contains("/nowhere/at/all.toml"), "{done:?}");
    let mut command = redlock(&["doctor"]);
    let done = run(command.env("REDLOCK_WAITT", "3s"));
    assert!(done.err.contains("did you mean REDLOCK_WAIT?"), "{done:?}");
}

#[tokio::test]
async fn a_closed_pipe_ends_it_quietly() {
    let nodes = Nodes::blessed(1).await;
    let mut command = nodes.command(&["doctor"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(128 + 13));
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}

#[tokio::test]
async fn output_fits_narrow_terminals_and_colours_are_for_terminals_only() {
    let nodes = Nodes::start(3);
    let mut command = nodes.command(&["doctor"]);
    let done = run(command.env("COLUMNS", "40"));
    let longest = done.out.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(40), "{}", done.out);
    assert!(!done.out.contains('\x1b'));
    let colours = nodes.run(&["doctor", "--color", "always"]);
    assert!(colours.out.contains("\x1b[1;31mFAIL\x1b[0m"), "{colours:?}");
    let mut command = nodes.command(&["doctor"]);
    let none = run(command.env("NO_COLOR", "1"));
    assert!(!none.out.contains('\x1b'));
}

#[tokio::test]
async fn a_terminal_that_is_dumb_gets_no_colours() {
    let nodes = Nodes::blessed(1).await;
    for (term, has_colours) in [("xterm", true), ("dumb", false)] {
        let mut doctor = at_terminal("\"$REDLOCK\" doctor", &nodes);
        let done = run(doctor.env("TERM", term).env_remove("NO_COLOR"));
        assert!(done.out.contains("votes"), "{done:?}");
        assert_eq!(done.out.contains('\x1b'), has_colours, "{term}: {done:?}");
    }
}

/// It would get no vote from these nodes, and would leave its own at one that restarts.
#[tokio::test]
async fn a_max_ttl_that_is_not_given_is_that_of_the_nodes() {
    let mut nodes = Nodes::blessed(3).await;
    let bare = |nodes: &Nodes, arguments: &[&str]| {
        let mut command = nodes.command(arguments);
        run(command.env_remove("REDLOCK_MAX_TTL"))
    };
    let doctor = bare(&nodes, &["doctor"]);
    doctor.told(0, "max_ttl 2 s");
    bare(&nodes, &["run", "job", "--", "true"]).ended(0);
    // The first client that reaches an empty node says which policy the node remembers.
    nodes[1].restart().unwrap();
    let address = nodes[1].address().to_string();
    bare(&nodes, &["ready", &address, "--wait", "20s"]).ended(0);
    let client = nodes.client().await;
    let reports = client.node_reports().await;
    assert!(
        reports
            .iter()
            .all(|report| report.answer == NodeAnswer::Reachable),
        "{reports:?}"
    );
    // What is given wins.
    run(nodes.command(&["doctor"]).env("REDLOCK_MAX_TTL", "60s")).ended(3);
}

//! The program, as a script sees it.

use std::process::Command;

fn run(arguments: &str) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_redlock-model"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the program was built with its tests");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn a_world_in_which_tokens_keep_their_order_is_a_success() {
    let (code, output, _) = run("--nodes 3 --clients 2 --crashes 0 --proposals 2");
    assert_eq!(code, Some(0), "{output}");
    assert!(output.starts_with("holds "), "{output}");
    assert!(
        output.contains(" states ") && output.contains(" transitions "),
        "{output}"
    );
}

#[test]
fn a_breach_is_a_failure_with_the_way_to_it() {
    let (code, output, _) = run("--mutation no-write-back");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("  1. A starts"), "{output}");
    assert!(output.contains("both finished with token"), "{output}");
}

#[test]
fn a_world_of_one_job_is_described_by_its_replicas() {
    let (code, output, _) = run("--ledger --roles schedule,backfill --cuts 0 --backfill 3");
    assert_eq!(code, Some(0), "{output}");
    assert!(
        output.contains("ledger: schedule, backfill, 0 cut short, backfill 3-3"),
        "{output}"
    );
    let (code, output, _) = run("--ledger --cuts 0 --backfill 3-3 --mutation missed-untold");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("no replica reports it"), "{output}");
}

#[test]
fn a_world_of_leases_is_described_by_its_roles() {
    let (code, output, _) = run("--leases --roles writer,reader --crashes 0");
    assert_eq!(code, Some(0), "{output}");
    assert!(
        output.contains("leases: 3 nodes, writer, reader"),
        "{output}"
    );
    let (code, output, _) = run("--leases --crashes 0 --mutation key-ends-before-its-lease");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("B has the key beside A"), "{output}");
}

#[test]
fn a_world_of_lines_is_described_by_its_callers() {
    let (code, output, _) = run("--lines --callers 2 --crashes 1 --plain");
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("lines: 3 nodes, 2 callers"), "{output}");
    let (code, output, _) = run("--lines --plain --mutation first-gives-back");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("there is no way for A"), "{output}");
    let (code, output, _) = run("--lines --plain --tokens 1");
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn a_world_of_named_servers_is_described_by_what_goes_wrong() {
    let (code, output, _) = run("--named --failovers 1 --lost 1 --restarts 1");
    assert_eq!(code, Some(0), "{output}");
    assert!(
        output.contains("named: terms, 3 informants, 1 failovers, 1 lost files, 1 restarts"),
        "{output}"
    );
    let (code, output, _) = run("--named --without-terms --failovers 1 --five 2");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("x has a lease beside y"), "{output}");
    let (code, output, _) = run("--named --mutation no-epoch-in-mark");
    assert_eq!(code, Some(1), "{output}");
}

#[test]
fn an_unfinished_search_is_neither() {
    let (code, output, _) = run("--max-states 100");
    assert_eq!(code, Some(3), "{output}");
}

#[test]
fn the_help_names_every_mutation() {
    let (code, output, _) = run("--help");
    assert_eq!(code, Some(0));
    for mutation in redlock_model::Mutation::ALL {
        assert!(output.contains(mutation.name()), "{mutation}");
    }
    for mutation in redlock_model::LedgerMutation::ALL {
        assert!(output.contains(mutation.name()), "{mutation}");
    }
    for mutation in redlock_model::LeaseMutation::ALL {
        assert!(output.contains(mutation.name()), "{mutation}");
    }
    for mutation in redlock_model::LineMutation::ALL {
        assert!(output.contains(mutation.name()), "{mutation}");
    }
    for mutation in redlock_model::NamedMutation::ALL {
        assert!(output.contains(mutation.name()), "{mutation}");
    }
}

#[test]
fn arguments_that_make_no_sense_are_named() {
    let cases = [
        ("--nodes", "a value is required for '--nodes <N>'"),
        ("--nodes many", "invalid value 'many' for '--nodes <N>'"),
        ("--nodes 0", "nodes must be from 1 to 5, not 0"),
        ("--clients 9", "clients must be from 1 to 4, not 9"),
        ("--crashes 300", "300 is not in 0..=255"),
        ("--mutation none", "there is no mutation 'none'"),
        (
            "--lines --mutation none",
            "only window-from-the-message, given-in-quarantine",
        ),
        ("--fast", "unexpected argument '--fast'"),
        ("--leases --roles king", "there is no role 'king'"),
        ("--leases --fast", "unexpected argument '--fast'"),
        ("--ledger --fast", "unexpected argument '--fast'"),
        ("--ledger --roles king", "there is no role 'king'"),
        ("--ledger --backfill 1-3", "1 or 2 of the ticks 1 to 3"),
        ("--lines --fast", "unexpected argument '--fast'"),
        ("--named --fast", "unexpected argument '--fast'"),
        ("--named --lease 0", "times are from 1 to 3, not 0"),
        ("3 2", "unrecognized subcommand '3'"),
        ("--ci --nodes 3", "unexpected argument '--nodes'"),
    ];
    for (arguments, complaint) in cases {
        let (code, output, error) = run(arguments);
        assert_eq!(code, Some(2), "{arguments}: {output}");
        assert!(error.contains(complaint), "{arguments}: {error}");
        assert!(error.contains("--help"), "{arguments}: {error}");
        assert!(output.is_empty(), "{arguments}: {output}");
    }
}

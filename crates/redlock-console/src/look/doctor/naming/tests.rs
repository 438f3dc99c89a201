//! The findings about Sentinels and nodes of a Cluster, without servers.

use redlock_core::node::InformantReport;

use super::*;

const SERVER: &str = "10.0.0.9:6379";

fn id(number: u64) -> String {
    format!("{number:016x}")
}

/// Sentinels that answer with these ids, and know of each other.
fn sentinels(ids: &[u64], on_roll: &[u64]) -> Naming {
    let informant = |(at, number): (usize, &u64)| InformantReport {
        address: format!("s{}:26379", at + 1).into(),
        answer: Ok(InformantAnswer {
            id: id(*number),
            names: Some((SERVER.into(), 3)),
            known: ids.len(),
            gone: Vec::new(),
        }),
    };
    Naming {
        report: NamingReport {
            master: Some("orders".into()),
            named: Some(ids.len()),
            majority: Some((SERVER.into(), 3)),
            informants: ids.iter().enumerate().map(informant).collect(),
            votes: None,
        },
        roll: Some(Roll::new(
            on_roll.len(),
            on_roll.iter().map(|number| InformantId::new(*number)),
        )),
    }
}

fn answer(naming: &mut Naming, at: usize) -> &mut InformantAnswer {
    naming.report.informants[at].answer.as_mut().unwrap()
}

fn found(naming: &Naming) -> Vec<(Severity, String, String)> {
    let mut findings = Findings::default();
    naming.check(&"orders@s1:26379".into(), &mut findings);
    let line = |finding: super::super::finding::Finding| {
        let text = format!("{} -> {}", finding.found, finding.advice);
        (finding.level, finding.check, text)
    };
    findings.0.into_iter().map(line).collect()
}

fn one(naming: &Naming, level: Severity, check: &str, words: &[&str]) {
    let found = found(naming);
    let [(its, of, text)] = &*found else {
        panic!("{found:?}");
    };
    assert_eq!((*its, &**of), (level, check), "{text}");
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn what_is_well_is_a_line_and_no_finding() {
    let naming = sentinels(&[1, 2, 3], &[1, 2, 3]);
    assert_eq!(found(&naming), []);
    assert_eq!(naming.server(), Some(SERVER));
    let line = "its mark counts 3 Sentinels: 3 answer, and 3 of these are on its roll";
    assert_eq!(naming.line().as_deref(), Some(line));
}

#[test]
fn one_that_does_not_answer_is_named_with_the_remedy() {
    let mut naming = sentinels(&[1, 2, 3], &[1, 2, 3]);
    naming.report.informants[2].answer = Err("Connection refused".into());
    let words = [
        "3 Sentinels, and 2 answer",
        "not s3:26379: Connection refused",
        "bring it back",
    ];
    one(&naming, Severity::Warning, "informants", &words);
    naming.report.informants[2].answer = Err("it wants a password; write it".into());
    one(&naming, Severity::Warning, "informants", &["-> write it"]);
}

#[test]
fn one_that_is_not_on_the_roll_is_a_hint() {
    let naming = sentinels(&[1, 2, 9], &[1, 2, 3]);
    let words = [
        "s3:26379 answers, and is not on the roll",
        "joins by itself",
    ];
    one(&naming, Severity::Note, "roll", &words);
    assert!(
        naming
            .line()
            .unwrap()
            .contains("2 of these are on its roll")
    );
}

#[test]
fn those_that_are_gone_are_to_be_forgotten() {
    let mut naming = sentinels(&[1, 2, 9], &[1, 2, 3]);
    for at in 0..3 {
        answer(&mut naming, at).known = 4;
    }
    answer(&mut naming, 0).gone = vec!["10.0.0.3:26379".into()];
    let found = found(&naming);
    let text = |check: &str| {
        let mut found = found.iter();
        let found = found.find(|(_, its, _)| its == check);
        found.map_or("", |(_, _, text)| &**text)
    };
    assert!(text("forgotten").contains("10.0.0.3:26379"), "{found:?}");
    assert!(
        text("forgotten").contains("SENTINEL RESET orders"),
        "{found:?}"
    );
    assert!(text("roll").contains("once those that are gone are forgotten"));
    // In a Cluster by their ids.
    naming.report.master = None;
    naming.report.named = None;
    answer(&mut naming, 0).gone = vec!["07c37dfeb2".into()];
    let mut findings = Findings::default();
    naming.check(&"1of3@c1:6379".into(), &mut findings);
    let mut all = findings.0.iter();
    let forget = all.find(|finding| finding.check == "forgotten").unwrap();
    assert!(forget.advice.contains("CLUSTER FORGET"), "{forget:?}");
    assert!(forget.advice.ends_with("for 07c37dfeb2"), "{forget:?}");
}

#[test]
fn a_mark_that_counts_another_number_is_said() {
    let naming = sentinels(&[1, 2, 3, 4, 5], &[1, 2, 3]);
    let words = ["counts 3 Sentinels, and 5 run", "new namespace"];
    one(&naming, Severity::Warning, "roll", &words);
}

#[test]
fn two_with_one_id_defeat_the_roll() {
    let naming = sentinels(&[1, 2, 2], &[1, 2, 3]);
    let words = ["s2:26379 and s3:26379 answer with one id", "sentinel myid"];
    one(&naming, Severity::Failure, "same-id", &words);
}

#[test]
fn one_that_names_another_server_is_named() {
    let mut naming = sentinels(&[1, 2, 3], &[1, 2, 3]);
    answer(&mut naming, 2).names = Some((SERVER.into(), 2));
    let words = ["s3:26379 names 10.0.0.9:6379 under the epoch 2", "under 3"];
    one(&naming, Severity::Warning, "informants", &words);
}

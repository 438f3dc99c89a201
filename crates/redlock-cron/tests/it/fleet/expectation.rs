//! The dead-man's switch: jobs that have had no successful run within their expected time.

use tracing::Level;

use super::*;
use crate::logged::Logged;

/// Returns a job that expects a success in each minute.
fn job(pattern: &str, is_good: bool) -> SingletonJob {
    let job = Starts::default().job(pattern, move |_| async move {
        if is_good {
            Ok(())
        } else {
            Err("no ledger".into())
        }
    });
    job.expect_success_within(Duration::from_secs(60))
}

impl Fleet {
    /// Returns a replica with a job, which was started.
    async fn host_of_job(&self, job: SingletonJob) -> Member {
        let host = self.host().await;
        host.put(job).await;
        host
    }
}

impl Member {
    /// Ends as a process does.
    async fn end(self) {
        assert!(self.shut_down(Duration::ZERO).await.is_clean());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lapse_is_said_once_on_all_replicas_also_after_a_restart_and_ends_with_a_success() {
    let (errors, _guard) = Logged::at(Level::ERROR);
    let fleet = Fleet::new();
    let first = fleet.host_of_job(job(IN_JULY, true)).await;
    let second = fleet.host_of_job(job(IN_JULY, true)).await;
    fleet.until(10).await;
    assert_eq!(first.trigger().await.outcome(), Outcome::Ok);
    fleet.until(69).await;
    assert_eq!(errors.count(), 0);
    fleet.until(75).await;
    let said = errors.take_with("within_s");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0]["message"].starts_with("overdue"), "{said:?}");
    assert!(
        said[0]["last_success"].starts_with("2027-01-15 08:00:12"),
        "{said:?}"
    );
    fleet.until(300).await;
    first.end().await;
    second.end().await;

    let third = fleet.host_of_job(job(IN_JULY, true)).await;
    fleet.until(400).await;
    assert_eq!(errors.count(), 0);
    {
        let (infos, _guard) = Logged::at(Level::INFO);
        assert_eq!(third.trigger().await.outcome(), Outcome::Ok);
        fleet.until(455).await;
        let ends = infos.take_with("last_success");
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert!(
            ends[0]["message"].starts_with("no longer overdue"),
            "{ends:?}"
        );
    }
    fleet.until(459).await;
    assert_eq!(errors.count(), 0);
    fleet.until(470).await;
    assert_eq!(errors.take_with("within_s").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lapse_while_no_replica_was_up_is_said_by_the_first_that_comes_up() {
    let (errors, _guard) = Logged::at(Level::ERROR);
    let fleet = Fleet::new();
    let first = fleet.host_of_job(job(IN_JULY, true)).await;
    assert_eq!(first.trigger().await.outcome(), Outcome::Ok);
    fleet.until(5).await;
    first.end().await;
    fleet.sleep_until(3_600_000).await;
    let _hosts = [
        fleet.host_of_job(job(IN_JULY, true)).await,
        fleet.host_of_job(job(IN_JULY, true)).await,
    ];
    fleet.until(3_605).await;
    assert_eq!(errors.take_with("within_s").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_never_succeeds_is_overdue_from_its_first_look_on_however_often_replicas_restart()
 {
    let (errors, _guard) = Logged::at(Level::ERROR);
    let fleet = Fleet::new();
    for second in [25, 50] {
        let host = fleet.host_of_job(job(EVERY_FIVE_SECONDS, false)).await;
        fleet.until(second).await;
        host.end().await;
    }
    let _host = fleet.host_of_job(job(EVERY_FIVE_SECONDS, false)).await;
    fleet.until(59).await;
    assert!(errors.take_with("within_s").is_empty());
    fleet.until(70).await;
    assert_eq!(errors.take_with("within_s").len(), 1);
    fleet.until(200).await;
    assert!(errors.take_with("within_s").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_success_is_known_though_the_nodes_have_forgotten_it_behind_failures() {
    let (errors, _guard) = Logged::at(Level::ERROR);
    let fleet = Fleet::new();
    let host = fleet.host_of_job(job(EVERY_FIVE_SECONDS, true)).await;
    fleet.until(10).await;
    host.put(job(EVERY_FIVE_SECONDS, false)).await;
    let _other = fleet.host_of_job(job(EVERY_FIVE_SECONDS, false)).await;
    fleet.until(66).await;
    host.end().await;
    assert!(errors.take_with("within_s").is_empty());
    fleet.until(75).await;
    let said = errors.take_with("within_s");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains_key("last_success"), "{said:?}");
}

/// Returns a job of five seconds whose runs end well up to a second.
fn good_job(second: i64) -> SingletonJob {
    Starts::default().job(EVERY_FIVE_SECONDS, move |run: Run| async move {
        match run.tick() <= tick(second) {
            true => Ok(()),
            false => Err("no ledger".into()),
        }
    })
}

/// Returns the same, of which a success is expected in twenty minutes.
fn good_until(second: i64) -> SingletonJob {
    good_job(second).expect_success_within(Duration::from_secs(1_200))
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_comes_after_many_failures_says_overdue_when_the_others_would() {
    let (errors, _guard) = Logged::at(Level::ERROR);
    let fleet = Fleet::new();
    let first = fleet.host_of_job(good_until(58)).await;
    fleet.until(600).await;
    // By now, the nodes remember failures only.
    let remembered = fleet.memory().await;
    assert!(remembered.last_success().is_none());
    first.end().await;
    let _second = fleet.host_of_job(good_until(58)).await;
    fleet.until(1_256).await;
    assert!(errors.take_with("within_s").is_empty());
    fleet.until(1_264).await;
    let said = errors.take_with("within_s");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0]["last_success"].starts_with("2027-01-15 08:01:00"),
        "{said:?}"
    );
    fleet.until(1_500).await;
    assert!(errors.take_with("within_s").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_never_succeeds_is_overdue_though_replicas_are_replaced_before_each_limit() {
    let (errors, _guard) = Logged::at(Level::ERROR);
    let fleet = Fleet::new();
    for second in [400, 800, 1_199] {
        let host = fleet.host_of_job(good_until(0)).await;
        fleet.until(second).await;
        host.end().await;
    }
    assert!(errors.take_with("within_s").is_empty());
    let _host = fleet.host_of_job(good_until(0)).await;
    fleet.until(1_220).await;
    assert_eq!(errors.take_with("within_s").len(), 1);
}

/// It cannot know what was before the failures that the nodes remember.
#[tokio::test(start_paused = true)]
async fn a_replica_that_finds_failures_only_gives_a_success_before_them_its_time() {
    let (errors, _guard) = Logged::at(Level::ERROR);
    let fleet = Fleet::new();
    let unaware = |second| good_job(second);
    let early = fleet.host_of_job(good_until(58)).await;
    fleet.until(2).await;
    early.end().await;
    let others = fleet.host_of_job(unaware(58)).await;
    fleet.until(1_150).await;
    let _last = fleet.host_of_job(good_until(58)).await;
    pass(150).await;
    others.end().await;
    assert!(
        errors.take_with("within_s").is_empty(),
        "a run of second 58 had ended well"
    );
    fleet.until(1_900).await;
    assert_eq!(errors.take_with("within_s").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_of_a_success_while_too_few_nodes_answer() {
    let (errors, _guard) = Logged::at(Level::ERROR);
    let fleet = Fleet::new();
    let host = fleet.host_of_job(job(IN_JULY, true)).await;
    assert_eq!(host.trigger().await.outcome(), Outcome::Ok);
    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    fleet.until(120).await;
    assert!(errors.take_with("within_s").is_empty());
    fleet.nodes[..2].iter().for_each(MemoryNode::start);
    fleet.until(150).await;
    assert_eq!(errors.take_with("within_s").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_without_the_setting_is_never_overdue() {
    let (errors, _guard) = Logged::at(Level::ERROR);
    let fleet = Fleet::new();
    let _host = fleet
        .host_of_job(Starts::default().quick_job(IN_JULY))
        .await;
    fleet.until(600).await;
    assert_eq!(errors.count(), 0);
}

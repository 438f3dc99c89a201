//! What is logged of runs and of jobs.

use tracing::Level;

use super::*;
use crate::logged::Logged;

#[tokio::test(start_paused = true)]
async fn the_span_of_a_run_tells_it_from_every_other() {
    let (logged, _guard) = Logged::at(Level::INFO);
    let (fleet, tokens) = (Fleet::new(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&tokens);
    let job = Starts::default().job(EVERY_FIVE_SECONDS, move |run: Run| {
        seen.lock().unwrap().push(run.fencing_token().to_string());
        async { Ok(()) }
    });
    let mut member = fleet.member(0, job).await;
    member.wake_at(3_000).await;
    assert_eq!(member.outcome().await, Outcome::Ok);
    let report = member.trigger().await;
    assert_eq!(report.outcome(), Outcome::Ok);
    let spans = logged.take_with("token");
    let tokens = tokens.lock().unwrap();
    assert_eq!(spans.len(), 2);
    let triggers = ["Schedule", "Manual"];
    for (index, span) in spans.iter().enumerate() {
        let field = |name| span[name].as_str();
        assert_eq!(field("job"), "\"job\"");
        assert_eq!(field("replica"), "\"member-0\"");
        assert_eq!(field("trigger"), triggers[index]);
        assert_eq!(field("attempt"), "1");
        assert_eq!(field("token"), tokens[index]);
    }
    let quoted = format!("{:?}", tick(3).to_string());
    assert_eq!(spans[0]["tick"], quoted, "it has spaces");
}

/// The loop that warns of the clock is all that wakes the jobs of a scheduler with a timer of its own.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_ends_no_ticks() {
    let (logged, _guard) = Logged::panicking_at(Level::WARN);
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let member = fleet.member(3_600_000, starts.quick_job(MINUTE)).await;
    member.wake_at(3_600_000).await;
    fleet.until(70).await;
    assert!(logged.count() > 0);
    assert_eq!(starts.list(), [tick(3), tick(63)]);
}

#[tokio::test]
async fn a_step_that_does_not_mean_what_it_says_is_logged_when_its_job_is_added() {
    let (logged, _guard) = Logged::at(Level::WARN);
    let client = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    let jobs = SingletonScheduler::standalone(client).namespace("tests");
    let jobs = jobs.build().unwrap();
    let uneven = |field, step| {
        Some(format!(
            "{field}: the step {step} is uneven where the field begins again"
        ))
    };
    let alone = |field, step, value| {
        Some(format!(
            "{field}: the step {step} leaves one value, which is {value}"
        ))
    };
    for (pattern, doubt) in [
        ("0 */90 * * * *", alone("minute", 90, 0)),
        ("0 */61 * * * *", alone("minute", 61, 0)),
        ("0 */25 * * * *", uneven("minute", 25)),
        ("0 0-59/25 * * * *", uneven("minute", 25)),
        ("0 30/20 * * * *", uneven("minute", 20)),
        ("*/7 * * * * *", uneven("second", 7)),
        ("0 0 */5 * * *", uneven("hour", 5)),
        ("0 0 2-3/5 * * *", alone("hour", 5, 2)),
        ("0 57-57/7 2 * * *", alone("minute", 7, 57)),
        ("0 0 2 */2 * *", uneven("day of month", 2)),
        ("0 0 2 1 */5 *", uneven("month", 5)),
        ("0 0 2 ? * */2", uneven("day of week", 2)),
        ("0 0 2 * * * 2030-2031/5", alone("year", 5, 2030)),
        // These do.
        ("0 */15 * * * *", None),
        ("0 */60 * * * *", None),
        ("0 0/60 2/24 * * *", None),
        ("1/20 */1 9-17/3 1-7/2 */3 */7 */2", None),
        ("0 0 2 * * 1-5/2", None),
    ] {
        let job = Starts::default().quick_job(pattern);
        jobs.replace(job).await.unwrap();
        let logged = logged.take_with("doubt").into_iter();
        let logged: Vec<_> = logged.map(|fields| fields["doubt"].clone()).collect();
        let expected: Vec<_> = doubt.iter().map(|doubt| format!("{doubt:?}")).collect();
        assert_eq!(logged, expected, "{pattern:?}");
    }
}

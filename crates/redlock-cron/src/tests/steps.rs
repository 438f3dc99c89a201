use std::fmt::Debug;

use super::*;
use tracing::{
    Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::SingletonScheduler;

/// The doubts about patterns that are logged as warnings.
#[derive(Clone, Default)]
struct Doubts(Arc<Mutex<Vec<String>>>);

impl Visit for Doubts {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "doubt" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Doubts {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        *of.level() == tracing::Level::WARN && of.target() == crate::TARGET
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn a_step_that_does_not_mean_what_it_says_is_logged_when_its_job_is_added() {
    let doubts = Doubts::default();
    let _guard = super::listens(doubts.clone());
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
        let logged = std::mem::take(&mut *doubts.0.lock().unwrap());
        let expected: Vec<_> = doubt.iter().map(|doubt| format!("{doubt:?}")).collect();
        assert_eq!(logged, expected, "{pattern:?}");
    }
}

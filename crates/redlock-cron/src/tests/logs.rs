//! The events and spans that are logged.

use std::{collections::BTreeMap, fmt::Debug, sync::LazyLock};

use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::{DefaultGuard, NoSubscriber, set_default},
};

use super::*;
use crate::SingletonScheduler;

type LoggedFields = BTreeMap<&'static str, String>;

/// The fields of the events and spans of one level that this thread logs under the adapter's target.
#[derive(Clone)]
pub(super) struct Logged {
    level: Level,
    all: Arc<Mutex<Vec<LoggedFields>>>,
}

impl Logged {
    /// Hears what this thread logs at `level`, until the guard is dropped.
    pub(super) fn at(level: Level) -> (Self, DefaultGuard) {
        // While a process has one subscriber, a line that another thread comes to first is silent for that one too,
        // because `tracing` asks only the subscriber of the thread. So there are always several.
        static OTHERS: LazyLock<[Dispatch; 2]> =
            LazyLock::new(|| [(); 2].map(|()| Dispatch::new(NoSubscriber::new())));
        LazyLock::force(&OTHERS);
        let all = Arc::default();
        let logged = Self { level, all };
        (logged.clone(), set_default(logged))
    }

    pub(super) fn count(&self) -> usize {
        self.all.lock().unwrap().len()
    }

    /// Takes out all that was logged, and returns what has this field.
    pub(super) fn take_with(&self, field: &str) -> Vec<LoggedFields> {
        let mut all = std::mem::take(&mut *self.all.lock().unwrap());
        all.retain(|fields| fields.contains_key(field));
        all
    }

    fn add(&self, record: impl FnOnce(&mut dyn Visit)) {
        let mut fields = FieldTexts::default();
        record(&mut fields);
        self.all.lock().unwrap().push(fields.0);
    }
}

#[derive(Default)]
struct FieldTexts(LoggedFields);

impl Visit for FieldTexts {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Logged {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        *of.level() == self.level && of.target() == crate::TARGET
    }
    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        self.add(|fields| span.record(fields));
        span::Id::from_u64(1)
    }
    fn event(&self, event: &Event<'_>) {
        self.add(|fields| event.record(fields));
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

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
    let report = Arc::clone(&member.runner).trigger().await;
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

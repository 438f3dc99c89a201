//! The events and spans that this thread logs.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, LazyLock, Mutex},
};

use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::{DefaultGuard, NoSubscriber, set_default},
};

type LoggedFields = BTreeMap<&'static str, String>;

/// The fields of the events and spans of one level that this thread logs under the adapter's target.
#[derive(Clone)]
pub(crate) struct Logged {
    level: Level,
    all: Arc<Mutex<Vec<LoggedFields>>>,
    panics: bool,
}

impl Logged {
    /// Hears what this thread logs at `level`, until the guard is dropped.
    pub(crate) fn at(level: Level) -> (Self, DefaultGuard) {
        Self::of(level, false)
    }

    /// Panics at each event at `level` that this thread logs, until the guard is dropped.
    pub(crate) fn panicking_at(level: Level) -> (Self, DefaultGuard) {
        Self::of(level, true)
    }

    fn of(level: Level, panics: bool) -> (Self, DefaultGuard) {
        // While a process has one subscriber, a line that another thread comes to first is silent for that one too,
        // because `tracing` asks only the subscriber of the thread. So there are always several.
        static OTHERS: LazyLock<[Dispatch; 2]> =
            LazyLock::new(|| [(); 2].map(|()| Dispatch::new(NoSubscriber::new())));
        LazyLock::force(&OTHERS);
        let all = Arc::default();
        let logged = Self { level, all, panics };
        (logged.clone(), set_default(logged))
    }

    pub(crate) fn count(&self) -> usize {
        self.all.lock().unwrap().len()
    }

    /// Takes out all that was logged, and returns what has this field.
    pub(crate) fn take_with(&self, field: &str) -> Vec<LoggedFields> {
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
        *of.level() == self.level && of.target() == "redlock::job"
    }
    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        self.add(|fields| span.record(fields));
        span::Id::from_u64(1)
    }
    fn event(&self, event: &Event<'_>) {
        self.add(|fields| event.record(fields));
        assert!(!self.panics, "as a subscriber of an application may");
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

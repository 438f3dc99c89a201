use std::{collections::BTreeMap, fmt::Debug};

use super::*;
use tracing::{
    Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// The fields of the spans of runs.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<BTreeMap<&'static str, String>>>>);

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.is_span() && of.name() == "redlock.run"
    }
    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut fields = BTreeMap::new();
        span.record(&mut Fields(&mut fields));
        self.0.lock().unwrap().push(fields);
        span::Id::from_u64(1)
    }
    fn event(&self, _: &tracing::Event<'_>) {}
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn the_span_of_a_run_tells_it_from_every_other() {
    let spans = Spans::default();
    let _guard = super::listens(spans.clone());
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
    let spans = spans.0.lock().unwrap();
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
    assert_eq!(spans[0]["tick"], tick(3).to_string());
}

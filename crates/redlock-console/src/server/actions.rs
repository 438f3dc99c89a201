//! The actions of operators, by the functions that the command uses: each is in the log of actions.

use std::collections::HashMap;

use axum::{
    Extension, Form,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use redlock_core::Redlock;
use redlock_cron::{
    Action, ControlError, ControlErrorKind, JobMemory, JobPause, MOST_BACKFILLED, REQUEST_LIFETIME,
    cancel_backfill,
    chrono::{DateTime, TimeDelta, Utc},
    dangerous_forget, log_action, pause_with, request_backfill, request_rerun, request_run,
    resume_with, stop,
};

use super::pages::view;
use crate::{
    Access, Console,
    look::{
        clock::rounded,
        jobs::{InvalidJobName, JobName, known, paused_before, was_not_paused},
    },
    page::{self, ActionOutcome},
};

/// The fields of a form, or of an address.
type Fields = HashMap<String, String>;

/// Why an action was not done.
struct ActionRefusal {
    status: StatusCode,
    message: String,
}

impl ActionRefusal {
    fn wrong(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            message: message.into(),
        }
    }
}

impl From<ControlError> for ActionRefusal {
    fn from(error: ControlError) -> Self {
        let status = match error.kind() {
            ControlErrorKind::Unconfirmed => StatusCode::SERVICE_UNAVAILABLE,
            ControlErrorKind::InUse | ControlErrorKind::TooManyRequests => StatusCode::CONFLICT,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        let message = error.to_string();
        Self { status, message }
    }
}

/// Does what an operator has confirmed, and says what was done.
pub(super) async fn act(
    State(console): State<Console>,
    Path(verb): Path<String>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Response {
    let done = match verb.as_str() {
        "release" => release(&console, &fields).await,
        _ => on_job(&console, &verb, &fields).await,
    };
    // The next look shows it, or what a part of the nodes has done.
    console.0.hub.forget().await;
    answer(done, access, &headers)
}

/// Counts the ticks of a backfill, and does nothing.
pub(super) async fn count(
    State(console): State<Console>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
    Query(fields): Query<Fields>,
) -> Response {
    let counted = async {
        let (job, memory) = job(console.0.hub.client(), &fields).await?;
        let (from, to) = (instant(&fields, "from")?, instant(&fields, "to")?);
        counted(&job, &memory, from, to)
    };
    answer(counted.await, access, &headers)
}

fn answer(done: Result<String, ActionRefusal>, access: Access, headers: &HeaderMap) -> Response {
    let (status, done, message) = match done {
        Ok(message) => (StatusCode::OK, true, message),
        Err(ActionRefusal { status, message }) => (status, false, message),
    };
    let accepts = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    if accepts.is_some_and(|accepts| accepts.contains("text/html")) {
        let outcome = ActionOutcome { done, message };
        return (status, Html(page::render_outcome(&outcome, &view(access)))).into_response();
    }
    let json = serde_json::json!({"done": done, "message": message}).to_string();
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, json).into_response()
}

/// Returns a field; `None` if it is empty.
fn field<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    let value = fields.get(name)?.trim();
    (!value.is_empty()).then_some(value)
}

fn needed<'a>(fields: &'a Fields, name: &str) -> Result<&'a str, ActionRefusal> {
    field(fields, name)
        .ok_or_else(|| ActionRefusal::wrong(format!("nothing was done: {name} is missing")))
}

fn instant(fields: &Fields, name: &str) -> Result<DateTime<Utc>, ActionRefusal> {
    let text = needed(fields, name)?;
    text.parse().map_err(|error| {
        let why =
            format!("nothing was done: {name} is no instant like 2026-11-01T02:00:00Z: {error}");
        ActionRefusal::wrong(why)
    })
}

/// Returns the operator and the reason, which every action has.
fn action(fields: &Fields) -> Result<Action, ActionRefusal> {
    let reason = needed(fields, "reason")?;
    let action = field(fields, "by").map_or_else(Action::default, Action::by);
    Ok(action.reason(reason))
}

async fn job(client: &Redlock, fields: &Fields) -> Result<(JobName, JobMemory), ActionRefusal> {
    let job: JobName = needed(fields, "job")?
        .parse()
        .map_err(|error: InvalidJobName| ActionRefusal::wrong(error.to_string()))?;
    let memory = known(client, &job).await.map_err(ActionRefusal::wrong)?;
    Ok((job, memory))
}

async fn on_job(console: &Console, verb: &str, fields: &Fields) -> Result<String, ActionRefusal> {
    const VERBS: [&str; 8] = [
        "pause", "resume", "stop", "cancel", "forget", "trigger", "rerun", "backfill",
    ];
    if !VERBS.contains(&verb) {
        return Err(ActionRefusal {
            status: StatusCode::NOT_FOUND,
            message: "there is no such action".to_owned(),
        });
    }
    let client = console.0.hub.client();
    let mut action = action(fields)?;
    let (job, memory) = job(client, fields).await?;
    let (namespace, name) = (&*job.namespace, &*job.name);
    Ok(match verb {
        "pause" => {
            let until = until(fields)?;
            if let Some(until) = until {
                action = action.until(until);
            }
            if let Some(pause) = memory.pause().filter(|pause| is_same(pause, fields, until)) {
                let why = format!("nothing was done: {job} is {pause} already");
                return Err(ActionRefusal::wrong(why));
            }
            pause_with(client, namespace, name, &action).await?;
            let before = paused_before(&memory);
            match memory.running() {
                Some(run) => format!(
                    "{job} is paused; the run on {} goes on to its end{before}",
                    run.replica()
                ),
                None => format!(
                    "{job} is paused: its ticks are recorded as paused, and are not run later{before}"
                ),
            }
        }
        "resume" => {
            if let Some(why) = was_not_paused(&job, &memory) {
                return Err(ActionRefusal::wrong(why));
            }
            resume_with(client, namespace, name, &action).await?;
            format!("{job} is resumed: it is started from its next tick on")
        }
        "stop" => {
            stop(client, namespace, name, &action).await?;
            match memory.running() {
                Some(run) => format!(
                    "the run of {job} on {} is asked to end, and is dropped within five seconds",
                    run.replica()
                ),
                None => format!("the runs of {job} are asked to end, but none is known"),
            }
        }
        "cancel" => {
            cancel_backfill(client, namespace, name, &action).await?;
            match memory.backfill() {
                Some(_) => format!("no further tick of the backfill of {job} is started"),
                None => format!(
                    "no backfill of {job} is known, and none that was requested before is begun"
                ),
            }
        }
        "forget" => {
            let warning = match memory.registration() {
                Some(it) if !it.is_gone() => format!(
                    "; {} has registered it, so its last tick may start a second time, and it is not paused any more: take it out of all schedulers",
                    it.replica()
                ),
                _ => String::new(),
            };
            forget(client, &job, &action).await? + &warning
        }
        "trigger" => {
            request_run(client, namespace, name).await?;
            let logged = log(client, "trigger", &job.to_string(), &action).await;
            let lifetime = rounded(REQUEST_LIFETIME);
            format!(
                "asked all replicas for a run of {job}; one starts it within {lifetime}, or none does{logged}"
            )
        }
        "rerun" => {
            let tick = instant(fields, "tick")?;
            request_rerun(client, namespace, name, tick, tick).await?;
            let tick = tick.to_rfc3339();
            let logged = log(client, "backfill-again", &format!("{job} {tick}"), &action).await;
            format!("asked all replicas to run the tick {tick} of {job} again{logged}")
        }
        _ => backfill(client, &job, &memory, fields, &action).await?,
    })
}

/// Returns whether a pause has the operator, the reason and the end of another one already.
fn is_same(pause: &JobPause, fields: &Fields, until: Option<DateTime<Utc>>) -> bool {
    pause.until() == until
        && pause.by() == field(fields, "by")
        && pause.reason() == field(fields, "reason")
}

/// Returns the end of a pause: an instant, or a time from now on; `None` if it has none.
fn until(fields: &Fields) -> Result<Option<DateTime<Utc>>, ActionRefusal> {
    if field(fields, "until").is_some() {
        return instant(fields, "until").map(Some);
    }
    let Some(minutes) = field(fields, "minutes") else {
        return Ok(None);
    };
    let minutes = minutes.parse::<u32>().ok().filter(|minutes| *minutes > 0);
    let minutes = minutes
        .ok_or_else(|| ActionRefusal::wrong("nothing was done: minutes is no number of minutes"))?;
    Ok(Some(Utc::now() + TimeDelta::minutes(minutes.into())))
}

async fn backfill(
    client: &Redlock,
    job: &JobName,
    memory: &JobMemory,
    fields: &Fields,
    action: &Action,
) -> Result<String, ActionRefusal> {
    let (from, to) = (instant(fields, "from")?, instant(fields, "to")?);
    let is_again = field(fields, "again").is_some();
    // The replicas count by the job's own schedule; this refuses what they would refuse, with words.
    let counted = counted(job, memory, from, to)?;
    let (namespace, name) = (&*job.namespace, &*job.name);
    let verb = match is_again {
        true => "backfill-again",
        false => "backfill",
    };
    match is_again {
        true => request_rerun(client, namespace, name, from, to).await?,
        false => request_backfill(client, namespace, name, from, to).await?,
    };
    let range = format!("{job} {}/{}", from.to_rfc3339(), to.to_rfc3339());
    let logged = log(client, verb, &range, action).await;
    Ok(format!(
        "asked all replicas for the backfill: {counted}{logged}"
    ))
}

/// Returns in words how many ticks a backfill has, by the schedule that a scheduler has registered.
///
/// # Errors
///
/// They are too many, or there is none.
fn counted(
    job: &JobName,
    memory: &JobMemory,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Result<String, ActionRefusal> {
    if from > to {
        return Err(ActionRefusal::wrong(
            "nothing is to be done: the end is before the beginning",
        ));
    }
    let schedule = memory.registration().and_then(|it| it.schedule());
    let Some(schedule) = schedule else {
        return Ok(format!(
            "the nodes do not know the schedule of {job}, so a replica counts the ticks"
        ));
    };
    // A tick at the beginning belongs to the range.
    let before = from - TimeDelta::milliseconds(1);
    let most = usize::try_from(MOST_BACKFILLED).unwrap_or(usize::MAX);
    let ticks = schedule.ticks_after(before).take_while(|tick| *tick <= to);
    match ticks.take(most + 1).count() {
        0 => Err(ActionRefusal::wrong(format!(
            "nothing is to be done: no tick of {job} is in this range"
        ))),
        many if many > most => Err(ActionRefusal::wrong(format!(
            "nothing is to be done: more than {most} ticks of {job} are in this range, and a backfill has {most} at most"
        ))),
        1 => Ok("1 tick is in this range".to_owned()),
        count => Ok(format!("{count} ticks are in this range")),
    }
}

async fn forget(client: &Redlock, job: &JobName, action: &Action) -> Result<String, ActionRefusal> {
    let done = dangerous_forget(client, &job.namespace, &job.name).await?;
    let logged = match done.was_anything() {
        true => log(client, "forget", &job.to_string(), action).await,
        false => String::new(),
    };
    let kept: Vec<_> = done
        .nodes()
        .iter()
        .filter_map(|node| Some((node.node(), node.why_not()?)))
        .collect();
    match (kept.is_empty(), done.was_anything()) {
        (true, true) => return Ok(format!("all nodes have forgotten {job}{logged}")),
        (true, false) => {
            let why = format!("nothing was done: nothing was remembered of {job} already");
            return Err(ActionRefusal::wrong(why));
        }
        (false, _) => {}
    }
    let kept: Vec<_> = kept
        .iter()
        .map(|(node, why)| format!("{node} ({why})"))
        .collect();
    Err(ActionRefusal {
        status: StatusCode::SERVICE_UNAVAILABLE,
        message: format!(
            "these nodes may still remember {job}: {}; do it again when all nodes can be asked{logged}",
            kept.join(", ")
        ),
    })
}

/// Takes a key away from its holder.
async fn release(console: &Console, fields: &Fields) -> Result<String, ActionRefusal> {
    let action = action(fields)?;
    let name = needed(fields, "key")?;
    let released = {
        let mut sampler = console.0.hub.sampler().lock().await;
        sampler
            .release(name)
            .await
            .map_err(|invalid| ActionRefusal::wrong(invalid.to_string()))?
    };
    let (count, unknown) = (released.count(), released.unknown);
    if count == 0 && released.is_free {
        let why = format!("nothing was done: {name} was free already");
        return Err(ActionRefusal::wrong(why));
    }
    let logged = match count {
        0 => String::new(),
        _ => log(console.0.hub.client(), "release", name, &action).await,
    };
    if released.is_free {
        let holders = released.holders.join(", ");
        return Ok(format!(
            "released on {count} nodes; its holder was {holders}{logged}"
        ));
    }
    Err(ActionRefusal {
        status: StatusCode::SERVICE_UNAVAILABLE,
        message: format!(
            "released on {count} nodes, and it may still be held: {unknown} nodes did not say{logged}"
        ),
    })
}

/// Adds what was done to the log; returns nothing, or that this was not possible: it was done all the same.
async fn log(client: &Redlock, verb: &str, subject: &str, action: &Action) -> String {
    match log_action(client, verb, subject, action).await {
        Ok(()) => String::new(),
        Err(error) => format!("; it is not in the log of actions: {error}"),
    }
}

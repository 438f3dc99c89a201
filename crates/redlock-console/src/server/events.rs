//! The stream of what changes: one a tab, at most one event a second, with the sections that have changed.

use std::{collections::HashMap, convert::Infallible, time::Duration};

use axum::{
    Extension,
    extract::{Query, Request, State},
    http::{HeaderName, HeaderValue, request::Parts},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::stream;
use serde::Serialize;
use tokio::{
    select,
    sync::watch,
    time::{Instant, sleep_until},
};

use super::pages::{FilterQuery, Refused};
use crate::{
    Access, Console,
    filter::{Filter, Page},
    hub::LOOK_EVERY,
};

/// Streams the sections of the page: all of them at first, and then those that have changed.
pub(super) async fn events(
    State(console): State<Console>,
    Extension(access): Extension<Access>,
    Query(search): Query<FilterQuery>,
    request: Request,
) -> Result<Response, Refused> {
    let viewer = Viewer {
        filter: search.filter(access)?,
        access,
        parts: request.into_parts().0,
        closing: console.0.closing.subscribe(),
        console,
        seen: HashMap::new(),
        next: Instant::now(),
        end: Instant::now() + LONGEST,
    };
    let events = stream::unfold(viewer, async |mut viewer| {
        let event = viewer.next().await?;
        Some((Ok::<_, Infallible>(event), viewer))
    });
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(QUIET));
    // A proxy that collects an answer before it passes it on would pass nothing on.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    Ok(([(unbuffered, HeaderValue::from_static("no"))], stream).into_response())
}

/// The reader of a stream.
struct Viewer {
    console: Console,
    filter: Filter,
    access: Access,
    /// The request, by which access is asked for again and again.
    parts: Parts,
    closing: watch::Receiver<bool>,
    /// By section, the state that was sent.
    seen: HashMap<&'static str, u64>,
    /// The earliest moment of the next event.
    next: Instant,
    end: Instant,
}

/// The sections of an event.
#[derive(Serialize)]
struct Sections<'a> {
    /// The moment of the look.
    at_ms: u64,
    /// The sections as HTML, by their names.
    html: HashMap<&'a str, &'a str>,
}

impl Viewer {
    /// Returns the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        let mut closing = self.closing.clone();
        let end = self.end;
        select! {
            biased;
            // An error is the end of the console, too.
            _ = closing.wait_for(|is_closed| *is_closed) => None,
            () = sleep_until(end) => None,
            event = self.changed() => event,
        }
    }

    /// Looks once a second until a section has changed; `None` if the viewer has lost its access.
    async fn changed(&mut self) -> Option<Event> {
        loop {
            sleep_until(self.next).await;
            self.next = Instant::now() + LOOK_EVERY;
            if (self.console.0.access)(&self.parts) != self.access {
                // Another access has another page, so the browser asks again, and may be refused.
                return None;
            }
            let page = self.console.0.hub.look().await.page(&self.filter);
            if let Some(event) = self.event(&page) {
                return Some(event);
            }
        }
    }

    /// Returns the sections that have changed, as many as fit: the others are in the next event.
    fn event(&mut self, page: &Page) -> Option<Event> {
        let mut html = HashMap::new();
        let mut length = 0;
        for section in &page.sections {
            let is_known = self.seen.get(section.name) == Some(&section.state);
            // As JSON, a quotation mark takes another byte.
            let longer = section.html.len() + section.html.matches(['"', '\\', '\n']).count() + 32;
            if is_known || (length > 0 && length + longer > LONGEST_EVENT) {
                continue;
            }
            length += longer;
            self.seen.insert(section.name, section.state);
            html.insert(section.name, &*section.html);
        }
        if html.is_empty() {
            return None;
        }
        let at_ms = page.snapshot.at_ms;
        let data = serde_json::to_string(&Sections { at_ms, html });
        Some(Event::default().data(data.ok()?))
    }
}

/// How long a stream lasts: a server that waits for its connections waits no longer, whatever its application forgets.
const LONGEST: Duration = Duration::from_secs(300);
/// How long a stream is silent, before a comment shows proxies that it is alive.
const QUIET: Duration = Duration::from_secs(15);
/// The longest event, in bytes.
const LONGEST_EVENT: usize = 98_000;

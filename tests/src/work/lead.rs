use std::{
    future::{pending, poll_fn},
    path::PathBuf,
    pin::pin,
    time::Duration,
};

use redlock_core::{Lease, Term};
use serde::{Deserialize, Serialize};
use tokio::{
    select,
    signal::unix::{SignalKind, signal},
    time::interval,
};

use crate::{Connect, Event, HistoryWriter, Moment};

/// Campaigns as one of several candidates, again and again, until it is asked to end; then it resigns.
///
/// The history has each poll of its work as a leader, and the end of that work; the report is the number of its terms.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Lead {
    /// The file for its history.
    pub history: PathBuf,
    /// The nodes, and the ttl of its terms.
    pub connect: Connect,
    /// The name of the election.
    pub election: String,
    /// The name of the candidate.
    pub candidate: String,
    /// How often the work wakes up.
    pub period: Duration,
}

impl Lead {
    pub(super) async fn run(self) -> u64 {
        let history = HistoryWriter::open(&self.history).expect("the history can be opened");
        let redlock = self.connect.client().await;
        let election = redlock.election(self.election).candidate(self.candidate);
        let election = election.build().expect("the test names it well");
        let mut terms = 0;
        let (history, period) = (&history, self.period);
        let lead = election.lead(|term: Term| {
            terms += 1;
            let in_office = InOffice {
                history,
                lease: term.lease().clone(),
                number: terms,
            };
            async move {
                in_office.write(Moment::Acquired);
                let mut ticks = interval(period);
                loop {
                    let mut tick = pin!(ticks.tick());
                    poll_fn(|cx| {
                        in_office.write(Moment::Polled);
                        tick.as_mut().poll(cx).map(drop)
                    })
                    .await;
                }
            }
        });
        let end = async {
            let mut asked =
                signal(SignalKind::terminate()).expect("the process may have a handler");
            asked.recv().await;
            redlock.close().await;
            pending::<()>().await;
        };
        select! {
            led = lead => led.expect("no other caller of this process holds the resource"),
            () = end => {}
        }
        redlock.close().await;
        terms
    }
}

/// A leader's work; the last moment of it is when it is dropped.
struct InOffice<'a> {
    history: &'a HistoryWriter,
    lease: Lease,
    number: u64,
}

impl InOffice<'_> {
    fn write(&self, moment: Moment) {
        self.history
            .write(&Event::of(&self.lease, self.number, moment));
    }
}

impl Drop for InOffice<'_> {
    fn drop(&mut self) {
        self.write(Moment::Releasing);
    }
}

//! One replica of the service: it campaigns, and works while it leads.

use redlock_core::{Redlock, Term};
use tokio::signal::unix::{SignalKind, signal};

use crate::{BoxError, TTL};

/// A candidate's lines; a number follows the first.
pub(crate) const LEADS: &str = "leads, in term ";
pub(crate) const LOST: &str = "leads no longer";

/// Campaigns until it is asked to end; then it resigns.
pub(crate) async fn run(name: &str, nodes: &str) -> Result<(), BoxError> {
    let redlock = Redlock::builder().nodes(nodes.split(',')).ttl(TTL).build();
    let redlock = redlock.await?;
    let election = redlock.election("importer").candidate(name).build()?;
    let lead = election.lead(|term: Term| {
        println!("{LEADS}{}", term.token());
        let said = SaidAtTheEnd;
        async move {
            // Here is the work of the leader. It is dropped when the term ends, however it ends.
            std::future::pending::<()>().await;
            drop((term, said));
        }
    });
    let close = async {
        let mut asked = signal(SignalKind::terminate())?;
        asked.recv().await;
        redlock.close().await;
        Ok::<_, std::io::Error>(())
    };
    let (led, closed) = tokio::join!(lead, close);
    led?;
    Ok(closed?)
}

/// Says that the work of the leader was dropped.
struct SaidAtTheEnd;

impl Drop for SaidAtTheEnd {
    fn drop(&mut self) {
        println!("{LOST}");
    }
}

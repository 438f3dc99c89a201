//! The clients of the command, and where the nodes stand by them.

pub(crate) use redlock_console::look::nodes::{
    are_known, have_quorum, is_open, line, lines, name, name_at, ready_in, sample_until, settled,
    standing, votes, voting, why_not, words,
};
use redlock_core::{BuildErrorKind, NodeReport, Redlock};

use crate::{connection::NodeSettings, context::CommandContext, exit::CommandError};

/// Connects as a client does, and looks at each node once it has said where it stands.
///
/// The client is `None` if too few nodes answer.
pub(crate) async fn connect(
    context: &CommandContext,
    settings: &NodeSettings,
) -> Result<(Option<Redlock>, Vec<NodeReport>), CommandError> {
    match context.client(settings.builder()).await {
        Ok(client) => {
            let reports = settled(&client, settings).await;
            Ok((Some(client), reports))
        }
        Err(error) if error.kind() == BuildErrorKind::NoQuorum => {
            Ok((None, error.reports().to_vec()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns a client that a majority of the nodes answers.
pub(crate) async fn client(
    context: &CommandContext,
    settings: &NodeSettings,
) -> Result<Redlock, CommandError> {
    let (client, reports) = connect(context, settings).await?;
    client.ok_or_else(|| {
        let lines = lines(&reports);
        CommandError::NoQuorum(format!("too few nodes can be asked{lines}"))
    })
}

//! The operator of an action, and `redlock log`: what operators did.

use redlock_console::snapshot::ActionSnapshot;
use redlock_core::Redlock;
use redlock_cron::{Action, actions, log_action};

use crate::{
    connection::{ConnectionArgs, NodeSettings},
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    nodes::client,
};

/// The name and the reason of an operator, which the nodes remember.
#[derive(clap::Args, Debug)]
pub(crate) struct OperatorArgs {
    /// The name of the operator, which the nodes remember [default: the user of this shell]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// The reason, which the nodes remember: its first 200 bytes, with the name
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl OperatorArgs {
    /// Returns the action of this operator.
    pub(crate) fn action(self) -> Action {
        let user = || {
            ["USER", "LOGNAME"]
                .iter()
                .find_map(|name| std::env::var(name).ok())
        };
        let action = self
            .by
            .or_else(user)
            .map_or_else(Action::default, Action::by);
        match self.reason {
            Some(reason) => action.reason(reason),
            None => action,
        }
    }

    /// Adds what was done to the log; says so if that is not possible, because it was done all the same.
    pub(crate) async fn log(
        self,
        client: &Redlock,
        (verb, subject): (&str, &str),
        context: &CommandContext,
    ) {
        let logged = log_action(client, verb, subject, &self.action()).await;
        if let Err(error) = logged {
            let line = format!("it is not in the log of actions: {error}");
            context.output.progress(&line);
        }
    }

    /// The same, for a verb that has no client.
    pub(crate) async fn log_at(
        self,
        settings: &NodeSettings,
        done: (&str, &str),
        context: &CommandContext,
    ) {
        match client(context, settings).await {
            Ok(client) => self.log(&client, done, context).await,
            Err(error) => {
                let line = format!("it is not in the log of actions: {error}");
                context.output.progress(&line);
            }
        }
    }
}

/// The arguments of `log`.
#[derive(clap::Args, Debug)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Prints what operators did, the newest last.
pub(crate) async fn log(args: LogArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let client = client(context, &settings).await?;
    let Some(actions) = actions(&client).await else {
        let why = "too few nodes say what operators did";
        return Err(CommandError::NoQuorum(why.to_owned()));
    };
    let output = context.output;
    if output.is_json() {
        output.json(&actions.iter().map(ActionSnapshot::of).collect::<Vec<_>>())?;
    } else {
        for action in actions.iter().rev() {
            output.line(&action.to_string())?;
        }
        if actions.is_empty() {
            output.line("nothing is in the log")?;
        }
    }
    Ok(if actions.is_empty() {
        Exit::No
    } else {
        Exit::Yes
    })
}

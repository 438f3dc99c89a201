//! `redlock jobs`: what the nodes remember of jobs, and what a person does to one, without running it.

mod act;
mod forget;
mod list;
mod memory;
mod show;

use clap::Subcommand;
use redlock_core::{NodeReport, Redlock};

pub(crate) use self::{
    list::list,
    memory::{Json, Memory},
};
use crate::{
    connection::{Connection, Settings},
    context::Context,
    exit::{Exit, Failure},
    policy,
    standing::{line, stand},
};

/// The arguments of `jobs`.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// The job: the namespace of its scheduler, a slash, and its name; without it, all jobs
    #[arg(value_name = "NAMESPACE/NAME")]
    job: Option<String>,

    #[command(flatten)]
    connection: Connection,

    #[command(subcommand)]
    action: Option<Action>,
}

/// What is done to a job.
#[derive(Debug, Subcommand)]
enum Action {
    /// Keeps all replicas from starting a job
    #[command(after_help = "Example:\n  redlock jobs pause billing/close-day")]
    Pause(act::Args),
    /// Lets all replicas start a job again
    #[command(after_help = "Example:\n  redlock jobs resume billing/close-day")]
    Resume(act::Args),
    /// Deletes what the nodes remember of a job that no scheduler has any more
    #[command(after_help = "Example:\n  redlock jobs forget billing/close-day")]
    Forget(forget::Args),
}

/// Shows a job, or all of them, or does something to one.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    match args.action {
        Some(Action::Pause(args)) => act::pause(args, context).await,
        Some(Action::Resume(args)) => act::resume(args, context).await,
        Some(Action::Forget(args)) => forget::run(args, context).await,
        None => {
            let settings = policy::settings(&args.connection).await?;
            match args.job {
                Some(job) => show::run(&job.parse()?, &settings, context).await,
                None => list::run(&settings, context).await,
            }
        }
    }
}

/// A job, by the namespace of its scheduler and its name.
#[derive(Clone, Debug)]
struct Job {
    namespace: String,
    name: String,
}

impl std::str::FromStr for Job {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let (namespace, name) = text.split_once('/').ok_or_else(|| {
            Failure::wrong(
                "a job is called by its scheduler's namespace, a slash and its name, such as billing/close-day",
            )
        })?;
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Returns a client that a majority of the nodes answers.
async fn client(context: &Context, settings: &Settings) -> Result<Redlock, Failure> {
    let (client, reports) = stand(context, settings).await?;
    client.ok_or_else(|| too_few(&reports))
}

fn too_few(reports: &[NodeReport]) -> Failure {
    Failure::NoQuorum(format!("too few nodes can be asked{}", lines(reports)))
}

/// Returns a line for each node, to be put behind a message.
fn lines(reports: &[NodeReport]) -> String {
    let lines = reports.iter().map(|report| format!("\n  {}", line(report)));
    lines.collect()
}

//! What the command line asks for.

use std::fmt::Display;

use clap::{Args, Parser, Subcommand};
use redlock_model::{
    Check, InvalidScope, LeaseCheck, LeaseMutation, LedgerCheck, LedgerMutation, LedgerRole,
    LineCheck, LineMutation, Mutation, NamedCheck, NamedMutation, NamedRules, NamedWorld, Role,
    Scope, TickCheck, TickMutation,
};

use crate::{
    any::AnyCheck,
    suite::{self, Case},
};

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Command {
    One(Box<dyn AnyCheck>),
    Suite(Vec<Case>),
}

/// Explores all that can happen in a small world.
///
/// Without a word for another world, it checks the order of fencing tokens.
#[derive(Debug, Parser)]
#[command(
    after_help = after_help(),
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub(crate) struct Options {
    #[command(subcommand)]
    world: Option<World>,
    #[command(flatten)]
    tokens: Tokens,
}

#[derive(Debug, Subcommand)]
enum World {
    /// Claims: no tick starts twice
    #[command(long_flag = "claims")]
    Claims(Claims),
    /// A job's ledger: retries, backfills and requests heed each other
    #[command(long_flag = "ledger")]
    Ledger(Ledger),
    /// Leases: an exclusive holder is the only holder
    #[command(long_flag = "leases")]
    Leases(Leases),
    /// Callers in line: the first of them can be the next
    #[command(long_flag = "lines")]
    Lines(Lines),
    /// A node whose server others name: two servers give no two leases
    #[command(long_flag = "named")]
    Named(Named),
    /// What continuous integration runs: three minutes
    #[command(long_flag = "ci")]
    Ci,
    /// Larger worlds: a quarter of an hour, and 1.5 GiB of memory
    #[command(long_flag = "nightly")]
    Nightly,
}

#[derive(Args, Debug)]
struct Tokens {
    /// How many nodes there are
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: usize,
    /// How many clients there are, each with one attempt
    #[arg(long, value_name = "N", default_value_t = 2)]
    clients: usize,
    /// How often nodes lose their memory, in all
    #[arg(long, value_name = "N", default_value_t = 0)]
    crashes: u8,
    /// The greatest proposal
    #[arg(long, value_name = "N", default_value_t = 3)]
    proposals: u8,
    /// Breaks a rule
    #[arg(long, value_name = "NAME")]
    mutation: Option<Mutation>,
    /// Gives up beyond this number of states
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    max_states: usize,
    /// Keeps states that differ only in the names of clients and nodes
    #[arg(long)]
    no_symmetry: bool,
    /// Takes every step on its own
    #[arg(long)]
    no_pruning: bool,
}

#[derive(Args, Debug)]
struct Claims {
    /// How many claimants there are, each with one claim: 3 at most
    #[arg(long, value_name = "N", default_value_t = 2)]
    claimants: usize,
    /// How often nodes lose their data, in all: 3 at most
    #[arg(long, value_name = "N", default_value_t = 1)]
    crashes: u8,
    /// Each claims any of two ticks
    #[arg(long)]
    two_ticks: bool,
    /// Clocks go on for a step more
    #[arg(long)]
    longer: bool,
    /// Clocks go astray, and are right again
    #[arg(long)]
    strays: bool,
    /// Breaks a rule of claims
    #[arg(long, value_name = "NAME")]
    mutation: Option<TickMutation>,
}

#[derive(Args, Debug)]
struct Ledger {
    /// A replica each, 4 at most: schedule, retry, backfill, request
    #[arg(
        long,
        value_name = "A,B,..",
        value_delimiter = ',',
        default_value = "schedule,retry,backfill"
    )]
    roles: Vec<LedgerRole>,
    /// How many runs are lost or crash, in all: 3 at most
    #[arg(long, value_name = "N", default_value_t = 1)]
    cuts: u8,
    /// The ticks from A to B may be backfilled, 2 at most; a second time after the first
    #[arg(long, value_name = "A-B", value_parser = range)]
    backfill: Vec<(u8, u8)>,
    /// How many runs may be asked for: 3 at most
    #[arg(long, value_name = "N", default_value_t = 0)]
    requests: u8,
    /// Breaks a rule of a job's ledger
    #[arg(long, value_name = "NAME")]
    mutation: Option<LedgerMutation>,
}

#[derive(Args, Debug)]
struct Leases {
    /// A client each, 3 at most: writer, writer-then-reader, reader, upgrade
    #[arg(
        long,
        value_name = "A,B,..",
        value_delimiter = ',',
        default_value = "writer,reader"
    )]
    roles: Vec<Role>,
    /// How often nodes lose their data, in all: 3 at most
    #[arg(long, value_name = "N", default_value_t = 1)]
    crashes: u8,
    /// Breaks a rule of leases
    #[arg(long, value_name = "NAME")]
    mutation: Option<LeaseMutation>,
}

#[derive(Args, Debug)]
struct Lines {
    /// How many callers there are, each of which waits for one lease: 3 at most
    #[arg(long, value_name = "N", default_value_t = 2)]
    callers: usize,
    /// How often nodes lose their data, in all: 3 at most
    #[arg(long, value_name = "N", default_value_t = 0)]
    crashes: u8,
    /// The order of tokens of two callers that ask again up to N times in all, 7 at most
    #[arg(long, value_name = "N")]
    tokens: Option<u8>,
    /// No holder asks late, no entry ends, and a release comes at once behind its acquire
    #[arg(long)]
    plain: bool,
    /// Breaks a rule of lines
    #[arg(long, value_name = "NAME")]
    mutation: Option<LineMutation>,
}

#[derive(Args, Debug)]
struct Named {
    /// The greatest epoch: 3 at most
    #[arg(long, value_name = "N", default_value_t = 2)]
    failovers: u8,
    /// How often informants lose their files, in all: 3 at most
    #[arg(long, value_name = "N", default_value_t = 0)]
    lost: u8,
    /// How often informants are replaced, in all: 3 at most
    #[arg(long, value_name = "N", default_value_t = 0)]
    replaced: u8,
    /// How often servers restart, in all: 3 at most
    #[arg(long, value_name = "N", default_value_t = 0)]
    restarts: u8,
    /// Five informants, of which N are made to forget the others; three unless given
    #[arg(long, value_name = "N")]
    five: Option<u8>,
    /// How long a lease lasts, in steps of the clocks: 3 at most
    #[arg(long, value_name = "N", default_value_t = 1)]
    lease: u8,
    /// How long a confirmation lasts: 3 at most
    #[arg(long, value_name = "N", default_value_t = 1)]
    freshness: u8,
    /// The leader of a failover names the old server under the new epoch until that is over
    #[arg(long)]
    false_pair: bool,
    /// The leader says that its failover goes on, so it names no server to clients
    #[arg(long)]
    flagged: bool,
    /// A leader promotes a server late, or never
    #[arg(long)]
    late_promotions: bool,
    /// Requests take any time
    #[arg(long)]
    late_requests: bool,
    /// The answers of an inquiry come one after the other
    #[arg(long)]
    slow_answers: bool,
    /// No server is made a replica, and no client ends its session by itself
    #[arg(long)]
    plain: bool,
    /// A majority names the same server under any epochs, and marks have neither epoch nor roll
    #[arg(long)]
    without_terms: bool,
    /// With each promotion, a server has other data, also if it was a master
    #[arg(long)]
    new_data: bool,
    /// Breaks a rule of named servers
    #[arg(long, value_name = "NAME")]
    mutation: Option<NamedMutation>,
}

impl Options {
    /// Returns what is asked for.
    pub(crate) fn command(self) -> Result<Command, InvalidScope> {
        let check: Box<dyn AnyCheck> = match self.world {
            None => Box::new(self.tokens.check()?),
            Some(World::Claims(claims)) => Box::new(claims.check()?),
            Some(World::Ledger(ledger)) => Box::new(ledger.check()?),
            Some(World::Leases(leases)) => Box::new(leases.check()?),
            Some(World::Lines(lines)) => Box::new(lines.check()?),
            Some(World::Named(named)) => Box::new(named.check()?),
            Some(World::Ci) => return Ok(Command::Suite(suite::ci())),
            Some(World::Nightly) => return Ok(Command::Suite(suite::nightly())),
        };
        Ok(Command::One(check))
    }
}

impl Tokens {
    fn check(self) -> Result<Check, InvalidScope> {
        let scope = Scope::new(self.nodes, self.clients, self.crashes, self.proposals)?;
        let check = Check::new(scope).limit(self.max_states);
        let check = given(check, self.no_symmetry, Check::without_symmetry);
        let check = given(check, self.no_pruning, Check::without_pruning);
        Ok(self.mutation.map_or(check, |it| check.mutation(it)))
    }
}

impl Claims {
    fn check(self) -> Result<TickCheck, InvalidScope> {
        let check = TickCheck::new(self.claimants, self.crashes)?;
        let check = given(check, self.two_ticks, TickCheck::two_ticks);
        let check = given(check, self.longer, TickCheck::longer);
        let check = given(check, self.strays, TickCheck::with_strays);
        Ok(self.mutation.map_or(check, |it| check.mutation(it)))
    }
}

impl Ledger {
    fn check(self) -> Result<LedgerCheck, InvalidScope> {
        let mut check = LedgerCheck::new(&self.roles, self.cuts)?.requests(self.requests)?;
        for (first, last) in self.backfill {
            check = check.backfill(first, last)?;
        }
        Ok(self.mutation.map_or(check, |it| check.mutation(it)))
    }
}

impl Leases {
    fn check(self) -> Result<LeaseCheck, InvalidScope> {
        let check = LeaseCheck::new(&self.roles, self.crashes)?;
        Ok(self.mutation.map_or(check, |it| check.mutation(it)))
    }
}

impl Lines {
    fn check(self) -> Result<LineCheck, InvalidScope> {
        let check = match self.tokens {
            Some(beats) => LineCheck::of_tokens(beats, self.crashes)?,
            None => LineCheck::new(self.callers, self.crashes)?,
        };
        let check = given(check, self.plain, LineCheck::plain);
        Ok(self.mutation.map_or(check, |it| check.mutation(it)))
    }
}

impl Named {
    fn check(self) -> Result<NamedCheck, InvalidScope> {
        let world = NamedWorld::of(self.failovers)
            .clocks(self.lease, self.freshness)
            .lost(self.lost)
            .replaced(self.replaced)
            .restarts(self.restarts);
        let world = self.five.map_or(world, |resets| world.five(resets));
        let world = given(world, self.false_pair, NamedWorld::false_pair);
        let world = given(world, self.flagged, NamedWorld::flagged);
        let world = given(world, self.late_promotions, NamedWorld::late_promotions);
        let world = given(world, self.new_data, NamedWorld::new_data);
        let world = given(world, self.late_requests, NamedWorld::late_requests);
        let world = given(world, self.slow_answers, NamedWorld::slow_answers);
        let world = given(world, self.plain, NamedWorld::plain);
        let rules = if self.without_terms {
            NamedRules::Server
        } else {
            NamedRules::Term
        };
        let check = NamedCheck::new(rules, world)?;
        Ok(self.mutation.map_or(check, |it| check.mutation(it)))
    }
}

/// Returns a world, changed if that was asked for.
fn given<W>(world: W, is_given: bool, change: impl FnOnce(W) -> W) -> W {
    if is_given { change(world) } else { world }
}

/// Reads a tick, or two with a dash between them.
fn range(text: &str) -> Result<(u8, u8), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |part: &str| part.parse().map_err(|_| format!("'{part}' is no number"));
    Ok((number(first)?, number(last)?))
}

fn after_help() -> String {
    fn list(of: &str, mutations: &[impl Display]) -> String {
        let names: Vec<String> = mutations.iter().map(ToString::to_string).collect();
        format!("mutations{of}: {}\n\n", names.join(", "))
    }
    list("", &Mutation::ALL)
        + &list(" of claims", &TickMutation::ALL)
        + &list(" of a job's ledger", &LedgerMutation::ALL)
        + &list(" of leases", &LeaseMutation::ALL)
        + &list(" of lines", &LineMutation::ALL)
        + &list(" of named servers", &NamedMutation::ALL)
        + "exit status: 0 if nothing goes wrong, or a set came out as expected; 1 if not, after the shortest way to the \
           breach; 2 for arguments that make no sense; 3 if --max-states ended the search"
}

//! What the command line asks for.

use std::{ffi::OsString, fmt, slice::Iter, str::FromStr};

use redlock_model::{
    Check, InvalidScope, LeaseCheck, LeaseMutation, LedgerCheck, LedgerMutation, LedgerRole,
    LineCheck, LineMutation, Mutation, NamedCheck, NamedMutation, NamedRules, NamedWorld, Role,
    Scope, TickCheck, TickMutation, UnknownName,
};

use crate::{
    any::AnyCheck,
    suite::{self, Case},
};

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    One(Box<dyn AnyCheck>),
    Suite(Vec<Case>),
}

/// Arguments that ask for nothing there is; said to the user as it is.
#[derive(Debug)]
pub(crate) struct BadArguments(String);

impl fmt::Display for BadArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<InvalidScope> for BadArguments {
    fn from(error: InvalidScope) -> Self {
        Self(error.to_string())
    }
}

impl From<UnknownName> for BadArguments {
    fn from(error: UnknownName) -> Self {
        Self(error.to_string())
    }
}

/// Reads the arguments.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Command, BadArguments> {
    let arguments: Vec<String> = arguments
        .map(|argument| {
            argument
                .into_string()
                .map_err(|argument| BadArguments(format!("{} is not text", argument.display())))
        })
        .collect::<Result<_, _>>()?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let check: Box<dyn AnyCheck> = match words[..] {
        ["--help" | "-h"] => return Ok(Command::Help),
        ["--ci"] => return Ok(Command::Suite(suite::ci())),
        ["--nightly"] => return Ok(Command::Suite(suite::nightly())),
        [world @ "--claims", ref words @ ..] => Box::new(claims(Words::new(world, words))?),
        [world @ "--ledger", ref words @ ..] => Box::new(ledger(Words::new(world, words))?),
        [world @ "--leases", ref words @ ..] => Box::new(leases(Words::new(world, words))?),
        [world @ "--lines", ref words @ ..] => Box::new(lines(Words::new(world, words))?),
        [world @ "--named", ref words @ ..] => Box::new(named(Words::new(world, words))?),
        _ => Box::new(tokens(Words::new("", &words))?),
    };
    Ok(Command::One(check))
}

/// The options of a world, and their values.
struct Words<'a> {
    /// The word that begins them, if one does.
    world: &'a str,
    words: Iter<'a, &'a str>,
    option: &'a str,
}

impl<'a> Words<'a> {
    fn new(world: &'a str, words: &'a [&'a str]) -> Self {
        Self {
            world,
            words: words.iter(),
            option: world,
        }
    }

    /// Returns the next option.
    fn next(&mut self) -> Option<&'a str> {
        self.option = self.words.next().copied()?;
        Some(self.option)
    }

    /// Returns the value of the option.
    fn value(&mut self) -> Result<&'a str, BadArguments> {
        let value = self.words.next().copied();
        value.ok_or_else(|| BadArguments(format!("{} needs a value", self.option)))
    }

    fn number<N: FromStr>(&mut self) -> Result<N, BadArguments> {
        let value = self.value()?;
        self.number_of(value)
    }

    /// Returns the number in a part of the value.
    fn number_of<N: FromStr>(&self, part: &str) -> Result<N, BadArguments> {
        let option = self.option;
        part.parse()
            .map_err(|_| BadArguments(format!("{option} needs a whole number, not '{part}'")))
    }

    fn name<N: FromStr<Err = UnknownName>>(&mut self) -> Result<N, BadArguments> {
        Ok(self.value()?.parse()?)
    }

    fn names<N: FromStr<Err = UnknownName>>(&mut self) -> Result<Vec<N>, BadArguments> {
        let names = self.value()?.split(',').map(str::parse::<N>);
        Ok(names.collect::<Result<Vec<N>, _>>()?)
    }

    /// Returns the error of an option that there is not.
    fn unknown(&self) -> BadArguments {
        let (option, world) = (self.option, self.world);
        let of = if world.is_empty() { "" } else { " of " };
        BadArguments(format!("there is no option '{option}'{of}{world}"))
    }
}

/// The check of tokens that these options describe.
fn tokens(mut options: Words<'_>) -> Result<Check, BadArguments> {
    let (mut nodes, mut clients, mut crashes, mut proposals) = (3, 2, 0, 3);
    let (mut mutation, mut limit) = (None, usize::MAX);
    let (mut symmetry, mut pruning) = (true, true);
    while let Some(option) = options.next() {
        match option {
            "--nodes" => nodes = options.number()?,
            "--clients" => clients = options.number()?,
            "--crashes" => crashes = options.number()?,
            "--proposals" => proposals = options.number()?,
            "--max-states" => limit = options.number()?,
            "--mutation" => mutation = Some(options.name::<Mutation>()?),
            "--no-symmetry" => symmetry = false,
            "--no-pruning" => pruning = false,
            "--ci" | "--nightly" | "--help" | "-h" => {
                return Err(BadArguments(format!("{option} stands alone")));
            }
            _ => return Err(options.unknown()),
        }
    }
    let mut check = Check::new(Scope::new(nodes, clients, crashes, proposals)?).limit(limit);
    if !symmetry {
        check = check.without_symmetry();
    }
    if !pruning {
        check = check.without_pruning();
    }
    Ok(mutation.map_or(check, |it| check.mutation(it)))
}

/// The check of claims that these options describe.
fn claims(mut options: Words<'_>) -> Result<TickCheck, BadArguments> {
    let (mut claimants, mut crashes, mut mutation) = (2, 1, None);
    let mut larger: Vec<fn(TickCheck) -> TickCheck> = Vec::new();
    while let Some(option) = options.next() {
        match option {
            "--claimants" => claimants = options.number()?,
            "--crashes" => crashes = options.number()?,
            "--mutation" => mutation = Some(options.name::<TickMutation>()?),
            "--two-ticks" => larger.push(TickCheck::two_ticks),
            "--longer" => larger.push(TickCheck::longer),
            "--strays" => larger.push(TickCheck::with_strays),
            _ => return Err(options.unknown()),
        }
    }
    let check = TickCheck::new(claimants, crashes)?;
    let check = larger
        .into_iter()
        .fold(check, |check, enlarge| enlarge(check));
    Ok(mutation.map_or(check, |it| check.mutation(it)))
}

/// The check of a job's ledger that these options describe.
fn ledger(mut options: Words<'_>) -> Result<LedgerCheck, BadArguments> {
    let mut roles = vec![
        LedgerRole::Schedule,
        LedgerRole::Retry,
        LedgerRole::Backfill,
    ];
    let (mut cuts, mut requests, mut mutation, mut ranges) = (1, 0, None, Vec::new());
    while let Some(option) = options.next() {
        match option {
            "--roles" => roles = options.names()?,
            "--cuts" => cuts = options.number()?,
            "--requests" => requests = options.number()?,
            "--backfill" => {
                let range = options.value()?;
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                ranges.push((options.number_of(first)?, options.number_of(last)?));
            }
            "--mutation" => mutation = Some(options.name::<LedgerMutation>()?),
            _ => return Err(options.unknown()),
        }
    }
    let mut check = LedgerCheck::new(&roles, cuts)?.requests(requests)?;
    for (first, last) in ranges {
        check = check.backfill(first, last)?;
    }
    Ok(mutation.map_or(check, |it| check.mutation(it)))
}

/// The check of leases that these options describe.
fn leases(mut options: Words<'_>) -> Result<LeaseCheck, BadArguments> {
    let (mut roles, mut crashes, mut mutation) = (vec![Role::Writer, Role::Reader], 1, None);
    while let Some(option) = options.next() {
        match option {
            "--roles" => roles = options.names()?,
            "--crashes" => crashes = options.number()?,
            "--mutation" => mutation = Some(options.name::<LeaseMutation>()?),
            _ => return Err(options.unknown()),
        }
    }
    let check = LeaseCheck::new(&roles, crashes)?;
    Ok(mutation.map_or(check, |it| check.mutation(it)))
}

/// The check of lines that these options describe.
fn lines(mut options: Words<'_>) -> Result<LineCheck, BadArguments> {
    let (mut callers, mut crashes, mut beats, mut mutation) = (2, 0, None, None);
    let mut is_plain = false;
    while let Some(option) = options.next() {
        match option {
            "--callers" => callers = options.number()?,
            "--crashes" => crashes = options.number()?,
            "--tokens" => beats = Some(options.number()?),
            "--plain" => is_plain = true,
            "--mutation" => mutation = Some(options.name::<LineMutation>()?),
            _ => return Err(options.unknown()),
        }
    }
    let mut check = match beats {
        Some(beats) => LineCheck::of_tokens(beats, crashes)?,
        None => LineCheck::new(callers, crashes)?,
    };
    if is_plain {
        check = check.plain();
    }
    Ok(mutation.map_or(check, |it| check.mutation(it)))
}

/// Sets a number of a world of named servers.
type SetNumber = fn(NamedWorld, u8) -> NamedWorld;

/// The check of named servers that these options describe.
fn named(mut options: Words<'_>) -> Result<NamedCheck, BadArguments> {
    let (mut failovers, mut rules, mut mutation) = (2, NamedRules::Term, None);
    let (mut ttl, mut freshness) = (1, 1);
    let mut numbers: Vec<(SetNumber, u8)> = Vec::new();
    let mut larger: Vec<fn(NamedWorld) -> NamedWorld> = Vec::new();
    while let Some(option) = options.next() {
        match option {
            "--failovers" => failovers = options.number()?,
            "--lease" => ttl = options.number()?,
            "--freshness" => freshness = options.number()?,
            "--without-terms" => rules = NamedRules::Server,
            "--lost" => numbers.push((NamedWorld::lost, options.number()?)),
            "--replaced" => numbers.push((NamedWorld::replaced, options.number()?)),
            "--restarts" => numbers.push((NamedWorld::restarts, options.number()?)),
            "--five" => numbers.push((NamedWorld::five, options.number()?)),
            "--false-pair" => larger.push(NamedWorld::false_pair),
            "--flagged" => larger.push(NamedWorld::flagged),
            "--late-promotions" => larger.push(NamedWorld::late_promotions),
            "--new-data" => larger.push(NamedWorld::new_data),
            "--late-requests" => larger.push(NamedWorld::late_requests),
            "--slow-answers" => larger.push(NamedWorld::slow_answers),
            "--plain" => larger.push(NamedWorld::plain),
            "--mutation" => mutation = Some(options.name::<NamedMutation>()?),
            _ => return Err(options.unknown()),
        }
    }
    let world = NamedWorld::of(failovers).clocks(ttl, freshness);
    let world = numbers
        .iter()
        .fold(world, |world, (set, to)| set(world, *to));
    let world = larger.iter().fold(world, |world, enlarge| enlarge(world));
    let check = NamedCheck::new(rules, world)?;
    Ok(mutation.map_or(check, |it| check.mutation(it)))
}

/// What there is.
pub(crate) fn usage() -> String {
    let mut mutations = String::new();
    for mutation in Mutation::ALL {
        let remark = if mutation.is_safe() { "  (safe)" } else { "" };
        mutations += &format!("  {mutation}{remark}\n");
    }
    let of_claims = list(&TickMutation::ALL);
    let of_ledger = list(&LedgerMutation::ALL);
    let of_leases = list(&LeaseMutation::ALL);
    let of_lines = list(&LineMutation::ALL);
    let of_named = list(&NamedMutation::ALL);
    format!(
        "{USAGE}\nmutations, each of which breaks a rule of the protocol:\n{mutations}\nmutations of claims:\n{of_claims}\nmutations of a job's ledger:\n{of_ledger}\nmutations of leases:\n{of_leases}\nmutations of lines:\n{of_lines}\nmutations of named servers:\n{of_named}{EXIT}"
    )
}

/// Returns a line for each mutation.
fn list(mutations: &[impl fmt::Display]) -> String {
    let lines = mutations.iter().map(|mutation| format!("  {mutation}\n"));
    lines.collect()
}

const USAGE: &str = "\
usage: redlock-model [OPTIONS]
       redlock-model --claims [OPTIONS OF CLAIMS]
       redlock-model --ledger [OPTIONS OF A JOB'S LEDGER]
       redlock-model --leases [OPTIONS OF LEASES]
       redlock-model --lines [OPTIONS OF LINES]
       redlock-model --named [OPTIONS OF NAMED SERVERS]
       redlock-model --ci | --nightly

Explores all that can happen in a small world, and checks the order of fencing tokens; or of claims, that no tick
starts twice; or of a job's ledger, that retries, backfills and requests heed each other; or of leases, that an exclusive holder is the only holder; or of callers in line, that the first of them can
be the next; or of a node whose server others name, that two servers give no two leases.

  --nodes N         nodes, 3 unless given
  --clients N       clients, each with one attempt, 2 unless given
  --crashes N       how often nodes lose their memory, in all, 0 unless given
  --proposals N     the greatest proposal, 3 unless given
  --mutation NAME   break a rule
  --max-states N    give up beyond this number of states
  --no-symmetry     keep states that differ only in the names of clients and nodes
  --no-pruning      take every step on its own
options of claims:
  --claimants N     claimants, each with one claim, 2 unless given, 3 at most
  --crashes N       how often nodes lose their data, in all, 1 unless given, 3 at most
  --two-ticks       each claims any of two ticks
  --longer          clocks go on for a step more
  --strays          clocks go astray, and are right again
  --mutation NAME   break a rule of claims
options of a job's ledger:
  --roles A,B,..    a replica each, 4 at most: schedule, retry, backfill, request; schedule,retry,backfill unless given
  --cuts N          how many runs are lost or crash, in all, 1 unless given, 3 at most
  --backfill A-B    the ticks from A to B may be backfilled, 2 at most; a second time after the first
  --requests N      how many runs may be asked for, 0 unless given, 3 at most
  --mutation NAME   break a rule of a job's ledger
options of leases:
  --roles A,B,..    a client each, 3 at most: writer, writer-then-reader, reader, upgrade;
                    writer,reader unless given
  --crashes N       how often nodes lose their data, in all, 1 unless given, 3 at most
  --mutation NAME   break a rule of leases
options of lines:
  --callers N       callers, each of which waits for one lease, 2 unless given, 3 at most
  --crashes N       how often nodes lose their data, in all, 0 unless given, 3 at most
  --tokens N        the order of tokens of two callers that ask again up to N times in all, 7 at most
  --plain           no holder asks late, no entry ends, and a release comes at once behind its acquire
  --mutation NAME   break a rule of lines
options of named servers:
  --failovers N     the greatest epoch, 2 unless given, 3 at most
  --lost N          how often informants lose their files, in all, 0 unless given, 3 at most
  --replaced N      how often informants are replaced, in all, 0 unless given, 3 at most
  --restarts N      how often servers restart, in all, 0 unless given, 3 at most
  --five N          five informants, of which N are made to forget the others; three unless given
  --lease N         how long a lease lasts, in steps of the clocks, 1 unless given, 3 at most
  --freshness N     how long a confirmation lasts, 1 unless given, 3 at most
  --false-pair      the leader of a failover names the old server under the new epoch until that is over
  --flagged         the leader says that its failover goes on, so it names no server to clients
  --late-promotions a leader promotes a server late, or never
  --late-requests   requests take any time
  --slow-answers    the answers of an inquiry come one after the other
  --plain           no server is made a replica, and no client ends its session by itself
  --without-terms   a majority names the same server under any epochs, and marks have neither epoch nor roll
  --new-data        with each promotion, a server has other data, also if it was a master
  --mutation NAME   break a rule of named servers

sets:
  --ci              what continuous integration runs: three minutes
  --nightly         larger worlds: a quarter of an hour, and 1.5 GiB of memory
";

const EXIT: &str = "
exit status: 0 if nothing goes wrong, or a set came out as expected; 1 if not, after the shortest way to the breach; 2 for arguments that make no sense; 3 if --max-states ended the search
";

//! What the command line asks for.

use std::{ffi::OsString, fmt};

use redlock_model::{
    Check, InvalidScope, LeaseCheck, LeaseMutation, LedgerCheck, LedgerMutation, LedgerRole,
    LineCheck, LineMutation, Mutation, NamedCheck, NamedMutation, NamedRules, NamedWorld, Role,
    Scope, TickCheck, TickMutation,
};

use crate::suite::{self, Case};

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    One(Check),
    Claims(TickCheck),
    Ledger(LedgerCheck),
    Leases(LeaseCheck),
    Lines(LineCheck),
    Named(NamedCheck),
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
    match words[..] {
        ["--help" | "-h"] => Ok(Command::Help),
        ["--ci"] => Ok(Command::Suite(suite::ci())),
        ["--nightly"] => Ok(Command::Suite(suite::nightly())),
        ["--claims", ref words @ ..] => claims(words).map(Command::Claims),
        ["--ledger", ref words @ ..] => ledger(words).map(Command::Ledger),
        ["--leases", ref words @ ..] => leases(words).map(Command::Leases),
        ["--lines", ref words @ ..] => lines(words).map(Command::Lines),
        ["--named", ref words @ ..] => named(words).map(Command::Named),
        _ => one(&words).map(Command::One),
    }
}

/// The check that these options describe.
fn one(words: &[&str]) -> Result<Check, BadArguments> {
    let (mut nodes, mut clients, mut crashes, mut proposals) = (3, 2, 0, 3);
    let (mut mutation, mut limit) = (None, usize::MAX);
    let (mut symmetry, mut pruning) = (true, true);
    let mut words = words.iter();
    while let Some(option) = words.next() {
        let mut value = || {
            let value = words.next().copied();
            value.ok_or_else(|| BadArguments(format!("{option} needs a value")))
        };
        match *option {
            "--nodes" => nodes = number(option, value()?)?,
            "--clients" => clients = number(option, value()?)?,
            "--crashes" => crashes = number(option, value()?)?,
            "--proposals" => proposals = number(option, value()?)?,
            "--max-states" => limit = number(option, value()?)?,
            "--mutation" => {
                let name = value()?;
                let known: Result<Mutation, _> = name.parse();
                mutation = Some(known.map_err(|error| BadArguments(error.to_string()))?);
            }
            "--no-symmetry" => symmetry = false,
            "--no-pruning" => pruning = false,
            "--ci" | "--nightly" | "--help" | "-h" => {
                return Err(BadArguments(format!("{option} stands alone")));
            }
            _ => return Err(BadArguments(format!("there is no option '{option}'"))),
        }
    }
    let scope = Scope::new(nodes, clients, crashes, proposals)
        .map_err(|error| BadArguments(error.to_string()))?;
    let mut check = Check::new(scope).limit(limit);
    if let Some(mutation) = mutation {
        check = check.mutation(mutation);
    }
    if !symmetry {
        check = check.without_symmetry();
    }
    if !pruning {
        check = check.without_pruning();
    }
    Ok(check)
}

/// The check of claims that these options describe.
fn claims(words: &[&str]) -> Result<TickCheck, BadArguments> {
    let (mut claimants, mut crashes, mut mutation) = (2, 1, None);
    let mut larger: Vec<fn(TickCheck) -> TickCheck> = Vec::new();
    let mut words = words.iter();
    while let Some(option) = words.next() {
        let mut value = || {
            let value = words.next().copied();
            value.ok_or_else(|| BadArguments(format!("{option} needs a value")))
        };
        match *option {
            "--claimants" => claimants = number(option, value()?)?,
            "--crashes" => crashes = number(option, value()?)?,
            "--mutation" => {
                let known: Result<TickMutation, _> = value()?.parse();
                mutation = Some(known.map_err(|error| BadArguments(error.to_string()))?);
            }
            "--two-ticks" => larger.push(TickCheck::two_ticks),
            "--longer" => larger.push(TickCheck::longer),
            "--strays" => larger.push(TickCheck::with_strays),
            _ => {
                let message = format!("there is no option '{option}' of --claims");
                return Err(BadArguments(message));
            }
        }
    }
    let check =
        TickCheck::new(claimants, crashes).map_err(|error| BadArguments(error.to_string()))?;
    let check = larger
        .into_iter()
        .fold(check, |check, enlarge| enlarge(check));
    Ok(match mutation {
        Some(mutation) => check.mutation(mutation),
        None => check,
    })
}

/// The check of a job's ledger that these options describe.
fn ledger(words: &[&str]) -> Result<LedgerCheck, BadArguments> {
    let bad = |error: InvalidScope| BadArguments(error.to_string());
    let mut roles = vec![
        LedgerRole::Schedule,
        LedgerRole::Retry,
        LedgerRole::Backfill,
    ];
    let (mut cuts, mut requests, mut mutation, mut ranges) = (1, 0, None, Vec::new());
    let mut words = words.iter();
    while let Some(option) = words.next() {
        let mut value = || {
            let value = words.next().copied();
            value.ok_or_else(|| BadArguments(format!("{option} needs a value")))
        };
        match *option {
            "--roles" => {
                let names = value()?.split(',');
                roles = names.map(ledger_role).collect::<Result<_, _>>()?;
            }
            "--cuts" => cuts = number(option, value()?)?,
            "--requests" => requests = number(option, value()?)?,
            "--backfill" => {
                let range = value()?;
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                ranges.push((number(option, first)?, number(option, last)?));
            }
            "--mutation" => {
                let known: Result<LedgerMutation, _> = value()?.parse();
                mutation = Some(known.map_err(|error| BadArguments(error.to_string()))?);
            }
            _ => {
                let message = format!("there is no option '{option}' of --ledger");
                return Err(BadArguments(message));
            }
        }
    }
    let check = LedgerCheck::new(&roles, cuts).and_then(|check| check.requests(requests));
    let mut check = check.map_err(bad)?;
    for (first, last) in ranges {
        check = check.backfill(first, last).map_err(bad)?;
    }
    Ok(match mutation {
        Some(mutation) => check.mutation(mutation),
        None => check,
    })
}

/// The check of leases that these options describe.
fn leases(words: &[&str]) -> Result<LeaseCheck, BadArguments> {
    let (mut roles, mut crashes, mut mutation) = (vec![Role::Writer, Role::Reader], 1, None);
    let mut words = words.iter();
    while let Some(option) = words.next() {
        let mut value = || {
            let value = words.next().copied();
            value.ok_or_else(|| BadArguments(format!("{option} needs a value")))
        };
        match *option {
            "--roles" => roles = value()?.split(',').map(role).collect::<Result<_, _>>()?,
            "--crashes" => crashes = number(option, value()?)?,
            "--mutation" => {
                let known: Result<LeaseMutation, _> = value()?.parse();
                mutation = Some(known.map_err(|error| BadArguments(error.to_string()))?);
            }
            _ => {
                let message = format!("there is no option '{option}' of --leases");
                return Err(BadArguments(message));
            }
        }
    }
    let check =
        LeaseCheck::new(&roles, crashes).map_err(|error| BadArguments(error.to_string()))?;
    Ok(match mutation {
        Some(mutation) => check.mutation(mutation),
        None => check,
    })
}

/// The check of lines that these options describe.
fn lines(words: &[&str]) -> Result<LineCheck, BadArguments> {
    let (mut callers, mut crashes, mut beats, mut mutation) = (2, 0, None, None);
    let mut is_plain = false;
    let mut words = words.iter();
    while let Some(option) = words.next() {
        let mut value = || {
            let value = words.next().copied();
            value.ok_or_else(|| BadArguments(format!("{option} needs a value")))
        };
        match *option {
            "--callers" => callers = number(option, value()?)?,
            "--crashes" => crashes = number(option, value()?)?,
            "--tokens" => beats = Some(number(option, value()?)?),
            "--plain" => is_plain = true,
            "--mutation" => {
                let known: Result<LineMutation, _> = value()?.parse();
                mutation = Some(known.map_err(|error| BadArguments(error.to_string()))?);
            }
            _ => {
                let message = format!("there is no option '{option}' of --lines");
                return Err(BadArguments(message));
            }
        }
    }
    let check = match beats {
        Some(beats) => LineCheck::of_tokens(beats, crashes),
        None => LineCheck::new(callers, crashes),
    };
    let mut check = check.map_err(|error| BadArguments(error.to_string()))?;
    if is_plain {
        check = check.plain();
    }
    Ok(match mutation {
        Some(mutation) => check.mutation(mutation),
        None => check,
    })
}

/// The check of named servers that these options describe.
fn named(words: &[&str]) -> Result<NamedCheck, BadArguments> {
    let (mut failovers, mut rules, mut mutation) = (2, NamedRules::Term, None);
    let (mut ttl, mut freshness) = (1, 1);
    let mut larger: Vec<Box<dyn Fn(NamedWorld) -> NamedWorld>> = Vec::new();
    let mut words = words.iter();
    while let Some(option) = words.next() {
        let mut value = || {
            let value = words.next().copied();
            value.ok_or_else(|| BadArguments(format!("{option} needs a value")))
        };
        let mut count = || value().and_then(|value| number::<u8>(option, value));
        match *option {
            "--failovers" => failovers = count()?,
            "--lease" => ttl = count()?,
            "--freshness" => freshness = count()?,
            "--without-terms" => rules = NamedRules::Server,
            "--lost" => {
                let lost = count()?;
                larger.push(Box::new(move |world| world.lost(lost)));
            }
            "--replaced" => {
                let replaced = count()?;
                larger.push(Box::new(move |world| world.replaced(replaced)));
            }
            "--restarts" => {
                let restarts = count()?;
                larger.push(Box::new(move |world| world.restarts(restarts)));
            }
            "--five" => {
                let resets = count()?;
                larger.push(Box::new(move |world| world.five(resets)));
            }
            "--false-pair" => larger.push(Box::new(NamedWorld::false_pair)),
            "--flagged" => larger.push(Box::new(NamedWorld::flagged)),
            "--late-promotions" => larger.push(Box::new(NamedWorld::late_promotions)),
            "--new-data" => larger.push(Box::new(NamedWorld::new_data)),
            "--late-requests" => larger.push(Box::new(NamedWorld::late_requests)),
            "--slow-answers" => larger.push(Box::new(NamedWorld::slow_answers)),
            "--plain" => larger.push(Box::new(NamedWorld::plain)),
            "--mutation" => {
                let known: Result<NamedMutation, _> = value()?.parse();
                mutation = Some(known.map_err(|error| BadArguments(error.to_string()))?);
            }
            _ => {
                let message = format!("there is no option '{option}' of --named");
                return Err(BadArguments(message));
            }
        }
    }
    let world = NamedWorld::of(failovers).clocks(ttl, freshness);
    let world = larger.iter().fold(world, |world, enlarge| enlarge(world));
    let check = NamedCheck::new(rules, world).map_err(|error| BadArguments(error.to_string()))?;
    Ok(match mutation {
        Some(mutation) => check.mutation(mutation),
        None => check,
    })
}

fn role(name: &str) -> Result<Role, BadArguments> {
    let found = Role::ALL.into_iter().find(|role| role.name() == name);
    found.ok_or_else(|| {
        let names = Role::ALL.map(Role::name).join(", ");
        BadArguments(format!("there is no role '{name}', only {names}"))
    })
}

fn ledger_role(name: &str) -> Result<LedgerRole, BadArguments> {
    let found = LedgerRole::ALL.into_iter().find(|role| role.name() == name);
    found.ok_or_else(|| {
        let names = LedgerRole::ALL.map(LedgerRole::name).join(", ");
        BadArguments(format!("there is no role '{name}', only {names}"))
    })
}

fn number<N: std::str::FromStr>(option: &str, value: &str) -> Result<N, BadArguments> {
    value
        .parse()
        .map_err(|_| BadArguments(format!("{option} needs a whole number, not '{value}'")))
}

/// What there is.
pub(crate) fn usage() -> String {
    let mut mutations = String::new();
    for mutation in Mutation::ALL {
        let remark = if mutation.is_safe() { "  (safe)" } else { "" };
        mutations += &format!("  {mutation}{remark}\n");
    }
    let mut of_claims = String::new();
    for mutation in TickMutation::ALL {
        of_claims += &format!("  {mutation}\n");
    }
    let mut of_ledger = String::new();
    for mutation in LedgerMutation::ALL {
        of_ledger += &format!("  {mutation}\n");
    }
    let mut of_leases = String::new();
    for mutation in LeaseMutation::ALL {
        of_leases += &format!("  {mutation}\n");
    }
    let mut of_lines = String::new();
    for mutation in LineMutation::ALL {
        of_lines += &format!("  {mutation}\n");
    }
    let mut of_named = String::new();
    for mutation in NamedMutation::ALL {
        of_named += &format!("  {mutation}\n");
    }
    format!(
        "{USAGE}\nmutations, each of which breaks a rule of the protocol:\n{mutations}\nmutations of claims:\n{of_claims}\nmutations of a job's ledger:\n{of_ledger}\nmutations of leases:\n{of_leases}\nmutations of lines:\n{of_lines}\nmutations of named servers:\n{of_named}{EXIT}"
    )
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

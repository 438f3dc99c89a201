//! How a breach comes about, told step by step.

use std::fmt::{self, Write};

use crate::{
    Breach, Scope,
    name::Name,
    state::{Exchange, NodeSet, Standing, State},
    step::Step,
};

/// How a [`Breach`] comes about: one of the shortest ways to it, of those that the search takes.
///
/// Its `Display` has one line for each step, with what is true of the nodes afterwards.
#[derive(Clone, Debug)]
pub struct Trace {
    scope: Scope,
    steps: Vec<Told>,
    breach: Option<Breach>,
}

/// A step, in words, and the nodes after it.
#[derive(Clone, Debug)]
struct Told {
    step: String,
    nodes: String,
}

impl Trace {
    pub(crate) fn new(scope: Scope) -> Self {
        Self {
            scope,
            steps: Vec::new(),
            breach: None,
        }
    }

    /// Tells one more step, and what must not have happened by it.
    pub(crate) fn push(
        &mut self,
        step: Step,
        before: &State,
        after: &State,
        breach: Option<Breach>,
    ) {
        let mut nodes = String::new();
        for node in 0..self.scope.nodes() {
            write!(nodes, "{:<7}", Mark(after, node).to_string()).unwrap_or_default();
        }
        let step = Sentence {
            step,
            before,
            after,
        };
        self.steps.push(Told {
            step: step.to_string(),
            nodes: nodes.trim_end().to_owned(),
        });
        self.breach = breach;
    }

    /// What it leads to.
    pub const fn breach(&self) -> Option<Breach> {
        self.breach
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.steps.iter().map(|told| told.step.len()).max();
        let width = width.unwrap_or_default();
        for (number, Told { step, nodes }) in self.steps.iter().enumerate() {
            writeln!(f, "{:>3}. {step:width$}  | {nodes}", number + 1)?;
        }
        if let Some(breach) = self.breach {
            writeln!(f, "     {breach}")?;
        }
        f.write_str(LEGEND)
    }
}

const LEGEND: &str = "
     After |, each node: its counter, +floor if it was given one, and whose key it has, if that can still
     matter; ? while it is in quarantine, ! until it has a floor.";

/// What is true of a node, in a few characters.
struct Mark<'a>(&'a State, usize);

impl fmt::Display for Mark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = &self.0.nodes[self.1];
        write!(f, "{}", node.counter)?;
        if node.floor > 0 {
            write!(f, "+{}", node.floor)?;
        }
        match node.standing {
            Standing::Voting => {}
            Standing::Quarantined => f.write_char('?')?,
            Standing::Aged => f.write_char('!')?,
        }
        match node.key {
            Some(client) => write!(f, "{}", Name(client.into())),
            None => Ok(()),
        }
    }
}

/// A step in words.
struct Sentence<'a> {
    step: Step,
    before: &'a State,
    after: &'a State,
}

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Step::Start { client, proposal } => {
                write!(f, "{} starts, and proposes {proposal}", Name(client))
            }
            Step::Acquire { client, node } => self.acquire(f, client, node),
            Step::Lose { client, node } => {
                write!(
                    f,
                    "{} does not count what node {node} answered",
                    Name(client)
                )
            }
            Step::Settle {
                client,
                counted,
                token,
                write_back,
            } => {
                let (client, counted) = (Name(client), Nodes(counted));
                write!(
                    f,
                    "{client} counts the votes of {counted}: its token is {token}"
                )?;
                match write_back {
                    Some(nodes) => write!(f, ", to be written back to {}", Nodes(nodes)),
                    None => Ok(()),
                }
            }
            Step::WriteBack { client, node } => {
                write!(f, "{}'s write-back reaches node {node}: ", Name(client))?;
                match self.after.clients[client].at[node] {
                    Exchange::Stored => f.write_str("stored"),
                    _ => f.write_str("not counted"),
                }
            }
            Step::Finish { client } => write!(f, "{} finishes", Name(client)),
            Step::Fail { client } => write!(f, "{} gives up", Name(client)),
            Step::Expire { node } => write!(f, "the key of node {node} expires"),
            Step::Crash { node } => write!(f, "node {node} loses its memory"),
            Step::EndQuarantine { node } => write!(f, "the quarantine of node {node} ends"),
            Step::Read { node, of } => {
                write!(f, "node {of} is read on behalf of node {node}")
            }
            Step::Open { node, floor } => {
                write!(f, "node {node} takes the floor {floor}, and votes")
            }
        }
    }
}

impl Sentence<'_> {
    fn acquire(&self, f: &mut fmt::Formatter<'_>, client: usize, node: usize) -> fmt::Result {
        let (before, after) = (&self.before.nodes[node], &self.after.nodes[node]);
        write!(f, "{}'s acquire reaches node {node}", Name(client))?;
        if let Some(holder) = before.key
            && after.counter != before.counter
        {
            write!(f, " after {}'s key expired", Name(holder.into()))?;
        }
        match self.after.clients[client].at[node] {
            Exchange::Vote(counter) => write!(f, ": a vote with {counter}"),
            _ if after.counter == before.counter => f.write_str(": refused"),
            _ => write!(f, ": granted with {}, but no vote", after.counter),
        }
    }
}

/// Nodes, by number.
struct Nodes(NodeSet);

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(|node| node.to_string()).collect();
        match numbers.split_last() {
            None => f.write_str("no node"),
            Some((only, [])) => write!(f, "node {only}"),
            Some((last, others)) => write!(f, "nodes {} and {last}", others.join(", ")),
        }
    }
}

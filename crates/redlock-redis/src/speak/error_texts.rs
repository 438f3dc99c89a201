//! The words for users about an error that a server sent: ours, and never the server's.
//!
//! Servers and proxies repeat requests in their errors.
//! A request has the owner value of a lock in it, the name of a resource, or a password.
//! So a server's text is compared with texts that are known, and what is passed on is drawn from constants.

use std::{borrow::Cow, sync::Arc};

use super::rights;
use crate::script;

/// Returns an error that a server sent, in words of ours: its code, what it means and what to do, and the command that met it.
pub(crate) fn retold(text: &str) -> String {
    if script::has_words(text) {
        return text.to_owned();
    }
    let raised = raised(text);
    let (code, rest) = raised.split_once(' ').unwrap_or((&raised, ""));
    let known = known().find(|[its, part, ..]| match *its {
        "*" => text.contains(part),
        its => its == code && rest.contains(part),
    });
    let mut told = known_code(code).unwrap_or_default().to_owned();
    let mut say = |words: &str, glue: &str| {
        if !told.is_empty() {
            told += glue;
        }
        told += words;
    };
    match known {
        Some([_, _, meaning, _]) => say(meaning, " "),
        None => say("an error whose words may be those of a request", ", "),
    }
    if let Some(line) = script_line(text) {
        say(&format!("in line {line} of the script"), " ");
    }
    if let Some(command) = command(text) {
        say(&format!("({command})"), " ");
    }
    match known {
        None | Some([.., ""]) => {}
        Some([.., "RIGHTS"]) => {
            let rights = rights::OF_NODES;
            let advice = format!("its user needs the keys of the namespace and {rights}");
            say(&advice, "; ");
        }
        Some([.., "CLUSTER RIGHTS"]) => {
            let rights = rights::FOR_CLUSTERS;
            say(&format!("its user needs {rights}, too"), "; ");
        }
        Some([.., "CLUSTER"]) => say(CLUSTER, "; "),
        Some([.., "MASTER"]) => say(MASTER, "; "),
        Some([.., advice]) => say(advice, "; "),
    }
    told
}

/// Returns a reason in the words for a server that others name: its URL is right, and the client follows.
pub(crate) fn of_named(reason: &Arc<str>) -> Arc<str> {
    let said = reason.strip_suffix(CLUSTER);
    let advice = match said {
        Some(said) if said.starts_with("CLUSTERDOWN") => DOWN,
        Some(_) => MOVING,
        None => FAILED_OVER,
    };
    match said.or_else(|| reason.strip_suffix(MASTER)) {
        Some(said) => format!("{said}{advice}").into(),
        None => Arc::clone(reason),
    }
}

const CLUSTER: &str = "the URL of a Cluster begins with redis+cluster://";
const MASTER: &str = "give the address of a master that nothing else replaces";
const MOVING: &str = "its slot is on its way, or this server has not heard of it yet: wait, and if it stays so, see CLUSTER NODES there";
const DOWN: &str = "wait for the failover, and if it stays so, see CLUSTER INFO there";
const FAILED_OVER: &str = "wait for the failover: the client follows it by itself";

/// Returns an error of a script as a command would have had it, with its code first.
///
/// Redis before 7.0 puts the place in the script before it, twice if the script raises it: `ERR Error running script (call
/// to f_…): @user_script:7: @user_script: 7: -OOM …`.
pub(crate) fn raised(text: &str) -> Cow<'_, str> {
    let call = text.strip_prefix("ERR Error running script (call to ");
    let inner = call.and_then(|call| Some(call.split_once("): ")?.1));
    let mut inner = inner.unwrap_or(text);
    while let Some((line, rest)) = inner
        .strip_prefix("@user_script:")
        .and_then(|place| place.trim_start().split_once(": "))
        && line.bytes().all(|byte| byte.is_ascii_digit())
    {
        inner = rest;
    }
    let code = inner.split(' ').next().unwrap_or_default();
    match inner.strip_prefix('-') {
        Some(coded) => coded.into(),
        None if inner.len() == text.len() || known_code(code).is_some() => inner.into(),
        None => format!("ERR {inner}").into(),
    }
}

/// Returns the one of [`CODES`] that `code` is.
fn known_code(code: &str) -> Option<&'static str> {
    CODES.split(' ').find(|known| *known == code)
}

/// Returns the lines of [`KNOWN`].
fn known() -> impl Iterator<Item = [&'static str; 4]> {
    KNOWN.lines().filter_map(|line| {
        let mut columns = line.split('|').map(str::trim);
        let mut next = || columns.next();
        Some([next()?, next()?, next()?, next()?])
    })
}

/// Returns the first name of a command that is in quotes or brackets, if the client sends such commands.
fn command(text: &str) -> Option<&'static str> {
    let marks = ['\'', '`', '"', '(', ')'];
    text.split(marks).find_map(|part| {
        let is_it = |command: &&&str| command.eq_ignore_ascii_case(part);
        COMMANDS.iter().find(is_it).copied()
    })
}

/// Returns where an error of Lua arose.
fn script_line(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("user_script:")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit());
    rest.get(..digits.unwrap_or(rest.len()))?.parse().ok()
}

/// A line for each error that is known: its code, or `*` for any; a part of its text; what it means; what to do.
///
/// The first that fits counts.
const KNOWN: &str = "\
NOAUTH |  | it wants a password | give a user and a password that it knows
WRONGPASS |  | invalid user or password | give a user and a password that it knows
ERR | without any password configured | it has no password, and was given one | give a user and a password that it knows
ERR | invalid password | invalid user or password | give a user and a password that it knows
ERR | operation not permitted | it wants a password | give a user and a password that it knows
NOPERM | 'cluster | its user may not ask it for its Cluster | CLUSTER RIGHTS
NOPERM | access | its user may not access a key that is needed | RIGHTS
NOPERM |  | its user may not run a command that is needed | RIGHTS
ERR | user executing the script can't access | its user may not access a key that is needed | RIGHTS
ERR | user executing the script can't | its user may not run a command that is needed | RIGHTS
ERR | ACL failure in script | its user may not run a command that is needed | RIGHTS
ERR | no permissions to run the | its user may not run a command that is needed | RIGHTS
OOM |  | its memory is full | give it more, or delete other keys there
MISCONF | AOF | it cannot write its append-only file and refuses writes | see its log and its disk
MISCONF |  | it cannot save its data to disk and refuses writes | see its log and its disk
NOREPLICAS |  | it refuses writes without replicas | set min-replicas-to-write to 0: nodes need no replicas
READONLY |  | it is a replica | MASTER
MASTERDOWN |  | it is a replica that has lost its master | MASTER
LOADING |  | it is loading its data |
BUSY |  | it is busy with somebody's script | SCRIPT KILL ends it
CLUSTERDOWN |  | it is part of a cluster that is down, or has no slots | CLUSTER
MOVED |  | it is part of a cluster, and another server has the keys | CLUSTER
ASK |  | it is part of a cluster, and the keys are on their way to another server | CLUSTER
TRYAGAIN |  | it is part of a cluster, and the keys are on their way to another server | CLUSTER
CROSSSLOT |  | it is part of a cluster, and the keys are in several slots | CLUSTER
ERR | not allowed in cluster mode | it is part of a cluster | CLUSTER
NOSCRIPT |  | it has not the script in its cache any more |
WRONGTYPE |  | a key has a value of another type | see whose it is
DENIED | protected mode | it is in protected mode and refuses other machines | give it a password or an address to bind
ERR | max number of clients | it has as many connections as it takes | raise maxclients there, or close others
ERR | DB index | it has no database of this number | give another, or none
ERR | unknown command | unknown command | nodes are Redis from 6.2 on, or Valkey, with EVAL and EVALSHA, and no proxy in between
ERR | command called from | unknown command | nodes are Redis from 6.2 on, or Valkey, with EVAL and EVALSHA, and no proxy in between
ERR | user_script: | its interpreter stopped |
ERR | Protocol error | it cannot read what it is sent |
NOPROTO |  | it does not speak this version of the protocol | leave protocol out of the URL
* | no upstream host | a proxy has no server behind it | give independent masters instead
* | upstream failure | a proxy cannot reach the server behind it | give independent masters instead";

/// The codes that are known to be codes, with blanks in between; anything else may be an argument.
const CODES: &str = "ASK BUSY CLUSTERDOWN CROSSSLOT DENIED ERR EXECABORT INPROG IOERR LOADING MASTERDOWN MISCONF MOVED \
    NOAUTH NOPERM NOPROTO NOREPLICAS NOSCRIPT OOM READONLY TRYAGAIN UNKILLABLE WRONGPASS WRONGTYPE";

/// The commands that the client sends, and those of its script.
const COMMANDS: [&str; 19] = [
    "AUTH", "CLIENT", "DEL", "EVAL", "EVALSHA", "EXEC", "HELLO", "INFO", "MGET", "MULTI",
    "PEXPIRE", "PING", "PTTL", "SELECT", "SET", "TIME", "ZADD", "ZMSCORE", "ZRANGE",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What servers say, and how the words of ours begin.
    const WORDS: &str = "\
ERR unknown command 'EVALSHA', with args beginning with: 'set' '4' → ERR unknown command (EVALSHA); nodes are
OOM command not allowed when used memory > 'maxmemory'. (SET) → OOM its memory is full (SET); give it more
LOADING Redis is loading the dataset in memory → LOADING it is loading its data
ERR user_script:12: attempt to index a nil value (global 'key') → ERR its interpreter stopped in line 12 of the script
IOERR 'secret' → IOERR, an error whose words may be those of a request
IOERR → IOERR, an error whose words may be those of a request
SECRET → an error whose words may be those of a request
 → an error whose words may be those of a request
secret upstream failure → a proxy cannot reach the server behind it; give independent masters instead";

    /// What scripts raise, likewise.
    const RAISED: &str = "\
@user_script: 7: -OOM command not allowed when used memory > 'maxmemory'. → OOM its memory is full
@user_script: 7: -NOREPLICAS Not enough good replicas to write. → NOREPLICAS it refuses writes without replicas
@user_script: 7: -READONLY You can't write against a read only replica. → READONLY it is a replica
@user_script: 7: The user executing the script can't run this command or subcommand → ERR its user may not run a command that is needed
@user_script: 7: The user executing the script can't access at least one of the keys mentioned in the command arguments → ERR its user may not access a key that is needed
@user_script: 7: Unknown Redis command called from Lua script → ERR unknown command
WRONGTYPE Operation against a key holding the wrong kind of value → WRONGTYPE a key has a value of another type";

    /// What servers that others name say, the code, and a part of the words of ours.
    const FOLLOWED: &str = "\
MOVED 13579 10.0.0.2:6379 → MOVED → its slot is on its way
ASK 13579 10.0.0.2:6379 → ASK → see CLUSTER NODES there
CLUSTERDOWN The cluster is down → CLUSTERDOWN → see CLUSTER INFO there
READONLY You can't write → READONLY → follows it by itself
LOADING it → LOADING → it is loading its data";

    /// Returns the lines of a table.
    fn rows<const N: usize>(table: &str) -> impl Iterator<Item = [&str; N]> {
        table.lines().map(|line| {
            let columns: Vec<_> = line.split('→').map(str::trim).collect();
            columns.try_into().unwrap()
        })
    }

    #[test]
    fn what_is_known_keeps_its_code_its_meaning_and_its_command() {
        for [said, told] in rows(WORDS) {
            let retold = retold(said);
            assert!(retold.starts_with(told), "{said}: {retold}");
            assert!(!retold.to_lowercase().contains("secret"), "{retold}");
        }
    }

    #[test]
    fn a_right_that_is_missing_is_named() {
        let refusals = [
            "NOPERM this user has no permissions to run the 'zadd' command",
            // Redis 7.0, and Valkey 8.1.
            "ERR The user executing the script can't run this command or subcommand (ZADD)",
            "ERR ACL failure in script: User app has no permissions to run the 'zadd' command",
        ];
        for refused in refusals {
            let retold = retold(refused);
            assert!(retold.contains("(ZADD); its user needs"), "{retold}");
            assert!(retold.contains(rights::OF_NODES), "{retold}");
        }
    }

    #[test]
    fn an_error_inside_a_script_has_its_cause_on_every_version() {
        let call = "ERR Error running script (call to f_1f8f4cfba6f3375f8c4ec02b9de4361a5dea5c64): @user_script:7: ";
        for [raised, told] in rows(RAISED) {
            // As Redis 6.2 says what a script raises, and what it catches and answers with its command.
            for said in [format!("{call}{raised}"), format!("{raised} (SET)")] {
                let retold = retold(&said);
                assert!(retold.starts_with(told), "{said}: {retold}");
                assert!(!retold.contains("secret"), "{retold}");
            }
        }
        let stopped = retold(&format!(
            "{call}user_script:7: Script attempted to access 'secret'"
        ));
        assert_eq!(
            stopped,
            "ERR its interpreter stopped in line 7 of the script"
        );
        for unknown in [
            "ERR Unknown Redis command called from script script: 48ca442b, on @user_script:1.",
            "ERR Unknown command called from script script: 48ca442b, on @user_script:1.",
        ] {
            let retold = retold(unknown);
            assert!(retold.starts_with("ERR unknown command"), "{retold}");
        }
        assert_eq!(
            retold("ERR Error running script (call to f_1): secret"),
            retold("ERR secret")
        );
    }

    #[test]
    fn a_client_whose_url_is_right_is_not_told_to_write_another() {
        for [said, code, told] in rows(FOLLOWED) {
            let named = of_named(&retold(said).into());
            assert!(named.starts_with(code) && named.contains(told), "{named}");
            for form in [CLUSTER, MASTER] {
                assert!(!named.contains(form), "{named}");
            }
        }
        assert!(retold("MOVED 13579 10.0.0.2:6379").ends_with(CLUSTER));
        assert!(retold("READONLY You can't write").ends_with(MASTER));
    }

    #[test]
    fn the_table_can_be_read() {
        assert_eq!(known().count(), KNOWN.lines().count());
        for [code, part, meaning, _] in known() {
            assert!(
                known_code(code).is_some() || code == "*" && !part.is_empty(),
                "{code}"
            );
            assert!(!meaning.is_empty(), "{code} {part}");
        }
    }

    #[test]
    fn what_the_script_says_itself_is_passed_on() {
        let damaged = "the mark is damaged: delete the key to begin a quarantine";
        assert_eq!(retold(damaged), damaged);
        assert_ne!(retold("the mark"), "the mark");
        let is_of_a_key = |words: &str| {
            let said: Arc<str> = retold(words).into();
            redlock_proto::RequestError::not_executed(said).is_of_a_key()
        };
        assert!(!is_of_a_key(damaged));
        for words in [
            "what is remembered of the job is damaged: delete the key, and its last tick may start again",
            "what is remembered of who shares the key is damaged: delete the key",
            "what is remembered of how many slots there are is damaged: delete the key",
            "the key is shared and was made to stay for ever: delete it",
        ] {
            assert!(is_of_a_key(words), "{words}");
        }
    }
}

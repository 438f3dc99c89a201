//! The command of a roll, with places for the node and its server.

use std::ffi::{OsStr, OsString};

use crate::exit::CommandError;

/// The words of the command that restarts one node.
#[derive(Debug)]
pub(super) struct Template(
    // invariant: each place has a known name
    Vec<OsString>,
);

impl Template {
    /// Reads the words of a command.
    ///
    /// # Errors
    ///
    /// A word has a place of an unknown name: the command would get it as it is.
    pub(super) fn read(words: Vec<OsString>) -> Result<Self, CommandError> {
        let unknown = words.iter().find_map(|word| unknown_place(word));
        match unknown {
            Some(name) => {
                let known = KNOWN.map(|name| format!("{{{name}}}")).join(", ");
                Err(CommandError::wrong(format!(
                    "{{{name}}} stands for nothing, and nothing is restarted: the command may have {known}"
                )))
            }
            None => Ok(Self(words)),
        }
    }

    /// Returns the words for a node by its name, whose server is at this address.
    pub(super) fn filled_in(&self, node: &str, server: &str) -> Vec<OsString> {
        let (host, port) = server.rsplit_once(':').unwrap_or((server, ""));
        let fill = |word: &OsString| match word.to_str() {
            Some(text) => text
                .replace("{node}", node)
                .replace("{host}", bare(host))
                .replace("{port}", port)
                .into(),
            None => word.clone(),
        };
        self.0.iter().map(fill).collect()
    }
}

/// Returns the first name in braces that stands for nothing; a variable of a shell has a `$` before its braces.
fn unknown_place(word: &OsStr) -> Option<String> {
    let text = word.to_string_lossy();
    let mut before = "";
    for (at, part) in text.split('{').enumerate() {
        let name = part.split_once('}').map(|(name, _)| name);
        let name = name.filter(|_| at > 0 && !before.ends_with('$'));
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if let Some(name) = name
            && !name.is_empty()
            && name.chars().all(is_letter)
            && !KNOWN.contains(&name)
        {
            return Some(name.to_owned());
        }
        before = part;
    }
    None
}

/// Returns a host as programs take it that are given no port with it: an address of IPv6 without its brackets.
fn bare(host: &str) -> &str {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host)
}

/// The names of places.
const KNOWN: [&str; 3] = ["node", "host", "port"];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Template, CommandError> {
        Template::read(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn a_host_is_given_as_ssh_takes_it() {
        let template = read(&["{host} {port} {node}"]).unwrap();
        let plain = |address: &str| template.filled_in(address, address);
        assert_eq!(plain("[::1]:79"), ["::1 79 [::1]:79"]);
        assert_eq!(plain("redis-1:79"), ["redis-1 79 redis-1:79"]);
    }

    #[test]
    fn the_host_of_a_named_node_is_that_of_its_server() {
        let template = read(&["ssh", "{host}", "restart", "{port}", "{node}"]).unwrap();
        assert_eq!(
            template.filled_in("orders@s1:26379", "10.0.0.9:6380"),
            ["ssh", "10.0.0.9", "restart", "6380", "orders@s1:26379"]
        );
    }

    #[test]
    fn a_place_of_an_unknown_name_is_refused_with_the_known_ones() {
        for word in ["{hots}", "-p{PORT}", "x{node}{server-id}", "a{b{adress}"] {
            let refused = read(&["ssh", word]).unwrap_err().to_string();
            assert!(refused.contains("stands for nothing"), "{word}: {refused}");
            assert!(refused.contains("{node}, {host}, {port}"), "{refused}");
        }
        for word in [
            "${REDLOCK_ROLL_NODE}",
            "{{.Names}}",
            "{print $1}",
            "{}",
            "{a,b}",
            "}{",
            "{\"a\":1}",
            "{node}{host}",
        ] {
            assert!(read(&[word]).is_ok(), "{word}");
        }
    }
}

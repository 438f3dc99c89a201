//! Settings from a TOML file, in whose errors no value is repeated: it may be a password.

use std::{fs, path::Path};

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::{Config, expert::removed};
use crate::BuildError;

impl Config {
    /// Reads the settings from a TOML file, as [`read_toml`] does.
    ///
    /// # Errors
    ///
    /// As of [`read_toml`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{Config, Redlock};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("redlock.toml");
    /// # std::fs::write(&path, "nodes = ['redis://:secret@10.0.0.1']\nttl = '5s'\n")?;
    /// // redlock.toml: nodes = ["redis://:secret@10.0.0.1", …], ttl = "5s"
    /// // The environment wins over the file.
    /// let config = Config::from_file(&path)?.overridden_by(Config::from_env()?);
    /// let builder = Redlock::builder().config(config);
    /// # assert!(builder.check().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, BuildError> {
        read_toml(path)
    }
}

/// Reads a [`Config`] from a TOML file, or settings of the application that contain one.
///
/// The error of `toml::from_str` shows the line that is wrong, with the password in it.
/// This function's error names the file, the line and the setting, and repeats no value.
/// With the feature `toml`.
///
/// # Errors
///
/// The file cannot be read, is not TOML, or does not have the settings of a `T`.
///
/// # Examples
///
/// ```
/// use redlock_core::{Config, read_toml};
///
/// #[derive(Debug, serde::Deserialize)]
/// struct Settings {
///     port: u16,
///     redlock: Config,
/// }
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("service.toml");
/// # std::env::set_current_dir(folder.path())?;
/// let mut file = "port = 8080\n[redlock]\nnodes = ['redis://:secret@10.0.0.1']\nttl = '5s'\n".to_owned();
/// std::fs::write("service.toml", &file)?;
/// let settings: Settings = read_toml("service.toml")?;
/// assert_eq!((settings.port, settings.redlock.nodes.len()), (8080, 1));
///
/// file = file.replace("5s", "soon");
/// std::fs::write("service.toml", &file)?;
/// let error = read_toml::<Settings>("service.toml").unwrap_err();
/// let message = "service.toml:4: redlock.ttl: invalid value: string, expected a time such as 30s";
/// assert_eq!(error.to_string(), message);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn read_toml<T: DeserializeOwned>(path: impl AsRef<Path>) -> Result<T, BuildError> {
    let path = path.as_ref();
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| {
        BuildError::misuse(shown.to_string(), format!("cannot be read: {error}"))
    })?;
    toml::from_str(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = 1 + text.get(..at).unwrap_or_default().matches('\n').count();
        let place = format!("{shown}:{line}");
        match DeTable::parse(&text) {
            Ok(table) => {
                let setting = path_to(table.get_ref(), at).unwrap_or_default();
                BuildError::in_file(place, setting, without_values(error.message()))
            }
            // The parser's own messages are fixed texts.
            Err(syntax) => {
                let setting = setting_before(&text, at);
                BuildError::in_file(place, setting, syntax.message().replace('\n', "; "))
            }
        }
    })
}

/// Returns the path of the setting to which the byte `at` of a document belongs, such as `redlock.nodes[1].url`; empty if
/// its key is no name.
fn path_to(table: &DeTable<'_>, at: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        // A table may be apart from its header, so its own span does not say what is in it.
        let inner = path_in(value.get_ref(), at);
        let is_here = key.span().contains(&at) || value.span().contains(&at);
        let inner = inner.or_else(|| is_here.then(String::new))?;
        let name = key.get_ref();
        Some(match inner.chars().next() {
            _ if !is_name(name) => inner,
            None | Some('[') => format!("{name}{inner}"),
            Some(_) => format!("{name}.{inner}"),
        })
    })
}

fn path_in(value: &DeValue<'_>, at: usize) -> Option<String> {
    match value {
        DeValue::Table(table) => path_to(table, at),
        DeValue::Array(values) => values.iter().enumerate().find_map(|(index, value)| {
            let inner = path_in(value.get_ref(), at);
            let inner = inner.or_else(|| value.span().contains(&at).then(String::new))?;
            let dot = if inner.is_empty() { "" } else { "." };
            Some(format!("[{index}]{dot}{inner}"))
        }),
        _ => None,
    }
}

/// Returns the name that begins the line of the byte `at`, in a document that is not TOML; none within a long text.
fn setting_before(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or_default();
    let begin = before.rfind('\n').map_or(0, |end| end + 1);
    let is_in_text = |mark| {
        before
            .get(..begin)
            .unwrap_or_default()
            .matches(mark)
            .count()
            % 2
            == 1
    };
    let line = text.get(begin..).unwrap_or_default().lines().next();
    let name = line.and_then(|line| line.split_once('='));
    match name.map(|(name, _)| name.trim()) {
        Some(name) if is_name(name) && !is_in_text("\"\"\"") && !is_in_text("'''") => name.into(),
        _ => String::new(),
    }
}

/// Returns whether a key is a name, and not a value in the wrong place.
fn is_name(key: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !key.is_empty() && key.chars().all(is_part)
}

/// Returns what serde says of a value, without the value.
fn without_values(message: &str) -> String {
    let message = message.replace('\n', "; ");
    // The last one: a value may contain these words, too.
    let (found, expected) = match message.rsplit_once(", expected ") {
        Some((found, "a duration")) => (found, Some("a time such as 30s")),
        Some((found, expected)) => (found, Some(expected)),
        None => (&*message, None),
    };
    let quoted = |text: &str| {
        let name = text.split('`').nth(1).filter(|name| is_name(name));
        name.map_or_else(String::new, |name| format!(" `{name}`"))
    };
    let found = match found.split_once([':', '`']).map_or(found, |(kind, _)| kind) {
        kind @ ("invalid type" | "invalid value") => {
            let value = found[kind.len()..].trim_start_matches(": ");
            let value = value.split(['`', '"']).next().unwrap_or_default();
            format!("{kind}: {}", value.trim_end())
        }
        "unknown variant " => "unknown word".to_owned(),
        kind @ ("unknown field " | "missing field " | "duplicate field ") => {
            let name = quoted(found);
            match removed(name.trim_matches([' ', '`'])) {
                Some(advice) => return advice.to_owned(),
                None => format!("{}{name}", kind.trim_end()),
            }
        }
        // A type of the application may repeat the value in any words.
        _ => return "is not valid".to_owned(),
    };
    match expected {
        Some(expected) => format!("{found}, expected {expected}"),
        None => found,
    }
}

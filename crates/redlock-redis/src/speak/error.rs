use std::sync::Arc;

use deadpool_redis::{
    HookError, PoolError,
    redis::{ErrorKind, RedisError},
};

use super::error_texts::retold;
use crate::CallError;

/// Returns what went wrong, for an operator: nothing in it comes from a server but numbers of its own.
pub(crate) fn reason(error: &RedisError) -> Arc<str> {
    if let Some(code) = error.code() {
        // An error that the server sent: its code and its words.
        return explained(&said_with(code, error));
    }
    if let Some(errors) = error.clone().into_server_errors() {
        let first = errors.first().map(|(_, error)| error);
        let words = |error: &deadpool_redis::redis::ServerError| {
            format!("{} {}", error.code(), error.details().unwrap_or_default())
        };
        return explained(&first.map(words).unwrap_or_default());
    }
    match error.kind() {
        // The words of the system, or of TLS.
        ErrorKind::Io => with_advice(one_line(&error.to_string())),
        ErrorKind::AuthenticationFailed => AUTHENTICATION.into(),
        ErrorKind::Parse => not_redis(error.detail().unwrap_or_default()).into(),
        // The client library's words, unless it adds something to them.
        _ if error.detail().is_none() => one_line(&error.to_string()),
        _ => error.category().into(),
    }
}

/// Returns the words of a server's error, with its code.
fn said_with(code: &str, error: &RedisError) -> String {
    format!("{code} {}", error.detail().unwrap_or_default())
}

/// Adds what to do to an error of TLS about certificates.
fn with_advice(words: Arc<str>) -> Arc<str> {
    if words.contains("PEM") {
        let is_set = std::env::var_os("SSL_CERT_FILE").is_some();
        return no_certificates(&words, is_set).into();
    }
    let advice = if words.contains("CertificateRequired") {
        "it wants a client certificate, which needs a pool of your own (NodeConfig::pool)"
    } else if words.contains("UnknownIssuer") {
        "SSL_CERT_FILE names the file with the certificates to trust"
    } else {
        return words;
    };
    format!("{words}; {advice}").into()
}

/// Returns that the certificates to trust cannot be read, and what to do; `words` say where.
fn no_certificates(words: &str, is_named: bool) -> String {
    match is_named {
        true => format!(
            "SSL_CERT_FILE names no file of certificates ({words}); let it name one in PEM form, or unset it"
        ),
        false => format!(
            "the platform's certificates cannot be read ({words}); let SSL_CERT_FILE name a file with those to trust"
        ),
    }
}

/// Returns an error that the server sent, in words of ours.
pub(crate) fn explained(words: &str) -> Arc<str> {
    retold(&one_line(words)).into()
}

/// Returns what answers, if it does not speak the protocol: the client library names the byte with which its answer began.
fn not_redis(parse_error: &str) -> &'static str {
    let names = |byte: u8| parse_error.contains(&format!("`{byte}`"));
    if names(b'H') {
        HTTP_SERVER
    } else if names(TLS_ALERT) {
        TLS_SERVER
    } else {
        NOT_REDIS
    }
}

pub(crate) const AUTHENTICATION: &str =
    "authentication failed; give a user and a password that it knows";
pub(crate) const HTTP_SERVER: &str = "an HTTP server answers; give the port of a Redis server";
pub(crate) const TLS_SERVER: &str = "it speaks TLS; give a rediss:// URL";
pub(crate) const NOT_REDIS: &str =
    "what answers does not speak the protocol of Redis; give the port of a Redis server";

/// What is said of an answer that cannot be read, of a server that has answered before.
pub(crate) const NONSENSE: &str = "the server's answer makes no sense";

/// The first byte of what a TLS server says to a client that does not speak it.
pub(crate) const TLS_ALERT: u8 = 0x15;

/// Puts all words into one line, because an error has a line per node, whatever a server or a parser puts into its words.
fn one_line(text: &str) -> Arc<str> {
    let words = text.split(|c: char| c.is_control() || c == ' ');
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").into()
}

/// Returns why a pool made no connection.
pub(crate) fn pool_error(error: &PoolError) -> NotOpened {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            not_opened(error)
        }
        other => NotOpened::clear(one_line(&other.to_string())),
    }
}

/// Returns why a connection cannot be used.
pub(crate) fn not_opened(error: &RedisError) -> NotOpened {
    NotOpened {
        reason: reason(error),
        is_vague: error.is_timeout()
            || error.is_connection_dropped() && !error.is_connection_refusal(),
        is_unreachable: error.is_timeout()
            || error.is_io_error() && !is_of_tls(error) && !error.is_connection_dropped()
            || error.is_connection_refusal(),
    }
}

/// A connection that could not be made, or was of no use.
#[derive(Debug)]
pub(crate) struct NotOpened {
    pub(crate) reason: Arc<str>,
    /// Whether a look at what answers may say more.
    pub(crate) is_vague: bool,
    /// Whether nothing answers at the address.
    pub(crate) is_unreachable: bool,
}

impl NotOpened {
    /// Makes it of a reason that says all.
    pub(crate) fn clear(reason: impl Into<Arc<str>>) -> Self {
        Self {
            reason: reason.into(),
            is_vague: false,
            is_unreachable: false,
        }
    }

    /// Makes it of an address at which nothing answers within a time limit.
    pub(crate) fn silent() -> Self {
        Self {
            is_unreachable: true,
            ..Self::clear("it does not answer")
        }
    }
}

/// Returns whether an error is about TLS or its certificates.
fn is_of_tls(error: &RedisError) -> bool {
    let words = error.to_string();
    ["certificate", "PEM", "TLS", "fatal alert"]
        .iter()
        .any(|part| words.contains(part))
}

/// Returns what a call that failed as a whole leaves behind.
pub(crate) fn call_error(error: &RedisError) -> CallError {
    let wrong = error
        .code()
        .and_then(|code| wrong_server(code, &said_with(code, error)));
    if let Some(wrong) = wrong {
        return wrong;
    }
    match error.code() {
        Some(code) if WRITES_NOT.contains(&code) => CallError::refuses_writes(reason(error)),
        _ if is_refusal(error) => CallError::not_executed(reason(error)),
        // Another error from the server: the script may have stopped in the middle.
        Some(_) => CallError::unknown(reason(error)),
        // A pool of the user's may have a response time limit; the connection goes on after it, and
        // the call may run yet.
        None if error.is_timeout() => CallError::unknown(reason(error)),
        // It has answered before, so it is no server of another kind.
        None if error.kind() == ErrorKind::Parse => CallError::lost(NONSENSE),
        None => CallError::lost(reason(error)),
    }
}

/// Returns the error of a call that a server refused because of what it is, if this code and these words say so: another
/// server is to be asked, or this one over another connection.
pub(crate) fn wrong_server(code: &str, said: &str) -> Option<CallError> {
    let is_one = WRONG_SERVER.contains(&code);
    is_one.then(|| CallError::wrong_server(explained(said)))
}

/// Returns whether a server said that it did not run a call.
pub(crate) fn is_refusal(error: &RedisError) -> bool {
    is_unknown_command(error) || error.code().is_some_and(|code| NOT_RUN.contains(&code))
}

/// Returns whether a server does not know the command: it is older than the one before at its address, or of another kind.
pub(crate) fn is_unknown_command(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    error.code() == Some("ERR") && detail.starts_with("unknown command")
}

/// Errors that the server sends instead of starting a script.
const NOT_RUN: [&str; 14] = [
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOAUTH",
    "NOPERM",
    "NOREPLICAS",
    "NOSCRIPT",
    "OOM",
    "READONLY",
    "TRYAGAIN",
];

/// Those of a server that has become a replica, has its data from another master, is part of a cluster, or has forgotten
/// as which user the client has logged in.
const WRONG_SERVER: [&str; 8] = [
    "ASK",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MOVED",
    "NOAUTH",
    "READONLY",
    "TRYAGAIN",
];

/// Those of them that servers send which run what writes nothing.
const WRITES_NOT: [&str; 3] = ["MISCONF", "NOREPLICAS", "OOM"];

#[cfg(test)]
mod tests {
    use deadpool_redis::redis::parse_redis_value;

    use super::*;

    #[test]
    fn a_command_that_a_server_does_not_know_was_not_run() {
        let said = b"-ERR unknown command 'EVALSHA', with args beginning with: 'secret'\r\n";
        let said = parse_redis_value(said).unwrap();
        let error = said.extract_error().unwrap_err();
        assert!(is_refusal(&error) && !call_error(&error).may_have_run);
    }

    #[test]
    fn a_reason_is_one_line() {
        let text = "Parse error at 1\nUnexpected `84`\r\n\tUnexpected `72`\n";
        assert_eq!(
            &*one_line(text),
            "Parse error at 1 Unexpected `84` Unexpected `72`"
        );
        assert_eq!(&*one_line("NOAUTH "), "NOAUTH");
    }

    #[test]
    fn an_error_about_certificates_says_what_to_do() {
        let words = |said: &str| reason(&std::io::Error::other(said).into());
        let refused = words("received fatal alert: CertificateRequired");
        assert!(refused.contains("NodeConfig::pool"), "{refused}");
        assert_eq!(&*words("connection reset"), "connection reset");
    }

    #[test]
    fn a_variable_that_names_no_file_of_certificates_is_named() {
        let said = "failed to read PEM from file: No such file or directory at '/no/such'";
        let named = no_certificates(said, true);
        assert!(named.starts_with("SSL_CERT_FILE names no file"), "{named}");
        assert!(named.contains("'/no/such'"), "{named}");
        assert!(named.ends_with("; let it name one in PEM form, or unset it"));
        let other = no_certificates(said, false);
        assert!(other.starts_with("the platform's certificates"), "{other}");
    }

    #[test]
    fn what_answers_in_another_protocol_is_named() {
        let words = |answer: &[u8]| reason(&parse_redis_value(answer).unwrap_err());
        assert!(words(b"HTTP/1.1 400 Bad Request\r\n\r\nsecret").contains("HTTP server"));
        assert!(words(b"\x15\x03\x01\x00\x02").contains("rediss://"));
        for other in ["secret\r\n", ":secret\r\n", "*secret\r\n", ",secret\r\n"] {
            let words = words(other.as_bytes());
            assert!(words.contains("does not speak the protocol"), "{words}");
        }
    }

    #[test]
    fn a_server_that_has_answered_before_is_not_told_to_be_none() {
        let error = parse_redis_value(b"HTTP/1.1 400 Bad Request\r\n").unwrap_err();
        assert_eq!(call_error(&error), CallError::lost(NONSENSE));
        assert_eq!(&*not_opened(&error).reason, HTTP_SERVER);
    }

    #[test]
    fn no_error_of_the_client_library_passes_a_servers_words_on() {
        let said = "-SECRET said of 'secret'\r\n".as_bytes();
        let server = || {
            parse_redis_value(said)
                .unwrap()
                .extract_error()
                .unwrap_err()
        };
        let details = [
            ErrorKind::Io,
            ErrorKind::Client,
            ErrorKind::UnexpectedReturnType,
        ]
        .map(|kind| RedisError::from((kind, "ours", "secret".to_owned())));
        for error in details.iter().skip(1).chain([&server()]) {
            let words = reason(error);
            assert!(!words.to_lowercase().contains("secret"), "{words}");
        }
    }
}

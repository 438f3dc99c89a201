//! The gate of the page: a token, or else only browsers that know the page by a name of this machine.

use std::{
    fmt::Write,
    fs::{self, File},
    io::Read,
    net::{IpAddr, SocketAddr},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::Arc,
};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    middleware::{Next, from_fn_with_state},
    response::{Html, IntoResponse, Response},
};
use sha2::{Digest, Sha256};

use crate::exit::CommandError;

/// The condition under which a request gets to the page.
#[derive(Debug)]
pub(crate) struct Gate {
    token: Option<Token>,
    /// The origins under which browsers know the page, beside names of this machine.
    origins: Vec<String>,
}

/// The token, of which only a hash is kept.
struct Token {
    hash: [u8; 32],
    /// The value of the cookie, from which the token cannot be computed.
    cookie: String,
}

/// A gate with what it answers with.
#[derive(Clone)]
struct GuardedPage {
    gate: Arc<Gate>,
    base: Arc<str>,
}

impl Gate {
    /// Reads the token, if there is a file of one.
    pub(crate) fn new(file: Option<&Path>, origins: Vec<String>) -> Result<Self, CommandError> {
        let token = file.map(Token::read).transpose()?;
        Ok(Self { token, origins })
    }

    /// Returns whether it is enough at an address: without a token, no other machine may reach that.
    pub(crate) fn is_enough_for(&self, address: SocketAddr) -> bool {
        self.token.is_some() || address.ip().to_canonical().is_loopback()
    }

    /// Returns routes that are behind it, at this path.
    pub(crate) fn around(self, base: &str, routes: Router) -> Router {
        let gate = Arc::new(self);
        let base = base.into();
        routes.layer(from_fn_with_state(GuardedPage { gate, base }, pass))
    }

    /// Returns whether the name of the host in a request is one of this machine, or of an origin that was given.
    ///
    /// Another site could otherwise have its own name lead to this machine, and its pages would be of this origin.
    fn knows(&self, host: &str) -> bool {
        let of_origin = |origin: &String| {
            let named = origin.split_once("://").map(|(_, host)| host);
            named.is_some_and(|named| named.eq_ignore_ascii_case(host))
        };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        is_loopback || name.eq_ignore_ascii_case("localhost") || self.origins.iter().any(of_origin)
    }
}

impl Token {
    /// Reads a file that other users may not read.
    fn read(path: &Path) -> Result<Self, CommandError> {
        let wrong = |why: &str| CommandError::wrong(format!("{}: {why}", path.display()));
        let failed = |error: std::io::Error| wrong(&error.to_string());
        if !fs::metadata(path).map_err(failed)?.is_file() {
            return Err(wrong("it is no file with a token"));
        }
        let file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        if mode & 0o007 != 0 {
            return Err(wrong("other users of this machine may use it: chmod o= it"));
        }
        let mut text = String::new();
        let read = file.take(LONGEST_TOKEN + 1).read_to_string(&mut text);
        read.map_err(|error| wrong(&format!("it is no text: {error}")))?;
        let token = text.trim();
        let is_plain = token
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
        if !(16..=1_024).contains(&token.len()) || !is_plain {
            let why = "a token has 16 to 1024 letters, digits and -._~, such as the output of: openssl rand -hex 24";
            return Err(wrong(why));
        }
        let mut cookie = String::new();
        for byte in Sha256::digest(format!("redlock console cookie {token}")) {
            // Writing to a text cannot fail.
            let _ = write!(cookie, "{byte:02x}");
        }
        Ok(Self {
            hash: Sha256::digest(token).into(),
            cookie,
        })
    }

    fn is(&self, given: &str) -> bool {
        let given: [u8; 32] = Sha256::digest(given).into();
        is_same(&self.hash, &given)
    }

    /// Returns the name of the cookie, which differs between consoles on one host: browsers do not tell ports apart.
    fn cookie_name(&self) -> String {
        format!("redlock-console-{}", &self.cookie[..8])
    }

    fn is_in(&self, headers: &HeaderMap) -> bool {
        let text = |name| {
            headers
                .get_all(name)
                .iter()
                .filter_map(|value| value.to_str().ok())
        };
        let mut bearers =
            text(header::AUTHORIZATION).filter_map(|value| value.strip_prefix("Bearer "));
        let name = self.cookie_name();
        let cookies = text(header::COOKIE).flat_map(|cookies| cookies.split(';'));
        let mut cookies = cookies.filter_map(|cookie| {
            let (its, value) = cookie.trim().split_once('=')?;
            (its == name).then_some(value)
        });
        bearers.any(|bearer| self.is(bearer.trim()))
            || cookies.any(|cookie| is_same(self.cookie.as_bytes(), cookie.as_bytes()))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Compares two texts in a time that does not depend on where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differ = one
        .iter()
        .zip(other)
        .fold(0, |differ, (one, other)| differ | (one ^ other));
    one.len() == other.len() && differ == 0
}

/// Passes a request on, or says what it lacks.
async fn pass(State(guarded): State<GuardedPage>, request: Request, next: Next) -> Response {
    let GuardedPage { gate, base } = &guarded;
    let Some(token) = &gate.token else {
        let host = request
            .headers()
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        return match host.is_none_or(|host| gate.knows(host)) {
            true => next.run(request).await,
            false => (StatusCode::FORBIDDEN, UNKNOWN_HOST).into_response(),
        };
    };
    if token.is_in(request.headers()) {
        return next.run(request).await;
    }
    let given = given(request.uri()).filter(|_| *request.method() == Method::GET);
    match given {
        Some(given) if token.is(given) => {
            let (name, value) = (token.cookie_name(), &token.cookie);
            let cookie =
                format!("{name}={value}; Path={base}/; Max-Age=43200; HttpOnly; SameSite=Strict");
            let headers = [
                (header::SET_COOKIE, cookie),
                // A page that comes from elsewhere by a redirect would not get the cookie at once.
                (header::REFRESH, format!("0; url={base}/")),
                (header::REFERRER_POLICY, "no-referrer".to_owned()),
                (header::CACHE_CONTROL, "no-store".to_owned()),
            ];
            (
                headers,
                Html("<!doctype html><title>redlock</title>The page follows."),
            )
                .into_response()
        }
        _ => {
            let headers = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, headers, UNKNOWN).into_response()
        }
    }
}

/// Returns the token in an address; it has no character that an address would escape.
fn given(uri: &Uri) -> Option<&str> {
    uri.query()?
        .split('&')
        .find_map(|field| field.strip_prefix("token="))
}

const LONGEST_TOKEN: u64 = 4_096;

const UNKNOWN: &str = "this page needs the token of redlock console --token-file: open it once with ?token=TOKEN behind its \
                       address, or send Authorization: Bearer TOKEN\n";

const UNKNOWN_HOST: &str = "this page is known by the names of this machine only: start redlock console with --origin and the \
                            address that a proxy gives it\n";

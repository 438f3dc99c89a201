//! The measurements that processes make of themselves, and no node knows: callers that wait, and the next tick of a job.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    pin::pin,
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    http::{Request, StatusCode, Uri, header},
};
use futures_util::future::join_all;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::TcpStream;

use crate::exit::CommandError;

/// Where processes tell Prometheus what they measure.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ProcessArgs {
    /// URLs at which processes serve metrics for Prometheus, with commas between them, such as
    /// http://web-1:9000/metrics: only the processes know all callers that wait, and when the next ticks of jobs are
    #[arg(long = "metrics", value_name = "URLS", value_delimiter = ',')]
    urls: Vec<String>,
}

/// Processes that can be asked, by host and port, and their paths.
pub(crate) type Addresses = BTreeSet<(String, String)>;

/// What the processes said.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ProcessMetrics {
    /// The callers that wait, by the class of what they wait for.
    pub(crate) waiting: Vec<WaitingCallers>,
    /// When the next tick of a job is, in milliseconds since 1970, by `NAMESPACE/NAME`.
    #[serde(skip)]
    pub(crate) next_ticks: BTreeMap<String, f64>,
    /// The processes that did not say, and why.
    pub(crate) silent: Vec<SilentProcess>,
}

/// The callers of one process that wait for locks of one class.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct WaitingCallers {
    pub(crate) lock: String,
    pub(crate) process: String,
    pub(crate) callers: u64,
}

/// A process that did not say what it measures, and why.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SilentProcess {
    pub(crate) process: String,
    pub(crate) why: String,
}

impl ProcessArgs {
    /// Reads the URLs; the error does not repeat them.
    pub(crate) fn addresses(&self) -> Result<Addresses, CommandError> {
        // What is named twice would be counted twice.
        let urls = (1..).zip(&self.urls);
        urls.map(|(at, url)| {
            address(url.trim())
                .map_err(|why| CommandError::wrong(format!("--metrics: URL {at}: {why}")))
        })
        .collect()
    }
}

/// Reads an address as it is typed, and returns the host with the port, and the path.
fn address(url: &str) -> Result<(String, String), &'static str> {
    let rest = url.strip_prefix("http://");
    let rest = rest.ok_or("it must begin with http://")?;
    let uri = match rest.contains('/') {
        true => url.parse(),
        false => format!("{url}/metrics").parse::<Uri>(),
    };
    let uri = uri.map_err(|_| LIKE)?;
    let (authority, path) = (uri.authority(), uri.path_and_query());
    let (authority, path) = authority.zip(path).ok_or(LIKE)?;
    // A password would be shown with what the process is called.
    if authority.as_str().contains('@') {
        return Err("a name and a password are not supported");
    }
    let port = match authority.port_u16() {
        Some(port) => port,
        None if authority.as_str() == authority.host() => 80,
        None => return Err("its port is none"),
    };
    if authority.host().is_empty() {
        return Err(LIKE);
    }
    Ok((format!("{}:{port}", authority.host()), path.to_string()))
}

/// Asks all processes at once; `None` if there are none to ask.
pub(crate) async fn ask(addresses: &Addresses, namespace: &str) -> Option<ProcessMetrics> {
    if addresses.is_empty() {
        return None;
    }
    let answers = addresses.iter().map(|(process, path)| async move {
        let answer = tokio::time::timeout(LIMIT, get(process, path)).await;
        answer.unwrap_or_else(|_| Err(format!("no answer within {} s", LIMIT.as_secs())))
    });
    let answers = join_all(answers).await;
    let mut measured = ProcessMetrics::default();
    for ((process, _), answer) in addresses.iter().zip(answers) {
        let process = process.clone();
        match answer {
            Ok(text) => measured.add(&process, &text, namespace),
            Err(why) => measured.silent.push(SilentProcess { process, why }),
        }
    }
    let waiting = &mut measured.waiting;
    waiting.sort_by(|a, b| a.lock.cmp(&b.lock).then_with(|| b.callers.cmp(&a.callers)));
    Some(measured)
}

/// Asks one process over HTTP, as Prometheus does.
async fn get(process: &str, path: &str) -> Result<String, String> {
    let stream = TcpStream::connect(process).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let words = |error: hyper::Error| match error.is_parse() || error.is_incomplete_message() {
        true => "its answer is not one of HTTP".to_owned(),
        false => error.to_string(),
    };
    let opened = handshake(TokioIo::new(stream)).await;
    let (mut requests, connection) = opened.map_err(words)?;
    let request = Request::get(path)
        .header(header::HOST, process)
        .header(header::ACCEPT, "text/plain")
        .header(header::CONNECTION, "close")
        .body(Body::empty());
    let request = request.map_err(|error| error.to_string())?;
    let answer = async move {
        let answer = requests.send_request(request).await.map_err(words)?;
        if answer.status() != StatusCode::OK {
            let status = answer.status();
            return Err(format!("its answer is {:?}, not 200", status.as_str()));
        }
        let text = to_bytes(Body::new(answer.into_body()), MOST).await;
        let text =
            text.map_err(|error| format!("its answer is too long, or has no end: {error}"))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let mut answer = pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        // After its end, the answer is there, or the reason why it is missing.
        _ = connection => answer.await,
    }
}

impl ProcessMetrics {
    /// Returns the callers that may wait for a key: for locks of the class with which it begins, or of none.
    ///
    /// No metric names a key.
    pub(crate) fn of(&self, key: &str) -> Vec<&WaitingCallers> {
        let class = key.split_once(':').map(|(class, _)| class);
        let may_be = |lock: &str| Some(lock) == class || lock == UNNAMED;
        let waiting = self.waiting.iter();
        waiting.filter(|waiting| may_be(&waiting.lock)).collect()
    }

    /// Adds what a process says in the text format of Prometheus; lines that make no sense are passed over.
    fn add(&mut self, process: &str, text: &str, namespace: &str) {
        for (name, labels, value) in text.lines().filter_map(series) {
            let label = |label| labels.get(label).map(String::as_str);
            if label("namespace") != Some(namespace) {
                continue;
            }
            match name {
                WAITERS if value >= 1.0 => {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "a number of callers"
                    )]
                    let callers = value as u64;
                    let lock = label("lock").unwrap_or(UNNAMED);
                    // Callers that wait for one key and for several are two series.
                    let same = |other: &&mut WaitingCallers| {
                        other.lock == lock && other.process == process
                    };
                    match self.waiting.iter_mut().find(same) {
                        Some(others) => others.callers += callers,
                        None => self.waiting.push(WaitingCallers {
                            lock: lock.to_owned(),
                            process: process.to_owned(),
                            callers,
                        }),
                    }
                }
                // A job that has ended or was removed has none.
                NEXT_TICK if value.is_finite() => {
                    let name = |name| label(name).unwrap_or_default();
                    let job = format!("{}/{}", name("job_namespace"), name("job_name"));
                    let next = self.next_ticks.entry(job).or_insert(f64::INFINITY);
                    *next = next.min(value * 1_000.0);
                }
                _ => {}
            }
        }
    }
}

/// Reads one line in the text format of Prometheus: a name, labels and a value.
fn series(line: &str) -> Option<(&str, HashMap<&str, String>, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = HashMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner.trim_start_matches([',', ' ']);
        while !rest.starts_with('}') {
            let (label, behind) = rest.split_once("=\"")?;
            let (value, behind) = quoted(behind)?;
            // It goes to a terminal.
            if value.contains(char::is_control) {
                return None;
            }
            labels.insert(label, value);
            rest = behind.trim_start_matches([',', ' ']);
        }
        rest = &rest[1..];
    }
    // A time may follow.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    (!name.starts_with('#')).then_some((name, labels, value))
}

/// Returns a value without what escapes in it, and what is behind its quotation mark.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

impl std::fmt::Display for WaitingCallers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            lock,
            process,
            callers,
        } = self;
        if lock == UNNAMED {
            write!(f, "{callers} for locks without a class at {process}")
        } else {
            write!(f, "{callers} for locks of class {lock} at {process}")
        }
    }
}

const WAITERS: &str = "redlock_waiters";
const NEXT_TICK: &str = "redlock_job_next_tick_timestamp_seconds";

/// The class that keys without one are measured under.
const UNNAMED: &str = "unnamed";

/// The form of an address, for one that is wrong.
const LIKE: &str = "it must be like http://web-1:9000/metrics";

/// How long a process may take to answer.
const LIMIT: Duration = Duration::from_secs(2);

/// The longest answer of a process, in bytes; a thousand classes take some hundred thousand.
const MOST: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn addresses_have_a_host_and_may_have_a_port_and_a_path() {
        let read = |url: &str| {
            let (process, path) = address(url).unwrap();
            format!("{process} {path}")
        };
        assert_eq!(read("http://web-1:9000/metrics"), "web-1:9000 /metrics");
        assert_eq!(read("http://web-1"), "web-1:80 /metrics");
        assert_eq!(read("http://[::1]:9000/m?a=b"), "[::1]:9000 /m?a=b");
        assert_eq!(read("http://[::1]/"), "[::1]:80 /");
        for wrong in [
            "web-1:9000",
            "https://web-1",
            "http://",
            "http://:9000",
            "http://web-1:port",
            "http://me:hunter2@web-1",
            "http://web-1/a b",
        ] {
            let error = address(wrong).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[tokio::test]
    async fn only_an_answer_of_200_is_one() {
        let answers = async |said: &'static str| {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let process = listener.local_addr().unwrap().to_string();
            let answers = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = [0; 1_024];
                assert!(stream.read(&mut asked).await.unwrap() > 0);
                stream.write_all(said.as_bytes()).await.unwrap();
            };
            tokio::join!(get(&process, "/metrics"), answers).0
        };
        let good = "HTTP/1.0 200 OK\r\na: b\r\n\r\nup 1\n";
        assert_eq!(answers(good).await.unwrap(), "up 1\n");
        for (wrong, why) in [
            ("HTTP/1.1 404 Not Found\r\n\r\n", "\"404\", not 200"),
            ("SSH-2.0\r\n", "not one of HTTP"),
            ("nothing\r\n\r\n200", "not one of HTTP"),
        ] {
            let error = answers(wrong).await.unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn names_labels_and_values_are_read_and_nonsense_is_passed_over() {
        let text = "# HELP up how\nup 1\n\nheld{lock=\"a \\\"b\\\" } {\",node=\"c\\\\d\"} 2.5 17\n\
            half{lock=\"a\nlines{lock=\"a\\nb\"} 1\nempty{} NaN\nnone{lock=\"a\"}\n";
        let all: Vec<_> = text.lines().filter_map(series).collect();
        let names: Vec<_> = all.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, ["up", "held", "empty"]);
        assert_eq!(all[1].1["lock"], "a \"b\" } {");
        assert_eq!(all[1].1["node"], "c\\d");
        assert_eq!((all[0].2, all[1].2), (1.0, 2.5));
        assert!(all[2].2.is_nan() && all[2].1.is_empty());
    }

    #[test]
    fn callers_that_wait_are_counted_by_class_and_process_in_one_namespace() {
        let mut measured = ProcessMetrics::default();
        let text = "# TYPE redlock_waiters gauge\n\
            redlock_waiters{namespace=\"billing\",lock=\"order\",keys=\"one\"} 2\n\
            redlock_waiters{namespace=\"billing\",lock=\"order\",keys=\"several\"} 1\n\
            redlock_waiters{namespace=\"billing\",lock=\"mail\"} 0\n\
            redlock_waiters{namespace=\"billing\",lock=\"unnamed\"} 2\n\
            redlock_waiters{namespace=\"other\",lock=\"order\"} 7\n";
        measured.add("web-1:9000", text, "billing");
        let of = |key: &str| -> Vec<String> {
            let waiting = measured.of(key);
            waiting.iter().map(ToString::to_string).collect()
        };
        let [class, unnamed] = [
            "3 for locks of class order at web-1:9000",
            "2 for locks without a class at web-1:9000",
        ];
        assert_eq!(of("order:7"), [class, unnamed]);
        assert_eq!(of("report"), [unnamed]);
    }

    #[test]
    fn of_several_replicas_the_first_next_tick_counts_and_ended_jobs_have_none() {
        let mut measured = ProcessMetrics::default();
        for next in ["1767225660", "1767225600.5", "NaN"] {
            let text = format!(
                "{NEXT_TICK}{{namespace=\"n\",job_namespace=\"billing\",job_name=\"day\"}} {next}\n"
            );
            measured.add("web", &text, "n");
        }
        let expected = BTreeMap::from([("billing/day".to_owned(), 1_767_225_600_500.0)]);
        assert_eq!(measured.next_ticks, expected);
    }
}

//! A fleet of replicas under load, whose replicas are replaced one after the other.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use redlock_sandbox::Process;

use crate::step::now;

/// A program of replicas, and the version of the crates in it.
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) version: String,
}

/// What each replica is started with.
pub(super) struct Setting {
    /// The nodes, as in `REDLOCK_NODES`.
    pub(super) nodes: String,
    /// The folder in which handlers lock the files of their orders.
    pub(super) orders: PathBuf,
}

/// Starts replicas of the first program, puts them under load, and replaces each of them with the second program.
///
/// Before, between and after the replacements, the replicas pay at least `between` orders.
///
/// # Errors
///
/// A replica does not start, does not end in order, or pays too few orders in time.
pub(super) fn upgrade(
    setting: &Setting,
    first: &Program,
    second: &Program,
    between: u64,
) -> io::Result<Tally> {
    let balancer = Balancer::default();
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(balancer.start(setting, first)?);
    }
    let ended = AtomicBool::new(false);
    let replaced = thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (balancer, ended) = (&balancer, &ended);
            scope.spawn(move || balancer.load(client, ended));
        }
        let replaced = replicas.iter().try_for_each(|replica| {
            balancer.wait_for_orders(between)?;
            balancer.end(replica)?;
            balancer.start(setting, second).map(drop)
        });
        let replaced = replaced.and_then(|()| balancer.wait_for_orders(between));
        ended.store(true, Ordering::Relaxed);
        replaced
    });
    replaced?;
    let serving = locked(&balancer.replicas).clone();
    serving
        .iter()
        .try_for_each(|replica| balancer.end(replica))?;
    let tally = balancer.tally.into_inner();
    Ok(tally.unwrap_or_else(PoisonError::into_inner))
}

/// Runs the README's service on a sandbox, as the README says; returns its answer to the request that it prints.
pub(super) fn serve_alone(redlock: &Path, service: &Path) -> io::Result<String> {
    let mut command = Process::command("sh");
    command
        .args(["-c", "exec \"$0\" sandbox -- \"$1\" 2>&1"])
        .args([redlock, service])
        .stdout(Stdio::piped());
    let mut process = Process::spawn(command)?;
    let output = process.take_stdout().expect("it is piped");
    let mut said = String::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        if let Some((_, url)) = line.split_once("curl -X POST http://") {
            let (address, _) = url.split_once('/').unwrap_or((url, ""));
            let answer = ask(address.parse().map_err(io::Error::other)?, 7);
            // It ends the service, too.
            process.terminate()?;
            process.finish(PATIENCE)?;
            return answer;
        }
        said += &line;
    }
    Err(io::Error::other(said))
}

/// The replicas that get requests, and what became of the requests.
#[derive(Default)]
struct Balancer {
    replicas: Mutex<Vec<Arc<Replica>>>,
    /// The requests so far, each of which goes to the replica after that of the one before.
    turns: AtomicUsize,
    tally: Mutex<Tally>,
}

/// A replica that serves.
struct Replica {
    process: Mutex<Process>,
    address: SocketAddr,
    version: String,
    /// How many requests wait for its answer.
    requests: AtomicUsize,
}

impl Balancer {
    /// Starts a replica, and gives it requests once it listens.
    fn start(&self, setting: &Setting, program: &Program) -> io::Result<Arc<Replica>> {
        let mut command = Process::command(&program.path);
        command
            .arg(&setting.orders)
            .env("REDLOCK_NODES", &setting.nodes)
            .stdout(Stdio::piped());
        let mut process = Process::spawn(command)?;
        let mut line = String::new();
        let output = process.take_stdout().expect("it is piped");
        BufReader::new(output).read_line(&mut line)?;
        let replica = Arc::new(Replica {
            process: Mutex::new(process),
            address: line.trim().parse().map_err(io::Error::other)?,
            version: program.version.clone(),
            requests: AtomicUsize::new(0),
        });
        locked(&self.replicas).push(Arc::clone(&replica));
        Ok(replica)
    }

    /// Gives a replica no further requests, and asks it to end once it has answered the others.
    fn end(&self, replica: &Arc<Replica>) -> io::Result<()> {
        locked(&self.replicas).retain(|other| !Arc::ptr_eq(other, replica));
        wait(|| replica.requests.load(Ordering::Relaxed) == 0)?;
        let mut process = locked(&replica.process);
        process.terminate()?;
        let status = process.finish(PATIENCE)?;
        if status.success() {
            return Ok(());
        }
        let version = &replica.version;
        Err(io::Error::other(format!(
            "a replica of {version} ended with {status}"
        )))
    }

    /// Pays one order after the other, from the one with this number on, until the load has ended.
    fn load(&self, first: usize, ended: &AtomicBool) {
        for order in first.. {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            self.pay(order % ORDERS);
        }
    }

    /// Sends a request to the next replica, and counts its answer.
    fn pay(&self, order: usize) {
        let replica = {
            let replicas = locked(&self.replicas);
            let turn = self.turns.fetch_add(1, Ordering::Relaxed);
            let replica = &replicas[turn % replicas.len()];
            replica.requests.fetch_add(1, Ordering::Relaxed);
            Arc::clone(replica)
        };
        let began = now();
        let answer = ask(replica.address, order);
        replica.requests.fetch_sub(1, Ordering::Relaxed);
        let answer = answer.unwrap_or_else(|error| error.to_string());
        locked(&self.tally).add(&replica.version, &answer, began.elapsed());
    }

    /// Waits until the replicas have paid this many orders more.
    fn wait_for_orders(&self, count: u64) -> io::Result<()> {
        let paid = || locked(&self.tally).paid.values().sum::<u64>();
        let enough = paid() + count;
        wait(|| paid() >= enough)
    }
}

/// What the replicas answered.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// How many orders the replicas of each version paid.
    paid: BTreeMap<String, u64>,
    /// How many handlers were not alone, or had a token that was not greater than the last.
    overlaps: u64,
    /// How many requests had another answer, as they could not acquire the lock.
    failed: u64,
    /// The first of these answers.
    example: Option<String>,
    longest: Duration,
}

impl Tally {
    fn add(&mut self, version: &str, answer: &str, took: Duration) {
        self.longest = self.longest.max(took);
        let is_fine = answer.starts_with("HTTP/1.1 200 ");
        match answer.split_once("\r\n\r\n") {
            Some((_, "paid")) if is_fine => {
                *self.paid.entry(version.to_owned()).or_default() += 1;
            }
            Some((_, "overlap")) if is_fine => self.overlaps += 1,
            _ => {
                self.failed += 1;
                self.example.get_or_insert_with(|| answer.to_owned());
            }
        }
    }

    /// Returns whether each request was served, and none beside another for its order.
    pub(super) fn is_clean(&self) -> bool {
        self.overlaps == 0 && self.failed == 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paid = self.paid.iter();
        let paid: Vec<_> = paid
            .map(|(version, count)| format!("{count} orders paid by {version}"))
            .collect();
        let (paid, longest) = (paid.join(", "), self.longest.as_secs_f64());
        let (failed, overlaps) = (self.failed, self.overlaps);
        write!(
            out,
            "{paid}; {failed} failed acquires, {overlaps} overlaps; the slowest answer took {longest:.2} s"
        )?;
        match &self.example {
            Some(answer) => write!(out, "; a failed one: {answer}"),
            None => Ok(()),
        }
    }
}

/// Asks a replica to pay an order, and returns its answer.
fn ask(address: SocketAddr, order: usize) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "POST /orders/{order}/pay HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Waits until something is the case.
fn wait(is_so: impl Fn() -> bool) -> io::Result<()> {
    let began = now();
    while !is_so() {
        if began.elapsed() > PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

const REPLICAS: usize = 3;

const CLIENTS: usize = 6;

/// Fewer than clients, so that requests of all replicas meet.
const ORDERS: usize = 4;

const PATIENCE: Duration = Duration::from_secs(300);

const POLL: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlap_and_any_answer_that_is_none_of_a_handler_are_counted() {
        let answer = |status: &str, body: &str| format!("HTTP/1.1 {status}\r\na: b\r\n\r\n{body}");
        let mut tally = Tally::default();
        for _ in 0..2 {
            tally.add("0.1.0", &answer("200 OK", "paid"), POLL);
        }
        assert!(tally.is_clean());
        tally.add("0.1.1", &answer("200 OK", "paid"), PATIENCE);
        tally.add("0.1.1", &answer("200 OK", "overlap"), POLL);
        assert!(!tally.is_clean());
        for failed in [
            "connection refused",
            &answer("409 Conflict", "paid"),
            &answer("200 OK", ""),
        ] {
            tally.add("0.1.1", failed, POLL);
        }
        let said = tally.to_string();
        let expected = "2 orders paid by 0.1.0, 1 orders paid by 0.1.1; 3 failed acquires, 1 overlaps; \
                        the slowest answer took 300.00 s; a failed one: connection refused";
        assert_eq!(said, expected);
        let failed = Tally {
            failed: 1,
            ..Tally::default()
        };
        assert!(!failed.is_clean());
    }
}

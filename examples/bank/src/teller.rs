use std::time::Duration;

use redlock_core::{
    AcquireError, AcquireOptions, Config, LockGuard, Redlock, ResourceKey, ResourceKeys, Wait,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    BoxError, Mode,
    ledger::{ACCOUNTS, Ledger, TOTAL},
};

/// One process of the bank.
#[derive(Clone, Debug)]
pub(crate) struct Teller {
    pub(crate) ledger: String,
    pub(crate) mode: Mode,
}

/// How many customers a teller serves at once, and how many transfers each of them makes.
pub(crate) const CUSTOMERS: usize = 4;
const TRANSFERS: usize = 25;
/// What a teller tells when it has made one.
pub(crate) const TRANSFER: &str = "transfer";
/// How many of each teller's audit the bank, and how often each of them does.
const AUDITORS: usize = 2;
const AUDITS: usize = 5;
/// How long a transfer thinks between reading and writing.
const THINKS: Duration = Duration::from_millis(1);

/// What a teller did, told as one line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) transfers: usize,
    pub(crate) audits: usize,
    /// Audits that found more or less than there is.
    pub(crate) wrong: usize,
    /// The longest wait for a lock, in milliseconds.
    pub(crate) longest: u64,
}

impl Done {
    fn to_line(self) -> String {
        let Self {
            transfers,
            audits,
            wrong,
            longest,
        } = self;
        format!("{transfers} {audits} {wrong} {longest}")
    }

    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let mut numbers = line.split(' ');
        Some(Self {
            transfers: numbers.next()?.parse().ok()?,
            audits: numbers.next()?.parse().ok()?,
            wrong: numbers.next()?.parse().ok()?,
            longest: numbers.next()?.parse().ok()?,
        })
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            transfers: self.transfers + other.transfers,
            audits: self.audits + other.audits,
            wrong: self.wrong + other.wrong,
            longest: self.longest.max(other.longest),
        }
    }
}

impl Teller {
    /// The teller that a command line describes, if it describes one.
    pub(crate) fn from_arguments(arguments: &[&str]) -> Option<Self> {
        let ["teller", ledger, mode] = arguments else {
            return None;
        };
        Some(Self {
            ledger: (*ledger).to_owned(),
            mode: match *mode {
                "all-keys" => Mode::AllKeys,
                _ => Mode::OneKey,
            },
        })
    }

    pub(crate) fn to_arguments(&self) -> [String; 3] {
        let mode = match self.mode {
            Mode::AllKeys => "all-keys",
            Mode::OneKey => "one-key",
        };
        ["teller", &self.ledger, mode].map(str::to_owned)
    }

    /// Serves all customers and audits the bank; says what was done.
    pub(crate) async fn run(self) -> Result<String, BoxError> {
        let redlock = Redlock::builder().config(Config::from_env()?);
        let redlock = redlock.build().await?;
        let desk = Desk {
            redlock: redlock.clone(),
            ledger: Ledger::at(&self.ledger),
            mode: self.mode,
        };
        let mut tasks = JoinSet::new();
        for _ in 0..CUSTOMERS {
            let desk = desk.clone();
            tasks.spawn(async move { desk.serve().await });
        }
        for _ in 0..AUDITORS {
            let desk = desk.clone();
            tasks.spawn(async move { desk.audit().await });
        }
        let mut done = Done::default();
        while let Some(task) = tasks.join_next().await {
            done = done.and(task??);
        }
        redlock.close().await;
        Ok(done.to_line())
    }
}

#[derive(Clone)]
struct Desk {
    redlock: Redlock,
    ledger: Ledger,
    mode: Mode,
}

impl Desk {
    /// Makes the transfers of one customer, between any two accounts.
    async fn serve(self) -> Result<Done, BoxError> {
        let mut done = Done::default();
        for _ in 0..TRANSFERS {
            let [from, to] = any_two();
            let accounts = [from, to];
            let locked = match self.mode {
                Mode::AllKeys => &accounts[..],
                Mode::OneKey => &accounts[..1],
            };
            let (guard, waited) = self.lock(locked, alone()).await?;
            done.longest = done.longest.max(waited);
            let balances = [self.ledger.read(from)?, self.ledger.read(to)?];
            sleep(THINKS).await;
            if !guard.lease().is_held() {
                // Nothing is written yet: another may have the accounts by now. A ledger that must not rely on this look
                // compares fencing tokens, as the example `fenced-store` does.
                return Err("the lease was lost".into());
            }
            self.ledger.write(from, balances[0] - 1)?;
            sleep(THINKS).await;
            self.ledger.write(to, balances[1] + 1)?;
            guard.release().await?;
            done.transfers += 1;
            println!("{TRANSFER}");
        }
        Ok(done)
    }

    /// Adds all accounts up, again and again, while others may read them too.
    async fn audit(self) -> Result<Done, BoxError> {
        let mut done = Done::default();
        let all: Vec<usize> = (0..ACCOUNTS).collect();
        for _ in 0..AUDITS {
            sleep(20 * THINKS).await;
            let locked = match self.mode {
                Mode::AllKeys => &all[..],
                Mode::OneKey => &all[..1],
            };
            let (guard, waited) = self.lock(locked, alone().shared()).await?;
            done.longest = done.longest.max(waited);
            done.wrong += usize::from(self.ledger.total()? != TOTAL);
            guard.release().await?;
            done.audits += 1;
        }
        Ok(done)
    }

    /// Locks these accounts; says how many milliseconds that took.
    async fn lock(
        &self,
        accounts: &[usize],
        options: AcquireOptions,
    ) -> Result<(LockGuard, u64), AcquireError> {
        let keys = accounts
            .iter()
            .map(|account| ResourceKey::new("account", account));
        let keys: Vec<ResourceKey> = keys.collect::<Result<_, _>>()?;
        let keys = ResourceKeys::new(keys)?;
        let began = Instant::now();
        let guard = self.redlock.acquire_all_with(keys, options).await?;
        let waited = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok((guard, waited))
    }
}

fn alone() -> AcquireOptions {
    AcquireOptions::new().wait(Wait::UpTo(PATIENCE))
}

/// An audit needs all accounts to be free of transfers at once.
const PATIENCE: Duration = Duration::from_secs(30);

fn any_two() -> [usize; 2] {
    let bits = uuid::Uuid::new_v4().as_u128();
    let accounts = ACCOUNTS as u128;
    let from = bits % accounts;
    let to = (from + 1 + (bits >> 8) % (accounts - 1)) % accounts;
    [from, to].map(|account| usize::try_from(account).unwrap_or_default())
}

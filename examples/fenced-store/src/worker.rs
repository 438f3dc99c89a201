use std::{fmt, thread, time::Duration};

use redlock_core::{AcquireOptions, Config, FencingToken, Redlock, Wait};

use stage::BoxError;

use crate::{
    Mode,
    store::{Refused, Store},
};

/// What one process is to do.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Where the store is.
    pub(crate) store: String,
    /// The run that it belongs to.
    pub(crate) run: String,
    pub(crate) mode: Mode,
    /// By how much it changes the balance.
    pub(crate) change: i64,
    /// Whether it takes its time before its first write.
    pub(crate) slow: bool,
}

/// What a worker says just before a write, after its last look at the lease.
pub(crate) const ABOUT_TO_WRITE: &str = "is about to write";
pub(crate) const WROTE: &str = "wrote";
pub(crate) const REFUSED: &str = "was refused";

/// So short that the story is: a holder that is gone keeps others out for so long.
const LEASE: Duration = Duration::from_millis(1_500);

impl Worker {
    /// The worker that a command line describes, if it describes one.
    pub(crate) fn from_arguments(arguments: &[&str]) -> Option<Self> {
        let ["worker", store, run, fence, change, pace] = arguments else {
            return None;
        };
        Some(Self {
            store: (*store).to_owned(),
            run: (*run).to_owned(),
            mode: match *fence {
                "fence" => Mode::WithFence,
                _ => Mode::WithoutFence,
            },
            change: change.parse().ok()?,
            slow: *pace == "slow",
        })
    }

    pub(crate) fn to_arguments(&self) -> [String; 6] {
        let fence = match self.mode {
            Mode::WithFence => "fence",
            Mode::WithoutFence => "no-fence",
        };
        let pace = if self.slow { "slow" } else { "quick" };
        let (store, run) = (self.store.as_str(), self.run.as_str());
        let change = self.change.to_string();
        ["worker", store, run, fence, &change, pace].map(str::to_owned)
    }

    /// Changes the balance once, under a lease; starts over if the write is refused.
    pub(crate) async fn run(mut self) -> Result<(), BoxError> {
        let config = Config::from_env()?;
        let redlock = Redlock::builder().config(config).build().await?;
        let store = Store::open(&self.store, &self.run, self.mode)?;
        let options = AcquireOptions::new().ttl(LEASE).wait(Wait::UpTo(LEASE * 5));
        let account = format!("{}:account", self.run);
        loop {
            let guard = redlock.acquire_with(&account, options.clone()).await?;
            let token = guard.token();
            let balance = match store.take(token).await? {
                Ok(balance) => balance,
                Err(refused) => {
                    say_refused(token, &refused);
                    continue;
                }
            };
            say(format_args!(
                "has the lease, with token {token}, and reads a balance of {balance}"
            ));
            if !guard.lease().is_held() {
                continue;
            }
            // The lease is valid here. Between this look at it and the write, no lease can help.
            say(format_args!("{ABOUT_TO_WRITE} {}", balance + self.change));
            if std::mem::take(&mut self.slow) {
                thread::sleep(LEASE / 3);
            }
            match store.write(balance + self.change, token).await? {
                Ok(()) => {
                    say(format_args!("{WROTE} {}", balance + self.change));
                    // A lease that has ended meanwhile is no failure of the work.
                    drop(guard.release().await);
                    redlock.close().await;
                    return Ok(());
                }
                Err(refused) => say_refused(token, &refused),
            }
        }
    }
}

fn say_refused(token: FencingToken, Refused { newest }: &Refused) {
    say(format_args!(
        "{REFUSED}: its token {token} is older than {newest}; it begins anew"
    ));
}

fn say(what: fmt::Arguments<'_>) {
    println!("{what}");
}

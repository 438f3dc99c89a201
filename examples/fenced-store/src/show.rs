//! What happens, in order.

use stage::{BoxError, Story};

use crate::{
    Mode,
    child::Child,
    servers::Servers,
    store::Store,
    worker::{ABOUT_TO_WRITE, REFUSED, WROTE, Worker},
};

const BALANCE: i64 = 100;
const WITHDRAWAL: i64 = -30;
const DEPOSIT: i64 = 50;

/// Runs the show; what it returns is its last line.
pub(crate) async fn run(mode: Mode) -> Result<String, BoxError> {
    let story = Story::begin();
    let servers = Servers::choose(story).await?;
    let id = uuid::Uuid::new_v4().simple().to_string();
    let run = format!("fenced-store-{}", &id[..8]);
    let store = Store::open(&servers.store, &run, mode)?;
    store.deposit_first(BALANCE).await?;
    story.tell(format_args!(
        "the account has {BALANCE}; A takes {} out, B puts {DEPOSIT} in; the store {} tokens",
        -WITHDRAWAL,
        match mode {
            Mode::WithFence => "compares",
            Mode::WithoutFence => "does not look at",
        }
    ));
    let worker = |change, slow| Worker {
        store: servers.store.clone(),
        run: run.clone(),
        mode,
        change,
        slow,
    };

    let start = |name, worker: Worker| Child::start(name, &worker, &servers.environment, story);
    let mut first = start("A", worker(WITHDRAWAL, true))?;
    first.until(ABOUT_TO_WRITE).await?;
    first.stop()?;
    story.tell(format_args!(
        "A is stopped (SIGSTOP) in the middle of it, and so is its renewal"
    ));
    let mut second = start("B", worker(DEPOSIT, false))?;
    second.until(WROTE).await?;
    second.finish().await?;
    let meanwhile = store.balance().await?;
    if meanwhile != BALANCE + DEPOSIT {
        return Err(format!("A was not stopped in time: the balance is {meanwhile}").into());
    }
    first.go_on()?;
    story.tell(format_args!("A goes on (SIGCONT), long after its lease"));
    if mode == Mode::WithFence {
        first.until(REFUSED).await?;
    }
    first.finish().await?;

    let balance = store.balance().await?;
    store.close().await?;
    story.tell(format_args!("the account has {balance}"));
    let lost = BALANCE + WITHDRAWAL + DEPOSIT - balance;
    match (mode, lost) {
        (Mode::WithFence, 0) => Ok(format!(
            "ok: 1 late write refused, 2 of 2 changes made, 0 lost, the balance is {balance}"
        )),
        (Mode::WithFence, _) => Err(format!("{lost} lost though the store compares tokens").into()),
        (Mode::WithoutFence, DEPOSIT) => Ok(format!(
            "without the fence: the late write was accepted, the deposit of {lost} is lost, the balance is {balance}"
        )),
        (Mode::WithoutFence, _) => {
            Err("nothing was lost without the fence this time, which proves nothing".into())
        }
    }
}

use deadpool_redis::{Config, Pool, Runtime, redis::Script};
use redlock_core::FencingToken;

use stage::BoxError;

use crate::Mode;

/// What the two processes share: the balance of one account, and the greatest token that has written it.
///
/// It knows nothing of locks.
pub(crate) struct Store {
    pool: Pool,
    mode: Mode,
    /// The fence, and the data.
    keys: [String; 2],
}

/// A greater token has been here before.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) newest: u64,
}

/// The check and the read in one step: from now on, holders of older leases write nothing.
///
/// The write depends on what is read here. If the read did not raise the fence, an older holder could write between the
/// two, and this holder would undo it.
/// Tokens are below 2^53, so numbers compare them exactly.
const READ: &str = "
local newest = redis.call('GET', KEYS[1]) or '0'
if tonumber(newest) > tonumber(ARGV[1]) then return {tonumber(newest), 0} end
redis.call('SET', KEYS[1], ARGV[1])
return {0, tonumber(redis.call('GET', KEYS[2]) or '0')}";

/// The check and the write in one step, as the documentation of [`Fence`](redlock_core::Fence) has it.
const WRITE: &str = "
local newest = redis.call('GET', KEYS[1]) or '0'
if tonumber(newest) > tonumber(ARGV[1]) then return tonumber(newest) end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[2])
return 0";

/// What a store does that does not compare.
const CARELESS_READ: &str = "return {0, tonumber(redis.call('GET', KEYS[2]) or '0')}";

const CARELESS_WRITE: &str = "
redis.call('SET', KEYS[2], ARGV[2])
return 0";

impl Store {
    /// The account of one run, on the server at this URL.
    pub(crate) fn open(url: &str, run: &str, mode: Mode) -> Result<Self, BoxError> {
        Ok(Self {
            pool: Config::from_url(url).create_pool(Some(Runtime::Tokio1))?,
            mode,
            keys: ["fence", "balance"].map(|what| format!("{{{run}}}:{what}")),
        })
    }

    /// Reads the balance to work on it.
    pub(crate) async fn take(&self, token: FencingToken) -> Result<Result<i64, Refused>, BoxError> {
        let script = match self.mode {
            Mode::WithFence => READ,
            Mode::WithoutFence => CARELESS_READ,
        };
        let script = Script::new(script);
        let mut call = script.prepare_invoke();
        call.key(&self.keys).arg(token.get());
        let mut connection = self.pool.get().await?;
        Ok(match call.invoke_async(&mut connection).await? {
            (0, balance) => Ok(balance),
            (newest, _) => Err(Refused { newest }),
        })
    }

    pub(crate) async fn balance(&self) -> Result<i64, BoxError> {
        let read = Script::new("return tonumber(redis.call('GET', KEYS[1]) or '0')");
        let mut connection = self.pool.get().await?;
        Ok(read
            .key(&self.keys[1])
            .invoke_async(&mut connection)
            .await?)
    }

    pub(crate) async fn write(
        &self,
        balance: i64,
        token: FencingToken,
    ) -> Result<Result<(), Refused>, BoxError> {
        let script = match self.mode {
            Mode::WithFence => WRITE,
            Mode::WithoutFence => CARELESS_WRITE,
        };
        let script = Script::new(script);
        let mut call = script.prepare_invoke();
        call.key(&self.keys).arg(token.get()).arg(balance);
        let mut connection = self.pool.get().await?;
        Ok(match call.invoke_async(&mut connection).await? {
            0 => Ok(()),
            newest => Err(Refused { newest }),
        })
    }

    /// Opens the account.
    pub(crate) async fn deposit_first(&self, balance: i64) -> Result<(), BoxError> {
        let script = Script::new("redis.call('SET', KEYS[1], ARGV[1])");
        let mut connection = self.pool.get().await?;
        let mut call = script.prepare_invoke();
        call.key(&self.keys[1]).arg(balance);
        Ok(call.invoke_async(&mut connection).await?)
    }

    /// Deletes the keys of this run, because the server may be given.
    pub(crate) async fn close(&self) -> Result<(), BoxError> {
        let script = Script::new("redis.call('DEL', KEYS[1], KEYS[2])");
        let mut connection = self.pool.get().await?;
        let mut call = script.prepare_invoke();
        call.key(&self.keys);
        Ok(call.invoke_async(&mut connection).await?)
    }
}

#[cfg(test)]
mod tests {
    use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};

    use super::*;

    /// An account on a server of its own, and two tokens of which the first is the older one.
    fn account() -> (ServerSet, Store, [FencingToken; 2]) {
        let binary = ServerBinary::find().unwrap();
        let servers = ServerSet::start(&binary, 1, &ServerOptions::default()).unwrap();
        let store = Store::open(&servers.urls()[0], "test", Mode::WithFence).unwrap();
        let tokens = [7, 8].map(|token| FencingToken::new(token).unwrap());
        (servers, store, tokens)
    }

    #[tokio::test]
    async fn who_was_overtaken_between_its_read_and_its_write_writes_nothing() {
        let (_servers, store, [older, newer]) = account();
        store.deposit_first(100).await.unwrap();
        assert_eq!(store.take(older).await.unwrap().unwrap(), 100);
        assert_eq!(store.take(newer).await.unwrap().unwrap(), 100);
        let late = store.write(70, older).await.unwrap();
        assert_eq!(late.unwrap_err().newest, 8);
        store.write(150, newer).await.unwrap().unwrap();
        assert_eq!(store.take(older).await.unwrap().unwrap_err().newest, 8);
        assert_eq!(store.balance().await.unwrap(), 150);
    }

    #[tokio::test]
    async fn a_write_without_a_read_keeps_older_holders_out_too() {
        let (_servers, store, [older, newer]) = account();
        store.write(150, newer).await.unwrap().unwrap();
        let late = store.write(70, older).await.unwrap();
        assert_eq!(late.unwrap_err().newest, 8);
    }
}

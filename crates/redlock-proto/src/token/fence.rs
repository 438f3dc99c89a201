use std::{error::Error, fmt};

use crate::FencingToken;

/// The check that a resource makes so that a holder whose lease has ended cannot write any more.
///
/// It is the only protection against a process that is paused between its last look at the lease and its
/// write.
/// No lease can protect against that, because the write is on its way (Kleppmann, "How to do distributed locking",
/// 2016; Chubby calls the token a sequencer).
///
/// The fence accepts a write if it has seen no newer token at all, by a write or a read.
/// It accepts a read if it has seen no newer token by a *write*.
/// So if several readers share a resource, it does not refuse an older reader because of a younger one.
///
/// Keep the two numbers with the resource, and compare and change them in the same transaction as the work.
///
/// # SQL
///
/// ```sql
/// -- the column starts at 0; no row changed means: the lease is over, or there is no such row
/// UPDATE orders SET state = 'paid', fence = $token WHERE id = $id AND fence <= $token;
/// ```
///
/// The comparison is `<=`, because a holder may write more than once, and its read raises the fence to its own token.
///
/// If a write depends on data that the holder has read before, the read must already raise the fence.
/// Otherwise an older holder could write between the read and the write, and the newer holder would undo that write or
/// repeat it.
///
/// ```sql
/// -- from now on, holders of older leases change nothing
/// UPDATE orders SET fence = $token WHERE id = $id AND fence <= $token;
/// SELECT state, amount FROM orders WHERE id = $id; -- no row: there is no such order
/// -- and after the work; no row changed means: a newer holder has read meanwhile
/// UPDATE orders SET state = 'paid' WHERE id = $id AND fence = $token;
/// ```
///
/// # Redis
///
/// ```lua
/// -- KEYS[1] the fence, KEYS[2] the data; ARGV[1] the token, ARGV[2] the value
/// -- tokens are below 2^53, so numbers compare them exactly
/// if tonumber(redis.call('GET', KEYS[1]) or '0') > tonumber(ARGV[1]) then return 0 end
/// redis.call('SET', KEYS[1], ARGV[1])
/// redis.call('SET', KEYS[2], ARGV[2])
/// return 1
/// ```
///
/// Before work that depends on the data, the holder reads it by a script that raises the fence, as in SQL:
///
/// ```lua
/// if tonumber(redis.call('GET', KEYS[1]) or '0') > tonumber(ARGV[1]) then return 0 end
/// redis.call('SET', KEYS[1], ARGV[1])
/// return {redis.call('GET', KEYS[2])}
/// ```
///
/// # Object stores
///
/// Keep the token in the object's metadata.
/// Read it, compare it, and write on condition that the object has not changed since (`If-Match` with its `ETag`).
///
/// # Examples
///
/// ```
/// # use redlock_proto::{Fence, FencingToken};
///
/// let [older, newer] = [7, 8].map(|n| FencingToken::new(n).unwrap());
/// let mut fence = Fence::new();
/// assert!(fence.write(newer).is_ok());
/// let stale = fence.write(older).unwrap_err();
/// assert_eq!(stale.to_string(), "fencing token 7 is older than 8: its lease is over");
/// assert!(fence.write(newer).is_ok(), "a holder may write more than once");
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Fence {
    newest: u64,
    newest_write: u64,
}

impl Fence {
    /// Makes a fence that has seen no token.
    pub const fn new() -> Self {
        Self {
            newest: 0,
            newest_write: 0,
        }
    }

    /// Accepts a write under `token` and remembers it.
    ///
    /// # Errors
    ///
    /// The fence has seen a newer token: the caller must not write.
    pub fn write(&mut self, token: FencingToken) -> Result<(), StaleToken> {
        check(token, self.newest)?;
        self.newest = token.get();
        self.newest_write = token.get();
        Ok(())
    }

    /// Accepts a read under `token` and remembers it.
    ///
    /// # Errors
    ///
    /// A holder of a newer token has written: the caller may read the work of a later holder.
    pub fn read(&mut self, token: FencingToken) -> Result<(), StaleToken> {
        check(token, self.newest_write)?;
        self.newest = self.newest.max(token.get());
        Ok(())
    }
}

fn check(token: FencingToken, newest: u64) -> Result<(), StaleToken> {
    if token.get() < newest {
        Err(StaleToken {
            token: token.get(),
            newest,
        })
    } else {
        Ok(())
    }
}

/// A token that came too late: the fence has seen a later holder's token before.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StaleToken {
    token: u64,
    newest: u64,
}

impl fmt::Display for StaleToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, newest } = self;
        write!(
            f,
            "fencing token {token} is older than {newest}: its lease is over"
        )
    }
}

impl Error for StaleToken {}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(value: u64) -> FencingToken {
        FencingToken::new(value).unwrap()
    }

    // Shows: T3.11.
    #[test]
    fn the_older_of_two_readers_is_not_refused() {
        let mut fence = Fence::new();
        fence.read(token(6)).unwrap();
        fence.read(token(5)).unwrap();
        fence.write(token(5)).unwrap_err();
        fence.write(token(6)).unwrap();
        fence.read(token(5)).unwrap_err();
        fence.read(token(7)).unwrap();
        fence.write(token(6)).unwrap_err();
    }
}

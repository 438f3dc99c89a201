use deadpool_redis::redis::{ErrorKind, RedisError, RedisResult, Value, parse_redis_value};

/// What the first bytes of a connection are.
#[derive(Debug, PartialEq)]
pub(super) enum Parsed {
    /// An answer, and how long it is.
    Whole(Value, usize),
    /// The beginning of one, which is at least this long as a whole.
    Partial(usize),
}

/// Reads the answer with which these bytes begin.
///
/// A partial answer need not be read again before it has reached its least length; so an answer is read a few times for
/// each of its values at most, in however many pieces it comes.
///
/// # Errors
///
/// It is not one in RESP2.
pub(super) fn answer(bytes: &[u8]) -> RedisResult<Parsed> {
    let mut reader = Reader { bytes, at: 0 };
    match reader.value(DEPTH) {
        Ok(value) => Ok(Parsed::Whole(value, reader.at)),
        Err(Stop::Partial(least)) => Ok(Parsed::Partial(least)),
        Err(Stop::Nonsense(error)) => Err(error),
    }
}

/// Returns the length of a status, such as `QUEUED`, if these bytes begin with a whole one.
pub(super) fn status(bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&b'+') {
        return None;
    }
    let mut reader = Reader { bytes, at: 0 };
    reader.line().is_ok().then_some(reader.at)
}

/// Why no value could be read.
enum Stop {
    /// The value is incomplete: the buffer must have at least this number of bytes.
    Partial(usize),
    Nonsense(RedisError),
}

impl From<RedisError> for Stop {
    fn from(error: RedisError) -> Self {
        Self::Nonsense(error)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// Reads the next value and the values in it, down to this depth.
    fn value(&mut self, depth: usize) -> Result<Value, Stop> {
        let start = self.at;
        let line = self.line()?;
        let (kind, text) = line.split_first().ok_or_else(nonsense)?;
        Ok(match kind {
            b':' => Value::Int(number(text)?),
            b'+' if text == b"OK" => Value::Okay,
            b'+' => Value::SimpleString(String::from_utf8_lossy(text).into_owned()),
            b'-' => parse_redis_value(&self.bytes[start..self.at])?,
            b'$' => match length(text)? {
                None => Value::Nil,
                Some(length) => Value::BulkString(self.bulk(length)?),
            },
            b'*' if depth > 0 => match length(text)? {
                None => Value::Nil,
                Some(length) => Value::Array(self.values(length, depth - 1)?),
            },
            _ => return Err(nonsense().into()),
        })
    }

    /// Reads `length` values.
    fn values(&mut self, length: usize, depth: usize) -> Result<Vec<Value>, Stop> {
        let behind = |count: usize| count.saturating_mul(SHORTEST);
        // A length may be any number: no room is made for what is not there.
        self.has(behind(length))?;
        let mut values = Vec::with_capacity(length.min(USUAL_LENGTH));
        for left in (0..length).rev() {
            let value = self.value(depth).map_err(|stop| match stop {
                Stop::Partial(least) => Stop::Partial(least.saturating_add(behind(left))),
                nonsense @ Stop::Nonsense(_) => nonsense,
            });
            values.push(value?);
        }
        Ok(values)
    }

    /// Takes the next line, without its end.
    fn line(&mut self) -> Result<&[u8], Stop> {
        let rest = &self.bytes[self.at..];
        let mut first = rest.iter().take(LONGEST_LINE);
        let Some(end) = first.position(|byte| *byte == b'\n') else {
            if rest.len() < LONGEST_LINE {
                return Err(Stop::Partial(self.bytes.len() + 1));
            }
            return Err(nonsense().into());
        };
        self.at += end + 1;
        let line = rest[..end].strip_suffix(b"\r");
        Ok(line.ok_or_else(nonsense)?)
    }

    /// Takes `length` bytes, and the end of the line behind them.
    fn bulk(&mut self, length: usize) -> Result<Vec<u8>, Stop> {
        let end = length.saturating_add(2);
        self.has(end)?;
        let rest = &self.bytes[self.at..];
        if &rest[length..end] != b"\r\n" {
            return Err(nonsense().into());
        }
        self.at += end;
        Ok(rest[..length].to_vec())
    }

    /// Checks that `count` more bytes are there.
    fn has(&self, count: usize) -> Result<(), Stop> {
        let least = self.at.saturating_add(count);
        if least > self.bytes.len() {
            return Err(Stop::Partial(least));
        }
        Ok(())
    }
}

/// Reads a length; `None` if it says that nothing is there.
fn length(text: &[u8]) -> RedisResult<Option<usize>> {
    match number(text)? {
        -1 => Ok(None),
        length => usize::try_from(length).map(Some).map_err(|_| nonsense()),
    }
}

fn number(text: &[u8]) -> RedisResult<i64> {
    let text = std::str::from_utf8(text).map_err(|_| nonsense())?;
    text.parse().map_err(|_| nonsense())
}

fn nonsense() -> RedisError {
    (ErrorKind::Parse, "the answer is not one").into()
}

/// More levels than any answer has.
const DEPTH: usize = 8;

/// The bytes of the shortest value.
const SHORTEST: usize = b"+\r\n".len();

/// The greatest number of values for which the reader makes room at once.
const USUAL_LENGTH: usize = 64;

/// More bytes than any line has: what is long comes with its length before it.
const LONGEST_LINE: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WHOLE: &[u8] =
        b"*7\r\n:-5\r\n+OK\r\n+PONG\r\n$4\r\na\r\nb\r\n$-1\r\n-NOPERM no\r\n*2\r\n:1\r\n*0\r\n";

    fn whole(bytes: &[u8]) -> Option<(Value, usize)> {
        match answer(bytes).unwrap() {
            Parsed::Whole(value, length) => Some((value, length)),
            Parsed::Partial(_) => None,
        }
    }

    #[test]
    fn an_answer_is_what_the_client_library_makes_of_it() {
        let (value, length) = whole(WHOLE).unwrap();
        assert_eq!(length, WHOLE.len());
        assert_eq!(value, parse_redis_value(WHOLE).unwrap());
    }

    #[test]
    fn an_answer_is_read_once_it_is_whole_and_no_further() {
        for end in 0..WHOLE.len() {
            let Parsed::Partial(least) = answer(&WHOLE[..end]).unwrap() else {
                panic!("it is not whole at {end}");
            };
            assert!((end + 1..=WHOLE.len()).contains(&least), "{end}: {least}");
        }
        let two = [WHOLE, b":7\r\n"].concat();
        let (_, length) = whole(&two).unwrap();
        assert_eq!(whole(&two[length..]), Some((Value::Int(7), 4)));
    }

    #[test]
    fn a_partial_answer_is_at_least_as_long_as_its_lengths_say() {
        for (bytes, least) in [
            (&b"$1000\r\nabc"[..], 7 + 1000 + 2),
            (b"*1000\r\n", 7 + 1000 * 3),
            (b"*3\r\n$10\r\nabcdef", 9 + 10 + 2 + 2 * 3),
            (b"*9223372036854775807\r\n", usize::MAX),
            (b"$9223372036854775807\r\n", usize::MAX / 2 + 24),
        ] {
            assert_eq!(answer(bytes).unwrap(), Parsed::Partial(least));
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let deep = b"*1\r\n".repeat(100_000);
        let long = b"+".repeat(LONGEST_LINE);
        for bytes in [
            &b"HTTP/1.1 400\r\n"[..],
            b"\r\n",
            b"+OK\n",
            b":x\r\n",
            b"$-2\r\n",
            b"$1\r\nabc\r\n",
            b"$18446744073709551615\r\n",
            b"*-7\r\n",
            &deep,
            &long,
        ] {
            assert!(answer(bytes).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_as_the_client_library_reads_them_or_refused(
            bytes in proptest::collection::vec(prop::sample::select(&b"+-:$*0123\r\n\r\na"[..]), 0..40)
        ) {
            if let Ok(Parsed::Whole(value, length)) = answer(&bytes) {
                prop_assert_eq!(parse_redis_value(&bytes[..length]).ok(), Some(value));
            }
        }
    }
}

use deadpool_redis::redis::{ErrorKind, RedisError, RedisResult, Value, parse_redis_value};

/// Reads the answer with which these bytes begin, and says how long it is; `None` if it is not whole yet.
///
/// # Errors
///
/// It is not one in RESP2.
pub(super) fn answer(bytes: &[u8]) -> RedisResult<Option<(Value, usize)>> {
    Reader { bytes, at: 0 }.value(DEPTH)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// Reads the next value and those in it, which may have so many levels; returns it and where it ends.
    fn value(&mut self, depth: usize) -> RedisResult<Option<(Value, usize)>> {
        let start = self.at;
        let Some(line) = self.line()? else {
            return Ok(None);
        };
        let (kind, text) = line.split_first().ok_or_else(nonsense)?;
        let value = match kind {
            b':' => Value::Int(number(text)?),
            b'+' if text == b"OK" => Value::Okay,
            b'+' => Value::SimpleString(String::from_utf8_lossy(text).into_owned()),
            b'-' => parse_redis_value(&self.bytes[start..self.at])?,
            b'$' => match length(text)? {
                None => Value::Nil,
                Some(length) => match self.bulk(length)? {
                    Some(bytes) => Value::BulkString(bytes),
                    None => return Ok(None),
                },
            },
            b'*' if depth > 0 => match length(text)? {
                None => Value::Nil,
                Some(length) => {
                    // Each has three bytes at least, and a length may be any number.
                    let left = self.bytes.len() - self.at;
                    let mut values = Vec::with_capacity(length.min(left / 3 + 1));
                    for _ in 0..length {
                        match self.value(depth - 1)? {
                            Some((value, _)) => values.push(value),
                            None => return Ok(None),
                        }
                    }
                    Value::Array(values)
                }
            },
            _ => return Err(nonsense()),
        };
        Ok(Some((value, self.at)))
    }

    /// Takes the next line, without its end.
    fn line(&mut self) -> RedisResult<Option<&[u8]>> {
        let rest = &self.bytes[self.at..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        self.at += end + 1;
        let line = rest[..end].strip_suffix(b"\r");
        line.map(Some).ok_or_else(nonsense)
    }

    /// Takes so many bytes, and the end of the line behind them.
    fn bulk(&mut self, length: usize) -> RedisResult<Option<Vec<u8>>> {
        let rest = &self.bytes[self.at..];
        let Some(end) = length.checked_add(2) else {
            return Err(nonsense());
        };
        if rest.len() < end {
            return Ok(None);
        }
        if &rest[length..end] != b"\r\n" {
            return Err(nonsense());
        }
        self.at += end;
        Ok(Some(rest[..length].to_vec()))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WHOLE: &[u8] =
        b"*7\r\n:-5\r\n+OK\r\n+PONG\r\n$4\r\na\r\nb\r\n$-1\r\n-NOPERM no\r\n*2\r\n:1\r\n*0\r\n";

    #[test]
    fn an_answer_is_what_the_client_library_makes_of_it() {
        let (value, length) = answer(WHOLE).unwrap().unwrap();
        assert_eq!(length, WHOLE.len());
        assert_eq!(value, parse_redis_value(WHOLE).unwrap());
    }

    #[test]
    fn an_answer_is_read_once_it_is_whole_and_no_further() {
        for end in 0..WHOLE.len() {
            assert_eq!(answer(&WHOLE[..end]).unwrap(), None, "{end}");
        }
        let two = [WHOLE, b":7\r\n"].concat();
        let (_, length) = answer(&two).unwrap().unwrap();
        assert_eq!(answer(&two[length..]).unwrap(), Some((Value::Int(7), 4)));
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let deep = b"*1\r\n".repeat(100_000);
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
        ] {
            assert!(answer(bytes).is_err());
        }
        // Nobody keeps room for what may never come.
        assert_eq!(answer(b"*9223372036854775807\r\n").unwrap(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_as_the_client_library_reads_them_or_refused(
            bytes in proptest::collection::vec(prop::sample::select(&b"+-:$*0123\r\n\r\na"[..]), 0..40)
        ) {
            if let Ok(Some((value, length))) = answer(&bytes) {
                prop_assert_eq!(parse_redis_value(&bytes[..length]).ok(), Some(value));
            }
        }
    }
}

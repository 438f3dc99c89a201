//! The part of Redis' wire protocol, RESP2, that a test needs to look at a key.

use std::io::{self, BufRead};

/// A reply of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// No value, such as that of a key that does not exist.
    Nil,
    /// A number.
    Integer(i64),
    /// A status of the server, such as `OK`.
    Status(String),
    /// The bytes of a value.
    Data(Vec<u8>),
    /// Several replies in one.
    Array(Vec<Self>),
    /// An error in the place of one of several replies.
    Error(String),
}

impl Value {
    /// Returns the number, if the reply is one.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// Returns the text, if the reply is a status or data in UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Status(text) => Some(text),
            Self::Data(data) => std::str::from_utf8(data).ok(),
            _ => None,
        }
    }

    /// Returns the elements, if the reply is an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    /// Returns whether the reply is [`Nil`](Self::Nil).
    pub fn is_nil(&self) -> bool {
        *self == Self::Nil
    }

    /// Reads one reply.
    pub(crate) fn read(input: &mut impl BufRead) -> io::Result<Self> {
        let line = read_line(input)?;
        let (mark, rest) = line.split_at_checked(1).ok_or_else(|| malformed(&line))?;
        match mark {
            "+" => Ok(Self::Status(rest.to_owned())),
            "-" => Ok(Self::Error(rest.to_owned())),
            ":" => rest
                .parse()
                .map(Self::Integer)
                .map_err(|_| malformed(&line)),
            "$" | "*" if rest == "-1" => Ok(Self::Nil),
            "$" => read_data(input, length(rest, &line)?).map(Self::Data),
            "*" => (0..length(rest, &line)?)
                .map(|_| Self::read(input))
                .collect::<io::Result<_>>()
                .map(Self::Array),
            _ => Err(malformed(&line)),
        }
    }
}

/// Returns a command as bytes: an array of its arguments.
pub(crate) fn encode<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn length(text: &str, line: &str) -> io::Result<usize> {
    text.parse().map_err(|_| malformed(line))
}

fn read_data(input: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    let mut data = vec![0; length];
    input.read_exact(&mut data)?;
    match read_line(input)?.as_str() {
        "" => Ok(data),
        line => Err(malformed(line)),
    }
}

fn read_line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None if line.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
        None => Err(malformed(&line)),
    }
}

fn malformed(line: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("not a reply of a server: {line:?}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_may_hold_line_ends() {
        let value = Value::read(&mut &b"$4\r\na\r\nb\r\n"[..]).unwrap();
        assert_eq!(value.as_text(), Some("a\r\nb"));
    }

    #[test]
    fn arrays_nest_and_keep_errors_in_place() {
        let value = Value::read(&mut &b"*3\r\n:7\r\n$-1\r\n*1\r\n-ERR no\r\n"[..]).unwrap();
        let inner = Value::Array(vec![Value::Error("ERR no".to_owned())]);
        assert_eq!(
            value,
            Value::Array(vec![Value::Integer(7), Value::Nil, inner])
        );
    }

    #[test]
    fn a_reply_that_is_cut_off_is_an_error() {
        for cut in ["", "+", "+OK\r", "$4\r\nab", "*2\r\n:1\r\n"] {
            Value::read(&mut cut.as_bytes()).unwrap_err();
        }
    }
}

//! The arguments of a command, as they are on the wire.

use deadpool_redis::redis::Cmd;

/// Arguments, one behind the other; a command if the first of them is its name.
///
/// They have the secrets of locks in them, so there is no `Debug`.
#[derive(Default)]
pub(crate) struct Args {
    /// Each with its length before it.
    bytes: Vec<u8>,
    count: usize,
}

impl Args {
    /// Returns an empty list of arguments, with room for this number of bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            count: 0,
        }
    }

    /// Adds one.
    pub(crate) fn push(&mut self, arg: impl AsRef<[u8]>) -> &mut Self {
        let arg = arg.as_ref();
        write_head(b'$', arg.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(arg);
        self.bytes.extend_from_slice(END);
        self.count += 1;
        self
    }

    /// Adds one that consists of two parts.
    pub(crate) fn push_parts(&mut self, parts: [&str; 2]) -> &mut Self {
        write_head(
            b'$',
            (parts[0].len() + parts[1].len()) as u64,
            &mut self.bytes,
        );
        for part in parts {
            self.bytes.extend_from_slice(part.as_bytes());
        }
        self.bytes.extend_from_slice(END);
        self.count += 1;
        self
    }

    /// Adds a number, in decimal digits.
    pub(crate) fn push_number(&mut self, number: u64) -> &mut Self {
        let mut room = [0; MOST_DIGITS];
        self.push(digits(number, 1, &mut room))
    }

    /// Adds a counter or a tick as nodes store it: of one length, so that they need not read it to compare it.
    pub(crate) fn push_counter(&mut self, counter: u64) -> &mut Self {
        let mut room = [0; MOST_DIGITS];
        self.push(digits(counter, DIGITS_OF_A_COUNTER, &mut room))
    }

    /// Adds all of others.
    pub(crate) fn append(&mut self, others: &Self) {
        self.bytes.extend_from_slice(&others.bytes);
        self.count += others.count;
    }

    /// Takes all away.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Returns how many there are.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Returns how many bytes they have on the wire.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns them, one by one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (_, behind) = rest.split_first()?;
            let digits = behind.iter().take_while(|byte| byte.is_ascii_digit());
            let (digits, behind) = behind.split_at(digits.count());
            let length = digits
                .iter()
                .fold(0, |length, digit| 10 * length + usize::from(digit - b'0'));
            let (arg, behind) = behind[END.len()..].split_at(length);
            rest = &behind[END.len()..];
            Some(arg)
        })
    }

    /// Returns the place behind the last one.
    pub(crate) const fn end(&self) -> ArgsPosition {
        ArgsPosition {
            byte: self.bytes.len(),
            count: self.count,
        }
    }

    /// Writes them as a command behind what is to be sent.
    pub(crate) fn write(&self, output: &mut Vec<u8>) {
        self.write_part(ArgsPosition::default(), self.end(), output);
    }

    /// Writes those between two places as a command behind what is to be sent.
    pub(crate) fn write_part(&self, start: ArgsPosition, end: ArgsPosition, output: &mut Vec<u8>) {
        write_head(b'*', (end.count - start.count) as u64, output);
        output.extend_from_slice(&self.bytes[start.byte..end.byte]);
    }

    /// Returns them as a command of redis-rs.
    pub(crate) fn to_redis(&self) -> Cmd {
        self.part_to_redis(ArgsPosition::default(), self.end())
    }

    /// Returns those between two places as a command of redis-rs.
    pub(crate) fn part_to_redis(&self, start: ArgsPosition, end: ArgsPosition) -> Cmd {
        let (count, bytes) = (end.count - start.count, end.byte - start.byte);
        let mut cmd = Cmd::with_capacity(count, bytes);
        for arg in self.iter().skip(start.count).take(count) {
            cmd.arg(arg);
        }
        cmd
    }
}

/// A position between two arguments.
#[derive(Clone, Copy, Default)]
pub(crate) struct ArgsPosition {
    byte: usize,
    count: usize,
}

/// Writes the header of a text of this length, or of a list of this number of texts.
fn write_head(kind: u8, count: u64, output: &mut Vec<u8>) {
    output.push(kind);
    let mut room = [0; MOST_DIGITS];
    output.extend_from_slice(digits(count, 1, &mut room));
    output.extend_from_slice(END);
}

/// Returns the decimal digits of a number, `least` or more of them, written at the end of `room`.
fn digits(mut number: u64, least: usize, room: &mut [u8; MOST_DIGITS]) -> &[u8] {
    let mut at = room.len();
    while number > 0 || room.len() - at < least {
        at -= 1;
        // invariant: a digit fits
        room[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    &room[at..]
}

const END: &[u8] = b"\r\n";

/// As many digits as the greatest number has.
const MOST_DIGITS: usize = 20;

const DIGITS_OF_A_COUNTER: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_written_as_redis_rs_writes_it() {
        let mut args = Args::default();
        args.push("ECHO").push("").push([0xff_u8; 100]);
        args.push_number(0).push_number(10).push_number(u64::MAX);
        let mut expected = Cmd::new();
        expected.arg("ECHO").arg("").arg(&[0xff_u8; 100][..]);
        expected.arg(0).arg(10).arg(u64::MAX);
        let mut written = Vec::new();
        args.write(&mut written);
        assert_eq!(written, expected.get_packed_command());
        assert_eq!(args.to_redis().get_packed_command(), written);
        let told: Vec<&[u8]> = args.iter().collect();
        let most = u64::MAX.to_string();
        let all: [&[u8]; 6] = [b"ECHO", b"", &[0xff_u8; 100], b"0", b"10", most.as_bytes()];
        assert_eq!(told, all);
    }

    #[test]
    fn counters_have_one_length() {
        let mut args = Args::default();
        args.push_counter(0).push_counter(77).push_counter(u64::MAX);
        let told: Vec<&[u8]> = args.iter().collect();
        let most = u64::MAX.to_string();
        let all: [&[u8]; 3] = [b"0000000000000000", b"0000000000000077", most.as_bytes()];
        assert_eq!(told, all);
    }

    #[test]
    fn arguments_are_added_to_others() {
        let (mut some, mut more) = (Args::default(), Args::default());
        some.push("a\r\n$1\r\nb");
        more.push("c").push("");
        some.append(&more);
        let told: Vec<&[u8]> = some.iter().collect();
        assert_eq!(told, [b"a\r\n$1\r\nb", &b"c"[..], b""]);
        assert_eq!(some.len(), 3);
        some.clear();
        assert_eq!((some.len(), some.iter().count()), (0, 0));
    }
}

#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(unix)]
pub(super) use std::os::fd::OwnedFd;
use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

use deadpool_redis::redis::{RedisError, RedisResult, Value};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::{
    Answered, WireCommand, is_error,
    resp::{self, Parsed},
    wakers::{StreamWakers, ToWake},
};

/// Commands and answers over one connection, in order; cloning it gives another handle to it.
///
/// It has no task of its own: a task that waits for an answer writes all pending output and reads all input, also for
/// the other tasks that wait.
#[derive(Clone)]
pub(crate) struct Pipe(Arc<Mutex<PipeState>>);

/// A connection to a server.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send {
    /// Registers it with the present runtime, instead of the one that it was registered with.
    ///
    /// # Errors
    ///
    /// It stays where it is.
    fn move_here(self: Pin<&mut Self>, spare: &mut Option<OwnedFd>) -> io::Result<()>;
}

/// Systems on which no stream moves have none.
#[cfg(not(unix))]
pub(super) type OwnedFd = std::convert::Infallible;

/// Registers the socket under another descriptor, so that a failure leaves the stream as it is.
///
/// The descriptor before is kept for the way back, which must not fail for want of one.
#[cfg(unix)]
macro_rules! moves {
    ($stream:ty, $socket:ty) => {
        impl Stream for $stream {
            fn move_here(self: Pin<&mut Self>, spare: &mut Option<OwnedFd>) -> io::Result<()> {
                let stream = self.get_mut();
                let socket: $socket = match spare.take() {
                    Some(spare) => spare.into(),
                    None => stream.as_fd().try_clone_to_owned()?.into(),
                };
                let before = std::mem::replace(stream, Self::from_std(socket)?);
                *spare = before.into_std().ok().map(OwnedFd::from);
                Ok(())
            }
        }
    };
}

#[cfg(unix)]
moves!(TcpStream, std::net::TcpStream);
#[cfg(unix)]
moves!(tokio::net::UnixStream, std::os::unix::net::UnixStream);

#[cfg(not(unix))]
impl Stream for TcpStream {
    fn move_here(self: Pin<&mut Self>, _: &mut Option<OwnedFd>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

struct PipeState {
    stream: Pin<Box<dyn Stream>>,
    /// The descriptor under which it will be registered next, once it was moved.
    spare: Option<OwnedFd>,
    /// What is to be sent, and how much of it was.
    output: Vec<u8>,
    sent: usize,
    /// What was received, in the beginning of the buffer.
    input: Vec<u8>,
    received: usize,
    /// How many bytes must be there before they can contain an answer.
    least: usize,
    /// The commands without an answer, and the answers that no caller has taken yet, in order.
    places: VecDeque<AnswerPlace>,
    /// Those of several commands.
    blocks: VecDeque<BlockPlace>,
    /// The number of the first of them.
    first: u64,
    /// The error that broke the connection.
    broken: Option<RedisError>,
    waiting: Arc<StreamWakers>,
}

/// What there is of several commands that have one place.
struct BlockPlace {
    number: u64,
    /// How many answers come before the last one.
    before: usize,
    /// The first error among them.
    cause: Option<Value>,
}

/// What there is of one command.
enum AnswerPlace {
    Open,
    Answered(RedisResult<Answered>),
    /// No caller waits for the answer any more, which still comes.
    Left,
    /// The answer was taken.
    Over,
}

impl Pipe {
    pub(super) fn new(stream: Pin<Box<dyn Stream>>) -> Self {
        Self(Arc::new(Mutex::new(PipeState {
            stream,
            spare: None,
            output: Vec::new(),
            sent: 0,
            input: vec![0; ROOM],
            received: 0,
            least: 0,
            places: VecDeque::new(),
            blocks: VecDeque::new(),
            first: 0,
            broken: None,
            waiting: Arc::default(),
        })))
    }

    /// Sends a command, whose place in the order it takes when it is first polled, and waits for the answer.
    ///
    /// It is written at once, as far as the system takes it.
    ///
    /// # Cancel safety
    ///
    /// Dropping it after it was polled loses only this answer; later commands have their own.
    /// If no other caller waits for an answer, and the system does not take all of the command at once, the next
    /// command sends the rest: a pipe has no task of its own.
    pub(super) const fn ask<'a, C: WireCommand>(&'a self, command: &'a C) -> Asking<'a, C> {
        Asking {
            pipe: self,
            command,
            place: None,
        }
    }

    /// Has the present runtime wake the tasks that wait for answers; returns whether it does.
    ///
    /// They must be polled again after that.
    pub(super) fn move_here(&self) -> bool {
        let mut state = self.state();
        let PipeState { stream, spare, .. } = &mut *state;
        let moved = stream.as_mut().move_here(spare).is_ok();
        // What the runtime before has seen of the stream, this one has not.
        state.waiting.set_due();
        moved
    }

    fn state(&self) -> MutexGuard<'_, PipeState> {
        // A panic under it would leave a connection half read; none is known.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command that was sent, or will be.
pub(super) struct Asking<'a, C> {
    pipe: &'a Pipe,
    command: &'a C,
    place: Option<u64>,
}

impl<C: WireCommand> Future for Asking<'_, C> {
    type Output = RedisResult<Answered>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let pipe = self.pipe;
        let mut state = pipe.state();
        let place = match (self.place, &state.broken) {
            (Some(place), _) => place,
            (None, Some(error)) => return Poll::Ready(Err(error.clone())),
            (None, None) => {
                let place = state.add(self.command);
                self.place = Some(place);
                place
            }
        };
        let mut woken = ToWake::default();
        if !state.is_answered(place) {
            // Before anything is read: when the stream is ready again, it wakes all waiting tasks, whichever has read.
            state.waiting.add(cx.waker());
            woken = state.move_on();
        }
        let answer = state.take(place);
        drop(state);
        woken.wake();
        match answer {
            Some(answer) => {
                self.place = None;
                Poll::Ready(answer)
            }
            None => Poll::Pending,
        }
    }
}

impl<C> Drop for Asking<'_, C> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut state = self.pipe.state();
        state.leave(place);
        // It may have been the only one to write what the system did not take at once.
        let woken = state.move_on();
        drop(state);
        woken.wake();
    }
}

impl PipeState {
    /// Adds a command to what is to be sent; returns its number.
    fn add(&mut self, command: &impl WireCommand) -> u64 {
        command.write(&mut self.output);
        self.places.push_back(AnswerPlace::Open);
        let number = self.first + self.places.len() as u64 - 1;
        if let Some(before) = command.answers_before() {
            let cause = None;
            self.blocks.push_back(BlockPlace {
                number,
                before,
                cause,
            });
        }
        number
    }

    /// Writes and reads as much as it can without waiting; returns the tasks to wake once the state is unlocked.
    fn move_on(&mut self) -> ToWake {
        if self.broken.is_some() {
            return ToWake::default();
        }
        // Nothing has become ready since it was last tried, and nothing was added.
        if !self.waiting.begin() && self.output.is_empty() {
            return self.waiting.end();
        }
        let waker = Waker::from(Arc::clone(&self.waiting));
        let mut cx = Context::from_waker(&waker);
        let written = self.write(&mut cx);
        // A server that hangs up may have answered before.
        let read = self.read(&mut cx);
        if let Err(error) = read.and(written) {
            self.break_off(&error);
        }
        self.waiting.end()
    }

    fn write(&mut self, cx: &mut Context<'_>) -> RedisResult<()> {
        while self.sent < self.output.len() {
            let rest = &self.output[self.sent..];
            match self.stream.as_mut().poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Err(hung_up()),
                Poll::Ready(written) => self.sent += written?,
                Poll::Pending => return Ok(()),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads what is there; if that is too much for one turn, a waiting task continues, behind the other tasks of its
    /// thread.
    fn read(&mut self, cx: &mut Context<'_>) -> RedisResult<()> {
        for _ in 0..READS {
            if self.received == self.input.len() {
                self.input.resize(2 * self.received, 0);
            }
            let mut buffer = ReadBuf::new(&mut self.input[self.received..]);
            match self.stream.as_mut().poll_read(cx, &mut buffer) {
                Poll::Ready(read) => read?,
                Poll::Pending => return Ok(()),
            }
            let length = buffer.filled().len();
            if length == 0 {
                return Err(hung_up());
            }
            self.received += length;
            self.understand()?;
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Reads all answers that are there as a whole.
    fn understand(&mut self) -> RedisResult<()> {
        if self.received < self.least {
            return Ok(());
        }
        let mut at = 0;
        self.least = loop {
            let is_waited_for =
                |place: &&mut AnswerPlace| matches!(place, AnswerPlace::Open | AnswerPlace::Left);
            let rest = &self.input[at..self.received];
            let mut places = self.places.iter_mut().zip(self.first..);
            let place = places.find(|(place, _)| is_waited_for(place));
            let number = place.as_ref().map(|(_, number)| *number);
            let block = self.blocks.front_mut();
            let mut block = block.filter(|block| Some(block.number) == number);
            if let Some(block) = &mut block
                && block.before > 0
                && let Some(length) = resp::status(rest)
            {
                // As a rule, it says that a command waits for those behind it.
                block.before -= 1;
                at += length;
                continue;
            }
            let (answer, length) = match resp::answer(rest)? {
                Parsed::Whole(answer, length) => (answer, length),
                Parsed::Partial(least) if least > LONGEST_ANSWER => return Err(too_long()),
                Parsed::Partial(least) => break least,
            };
            at += length;
            // A server that sends an answer without a request is about to hang up.
            let (place, _) = place.ok_or_else(hung_up)?;
            let mut cause = None;
            if let Some(block) = block {
                if block.before > 0 {
                    block.before -= 1;
                    if block.cause.is_none() && is_error(&answer) {
                        block.cause = Some(answer);
                    }
                    continue;
                }
                cause = self.blocks.pop_front().and_then(|block| block.cause);
            }
            *place = match place {
                AnswerPlace::Left => AnswerPlace::Over,
                _ => AnswerPlace::Answered(Ok(Answered { answer, cause })),
            };
        };
        self.input.copy_within(at..self.received, 0);
        self.received -= at;
        self.sweep();
        Ok(())
    }

    /// Ends the connection with an error, which all waiting tasks get.
    fn break_off(&mut self, error: &RedisError) {
        let error = &final_of(error);
        for place in &mut self.places {
            match place {
                AnswerPlace::Open => *place = AnswerPlace::Answered(Err(error.clone())),
                AnswerPlace::Left => *place = AnswerPlace::Over,
                AnswerPlace::Answered(_) | AnswerPlace::Over => {}
            }
        }
        self.sweep();
        self.broken = Some(error.clone());
        self.waiting.wake_by_ref();
    }

    fn place(&mut self, number: u64) -> Option<&mut AnswerPlace> {
        let index = number.checked_sub(self.first)?;
        self.places.get_mut(usize::try_from(index).ok()?)
    }

    fn is_answered(&mut self, number: u64) -> bool {
        matches!(self.place(number), Some(AnswerPlace::Answered(_)))
    }

    fn take(&mut self, number: u64) -> Option<RedisResult<Answered>> {
        let place = self.place(number)?;
        let AnswerPlace::Answered(_) = place else {
            return None;
        };
        let taken = std::mem::replace(place, AnswerPlace::Over);
        self.sweep();
        match taken {
            AnswerPlace::Answered(answer) => Some(answer),
            _ => None,
        }
    }

    fn leave(&mut self, number: u64) {
        if let Some(place) = self.place(number) {
            *place = match place {
                AnswerPlace::Open => AnswerPlace::Left,
                _ => AnswerPlace::Over,
            };
        }
        self.sweep();
    }

    /// Forgets the first places that are over.
    fn sweep(&mut self) {
        while let Some(AnswerPlace::Over) = self.places.front() {
            self.places.pop_front();
            self.first += 1;
        }
    }
}

/// Returns an error as that of a connection that has ended.
///
/// A system that sends in vain gives up with a timeout, which says the same of a pool's connection that goes on.
fn final_of(error: &RedisError) -> RedisError {
    if error.is_timeout() {
        io::Error::new(io::ErrorKind::ConnectionAborted, error.to_string()).into()
    } else {
        error.clone()
    }
}

fn hung_up() -> RedisError {
    io::Error::from(io::ErrorKind::BrokenPipe).into()
}

fn too_long() -> RedisError {
    let words = "its answer is longer than any that was asked for";
    io::Error::new(io::ErrorKind::InvalidData, words).into()
}

/// How much is read at once, until an answer is longer.
const ROOM: usize = 16 * 1024;

/// How often a connection is read before others have their turn.
const READS: usize = 16;

/// More bytes than any answer has: the longest have some tens of thousands.
const LONGEST_ANSWER: usize = 4 * 1024 * 1024;

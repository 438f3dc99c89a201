//! A wall clock of a server's own.

mod compiler;
mod preload;
#[cfg(all(test, target_os = "linux"))]
mod probe;
mod settings;

use std::{
    io,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    clock::{
        preload::Preload,
        settings::{Setting, SettingsFile},
    },
    error::StartError,
    folder::Folder,
};

/// The wall clock of a server that was started with [`own_clock`](crate::ServerOptions::own_clock).
///
/// It either *follows* the real time at a distance, which is zero at first, or *stands still*.
/// Only this server sees it, and only as its wall clock: its monotonic clock stays real, and so does the timing of its
/// background work.
///
/// A change is in force when the call returns: the next command sees the new time, in `TIME`, in the expiry of keys and
/// in scripts.
/// A command that is being executed at that moment may see a part of the change.
/// The clock can be changed while the server is down or frozen, and a restart does not change it.
///
/// Times and steps are in whole microseconds; a fraction is cut off.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use std::time::Duration;
///
/// use redlock_sandbox::{Server, ServerBinary, ServerOptions};
///
/// let server = Server::start(&ServerBinary::find()?, ServerOptions::default().own_clock())?;
/// let clock = server.clock().ok_or("it was asked for")?;
///
/// clock.set(Duration::from_secs(1_700_000_000))?;
/// server.command(&["SET", "orders/7", "mine", "PX", "30000"])?;
/// clock.advance(Duration::from_millis(29_999))?;
/// assert_eq!(server.command(&["PTTL", "orders/7"])?.as_integer(), Some(1));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Which keys have expired
///
/// A server counts in whole milliseconds of its wall clock, and a key expires only when its last millisecond is over.
/// With `PX n` the key exists for `n` milliseconds after the millisecond of the write, including that one and the last:
/// never for less than `n`, and for up to one more.
/// Nothing expires while a script runs, because the time at which the script began decides.
///
/// The server removes an expired key when a command asks for it, or some time later by itself.
/// Until then, a step backwards brings the key back.
///
/// # The effect of this clock on `INFO`
///
/// `uptime_in_seconds` is the present wall clock less the wall clock at the start.
/// So a step changes it, even to a negative number, and it does not grow on a clock that stands still.
/// It is no reliable sign of a restart, here or on a machine whose clock is corrected.
/// `run_id` changes at each start and at no other time: compare it to detect a restart.
#[derive(Debug)]
pub struct ServerClock {
    preload: Preload,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: SettingsFile,
    // From the real time, in microseconds; kept while the clock stands still.
    distance: i64,
    // Since the epoch, in microseconds; `None` while the clock follows the real time.
    standing: Option<i64>,
}

impl ServerClock {
    /// Returns the clock of a server whose files are in `folder`; it follows the real time at no distance.
    pub(crate) fn create(folder: &Folder) -> Result<Self, StartError> {
        let folder = folder.path().join("clock");
        let preload = Preload::build(&folder)?;
        let file = SettingsFile::create(preload.settings())
            .map_err(|error| StartError::io("create the settings of a clock", error))?;
        let state = State {
            file,
            distance: 0,
            standing: None,
        };
        Ok(Self {
            preload,
            state: Mutex::new(state),
        })
    }

    /// Stops the clock at an instant, given as its distance from the Unix epoch.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] beyond the year 100,000, or the system's error if it refuses a write; the clock
    /// is then unchanged.
    pub fn set(&self, since_epoch: Duration) -> io::Result<()> {
        let instant = micros(since_epoch)?;
        self.state().stand_still_at(instant)
    }

    /// Steps the clock forwards, whether it follows the real time or stands still.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn advance(&self, by: Duration) -> io::Result<()> {
        let by = micros(by)?;
        self.state().step(by)
    }

    /// Steps the clock backwards, whether it follows the real time or stands still.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set), and [`io::ErrorKind::InvalidInput`] if a clock that stands still
    /// would be set to before the epoch.
    pub fn set_back(&self, by: Duration) -> io::Result<()> {
        let by = micros(by)?;
        self.state().step(-by)
    }

    /// Lets a clock that stands still follow the real time again.
    ///
    /// Its distance from the real time is the one that it had before it was stopped: the sum of the steps that were
    /// made while it followed.
    /// This is a step too, in either direction.
    ///
    /// # Errors
    ///
    /// The system's error, if it refuses a write; the clock is then unchanged.
    pub fn follow(&self) -> io::Result<()> {
        let mut state = self.state();
        let distance = state.distance;
        state.follow_at(distance)
    }

    /// Makes `command` start a program with this clock.
    pub(crate) fn give_to(&self, command: &mut Command) {
        self.preload.give_to(command);
    }

    /// Returns whether the process that was started has this clock indeed.
    pub(crate) fn check(&self, pid: u32) -> Result<(), StartError> {
        self.preload.check(pid)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is complete or not made, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn step(&mut self, by: i64) -> io::Result<()> {
        match self.standing {
            Some(instant) => self.stand_still_at(instant + by),
            None => self.follow_at(self.distance + by),
        }
    }

    fn stand_still_at(&mut self, instant: i64) -> io::Result<()> {
        if !(0..=LIMIT).contains(&instant) {
            return Err(out_of_range());
        }
        self.file.publish(Setting::StandingStill(instant))?;
        self.standing = Some(instant);
        Ok(())
    }

    fn follow_at(&mut self, distance: i64) -> io::Result<()> {
        if !(-LIMIT..=LIMIT).contains(&distance) {
            return Err(out_of_range());
        }
        self.file.publish(Setting::Following(distance))?;
        self.distance = distance;
        self.standing = None;
        Ok(())
    }
}

/// At most `LIMIT`, so that sums of two do not overflow.
fn micros(duration: Duration) -> io::Result<i64> {
    i64::try_from(duration.as_micros())
        .ok()
        .filter(|micros| *micros <= LIMIT)
        .ok_or_else(out_of_range)
}

fn out_of_range() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "a server's clock shows times from 1970 to the year 100,000",
    )
}

/// Somewhat less than 100,000 years, in microseconds: a server counts these in 64 bits.
const LIMIT: i64 = 98_000 * 365 * 24 * 60 * 60 * 1_000_000;

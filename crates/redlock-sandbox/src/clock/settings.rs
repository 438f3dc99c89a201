//! The file that tells a server what its wall clock shows.
//!
//! The server has it mapped and reads it at any moment, and no write of several bytes is promised
//! to reach it in one piece.
//! So settings take turns in two places, as `clock/clock.c` says, and only the number of the turn
//! is written where it is read.
//! In Gray code that number changes by one bit, and so by one byte, from each turn to the next:
//! the server sees the old number or the new one.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

/// What a clock shows, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    /// The real time and so much more.
    Following(i64),
    /// So much since the epoch.
    StandingStill(i64),
}

impl Setting {
    fn encode(self) -> [u8; PLACE] {
        let (mode, micros) = match self {
            Self::Following(micros) => (0_u64, micros),
            Self::StandingStill(micros) => (1, micros),
        };
        let mut bytes = [0; PLACE];
        bytes[..WORD].copy_from_slice(&mode.to_ne_bytes());
        bytes[WORD..].copy_from_slice(&micros.to_ne_bytes());
        bytes
    }
}

/// The file, for its only writer.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    file: File,
    // invariant: the turn that the file has, not in Gray code.
    turn: u64,
}

impl SettingsFile {
    /// Creates the file at `path`, with the setting that follows the real time at no distance.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        file.write_all_at(&[0; WORD + 2 * PLACE], 0)?;
        Ok(Self { file, turn: 0 })
    }

    /// Puts `setting` in force, or leaves the one before in force if that fails.
    pub(crate) fn publish(&mut self, setting: Setting) -> io::Result<()> {
        let turn = self.turn + 1;
        let place = WORD + PLACE * usize::from(!turn.is_multiple_of(2));
        self.file.write_all_at(&setting.encode(), place as u64)?;
        self.file.write_all_at(&gray(turn).to_ne_bytes(), 0)?;
        self.turn = turn;
        Ok(())
    }
}

/// Its parity is that of `number`.
fn gray(number: u64) -> u64 {
    number ^ (number >> 1)
}

const WORD: usize = size_of::<u64>();
const PLACE: usize = 2 * WORD;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_turn_changes_one_bit_and_its_parity_says_which_place_is_in_force() {
        for turn in (0..1_000).chain(u64::from(u32::MAX) - 9..u64::from(u32::MAX) + 9) {
            assert_eq!((gray(turn) ^ gray(turn + 1)).count_ones(), 1);
            assert_eq!(u64::from(gray(turn).count_ones()) % 2, turn % 2);
        }
    }

    #[test]
    fn the_setting_in_force_stays_in_its_place_while_the_next_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings");
        let mut file = SettingsFile::create(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), words([0, 0, 0, 0, 0]));
        file.publish(Setting::StandingStill(7)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), words([0b01, 0, 0, 1, 7]));
        file.publish(Setting::Following(-8)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), words([0b11, 0, -8, 1, 7]));
        file.publish(Setting::StandingStill(9)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), words([0b10, 0, -8, 1, 9]));
    }

    fn words(words: [i64; 5]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

use std::{fs, io, path::PathBuf};

/// Accounts, each in a file of its own: the processes have nothing else in common, and nothing else keeps them apart.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    folder: PathBuf,
}

/// How many accounts there are.
pub(crate) const ACCOUNTS: usize = 8;
/// What each of them has at first.
const FIRST: i64 = 1_000;
/// What there is in all.
pub(crate) const TOTAL: i64 = FIRST * ACCOUNTS as i64;

impl Ledger {
    pub(crate) fn at(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { folder }
    }

    /// Gives every account its first money.
    pub(crate) fn open(&self) -> io::Result<()> {
        (0..ACCOUNTS).try_for_each(|account| self.write(account, FIRST))
    }

    pub(crate) fn read(&self, account: usize) -> io::Result<i64> {
        let text = fs::read_to_string(self.folder.join(account.to_string()))?;
        text.parse().map_err(io::Error::other)
    }

    /// Writes a balance atomically: a reader sees the old balance or the new one.
    pub(crate) fn write(&self, account: usize, balance: i64) -> io::Result<()> {
        let written = tempfile::NamedTempFile::new_in(&self.folder)?;
        fs::write(&written, balance.to_string())?;
        written.persist(self.folder.join(account.to_string()))?;
        Ok(())
    }

    /// Adds all accounts up.
    pub(crate) fn total(&self) -> io::Result<i64> {
        (0..ACCOUNTS).map(|account| self.read(account)).sum()
    }
}

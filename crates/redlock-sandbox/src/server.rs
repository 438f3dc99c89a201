//! One server: start, crash, restart, freeze.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use crate::{
    ServerBinary, ServerClock, ServerOptions,
    command::{self, CommandError, Value},
    error::{StartError, StartErrorKind},
    folder::Folder,
    launch::{self, launch},
    port::{self, Port},
    process::Process,
};

/// A server on the loopback interface that ends when this value is dropped, or with this process.
///
/// Its files are in a temporary folder of its own, which is removed at the same time, even if the server is down then.
#[derive(Debug)]
pub struct Server {
    // `None` while the server is down.
    process: Option<Process>,
    binary: ServerBinary,
    options: ServerOptions,
    port: u16,
    // `None` if the caller chose the port.
    claim: Option<Port>,
    clock: Option<ServerClock>,
    // Declared after the process, so that the folder goes when its user is gone.
    folder: Folder,
}

impl Server {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the program cannot be run, ends at once, or does not answer within ten
    /// seconds.
    pub fn start(binary: &ServerBinary, options: ServerOptions) -> Result<Self, StartError> {
        Self::start_on(binary, options, port::free)
    }

    /// Returns the port that the server listens on, or listened on when it was up.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns its address on the loopback interface.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Returns its URL, such as `redis://127.0.0.1:20480`, including the password if there is one.
    pub fn url(&self) -> String {
        let password = self.options.password.as_deref().map(percent_encoded);
        let user = password.map_or_else(String::new, |password| format!(":{password}@"));
        format!("redis://{user}{}", self.address())
    }

    /// Returns the id of its process; `None` while it is down.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Returns its wall clock, if it was started with [one of its own](ServerOptions::own_clock).
    pub fn clock(&self) -> Option<&ServerClock> {
        self.clock.as_ref()
    }

    /// Returns whether its process runs; a frozen process runs.
    pub fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(Process::is_running)
    }

    /// Kills the server as a crash would: it shuts nothing down and writes nothing more.
    ///
    /// A server that is down stays down.
    ///
    /// # Errors
    ///
    /// The system's error, when it refuses the signal.
    pub fn kill(&mut self) -> io::Result<()> {
        match self.process.take() {
            Some(mut process) => process.kill().map(drop),
            None => Ok(()),
        }
    }

    /// Starts the server again on the same port and folder, after a kill if it still runs.
    ///
    /// [`Persistence`](crate::Persistence) decides which data it keeps.
    /// A clock of its own is not changed.
    ///
    /// # Errors
    ///
    /// [`StartError`], as at the first start.
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.kill()
            .map_err(|error| StartError::io("kill the server", error))?;
        self.launch()
    }

    /// Starts the server again on the same port as a new installation, after a kill if it still runs: it has none of the
    /// files that it has written.
    ///
    /// A clock of its own is not changed.
    ///
    /// # Errors
    ///
    /// [`StartError`], as at the first start, or if a file cannot be removed.
    pub fn reinstall(&mut self) -> Result<(), StartError> {
        self.kill()
            .map_err(|error| StartError::io("kill the server", error))?;
        self.folder
            .remove(&WRITTEN)
            .map_err(|error| StartError::io("remove a file", error))?;
        self.launch()
    }

    /// Freezes the server: the system still accepts connections for it, but the server does not answer.
    ///
    /// Its clock goes on, so keys expire in the meantime.
    ///
    /// # Errors
    ///
    /// If the server is down.
    pub fn freeze(&self) -> io::Result<()> {
        self.process()?.freeze()
    }

    /// Lets a frozen server continue; it then answers the requests that it got meanwhile.
    ///
    /// # Errors
    ///
    /// If the server is down.
    pub fn thaw(&self) -> io::Result<()> {
        self.process()?.thaw()
    }

    /// Sends one command and waits up to five seconds for its reply.
    ///
    /// ```
    /// # use redlock_sandbox::{Server, ServerBinary, ServerOptions};
    /// # let server = Server::start(&ServerBinary::find()?, ServerOptions::default())?;
    /// server.command(&["SET", "orders/7", "mine", "PX", "30000"])?;
    /// let left = server.command(&["PTTL", "orders/7"])?.as_integer();
    /// assert!(left.is_some_and(|left| left > 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CommandError`] if there is no reply, or if the reply is an error.
    pub fn command<A: AsRef<[u8]>>(&self, arguments: &[A]) -> Result<Value, CommandError> {
        self.command_within(command::PATIENCE, arguments)
    }

    /// Sends one command and waits up to `limit` for each step to its reply.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if there is no reply, or if the reply is an error.
    pub fn command_within<A: AsRef<[u8]>>(
        &self,
        limit: Duration,
        arguments: &[A],
    ) -> Result<Value, CommandError> {
        let password = self.options.password.as_deref();
        command::send(self.address(), password, arguments, limit)
    }

    fn start_on(
        binary: &ServerBinary,
        options: ServerOptions,
        mut free_port: impl FnMut() -> io::Result<Port>,
    ) -> Result<Self, StartError> {
        let folder = Folder::create()?;
        let clock = options
            .own_clock
            .then(|| ServerClock::create(&folder))
            .transpose()?;
        let mut server = Self {
            process: None,
            binary: binary.clone(),
            options,
            port: 0,
            claim: None,
            clock,
            folder,
        };
        if let Some(port) = server.options.port {
            server.port = port;
            return server.launch().map(|()| server);
        }
        // Another program can take a port after it was found free and before the server binds it.
        let mut attempt = 1;
        loop {
            let port = free_port().map_err(|error| StartError::io("find a free port", error))?;
            server.port = port.number();
            server.claim = Some(port);
            match server.launch() {
                Ok(()) => return Ok(server),
                Err(error) if error.kind() == StartErrorKind::PortTaken && attempt < ATTEMPTS => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn launch(&mut self) -> Result<(), StartError> {
        self.process = Some(launch(
            &self.binary,
            &self.options,
            self.port,
            &self.folder,
            self.clock.as_ref(),
        )?);
        Ok(())
    }

    fn process(&self) -> io::Result<&Process> {
        self.process
            .as_ref()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the server is down"))
    }
}

/// `text` with all but the unreserved characters of RFC 3986 escaped.
pub(crate) fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

const ATTEMPTS: u32 = 16;

/// The files that servers write, by their default names.
const WRITTEN: [&str; 4] = [
    launch::SENTINEL_FILE,
    "nodes.conf",
    "appendonlydir",
    "dump.rdb",
];

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_lost_to_another_between_choice_and_bind_is_replaced() {
        // Another program listens only after the ports were found free.
        let lost = [port::free().unwrap(), port::free().unwrap()];
        let others = [lost[0].number(), lost[1].number()]
            .map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap());
        let mut offers = vec![port::free().unwrap()];
        offers.extend(lost);
        let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
        let server = Server::start_on(&binary, ServerOptions::default(), || {
            Ok(offers.pop().unwrap())
        })
        .unwrap();
        for other in others {
            assert_ne!(server.address(), other.local_addr().unwrap());
        }
        assert!(offers.is_empty());
    }

    #[test]
    fn a_password_is_escaped_in_the_url() {
        assert_eq!(percent_encoded("a/b@c:d é"), "a%2Fb%40c%3Ad%20%C3%A9");
    }
}

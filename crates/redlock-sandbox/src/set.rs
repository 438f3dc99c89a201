//! Several independent servers.

use std::{
    ops::{Index, IndexMut},
    slice, thread,
};

use crate::{Server, ServerBinary, ServerOptions, StartError};

/// Independent servers, started at once: the masters of a lock.
///
/// They do not know each other: no replication, no cluster.
#[derive(Debug)]
pub struct ServerSet(Vec<Server>);

impl ServerSet {
    /// Starts `count` servers with the same options and waits until all of them answer.
    ///
    /// If the options set a port, the first server gets it, and the others get the ports after it.
    ///
    /// # Errors
    ///
    /// The first [`StartError`]; the servers that have started are stopped.
    ///
    /// # Panics
    ///
    /// If the ports after the first one do not suffice for all servers.
    pub fn start(
        binary: &ServerBinary,
        count: usize,
        options: &ServerOptions,
    ) -> Result<Self, StartError> {
        thread::scope(|scope| {
            let starts: Vec<_> = (0..count)
                .map(|index| {
                    let mut options = options.clone();
                    options.port = options.port.map(|first| port_after(first, index));
                    scope.spawn(move || Server::start(binary, options))
                })
                .collect();
            starts
                .into_iter()
                .map(|start| match start.join() {
                    Ok(server) => server,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
                .collect::<Result<_, _>>()
                .map(Self)
        })
    }

    /// Returns the URLs, in the order of the servers.
    pub fn urls(&self) -> Vec<String> {
        self.iter().map(Server::url).collect()
    }

    /// Returns the number of servers, up or down.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the servers.
    pub fn iter(&self) -> slice::Iter<'_, Server> {
        self.0.iter()
    }

    /// Returns the servers, to kill and to restart.
    pub fn iter_mut(&mut self) -> slice::IterMut<'_, Server> {
        self.0.iter_mut()
    }
}

impl Index<usize> for ServerSet {
    type Output = Server;

    fn index(&self, index: usize) -> &Server {
        &self.0[index]
    }
}

impl IndexMut<usize> for ServerSet {
    fn index_mut(&mut self, index: usize) -> &mut Server {
        &mut self.0[index]
    }
}

impl<'a> IntoIterator for &'a ServerSet {
    type Item = &'a Server;
    type IntoIter = slice::Iter<'a, Server>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut ServerSet {
    type Item = &'a mut Server;
    type IntoIter = slice::IterMut<'a, Server>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

fn port_after(first: u16, index: usize) -> u16 {
    u16::try_from(index)
        .ok()
        .and_then(|index| first.checked_add(index))
        .expect("a port for each server")
}

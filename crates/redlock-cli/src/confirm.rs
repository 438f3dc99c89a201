//! The question before what cannot be undone.

use std::io::{self, BufRead, IsTerminal};

use crate::output::Output;

/// Asks on the terminal; where there is none, the answer is no.
pub(crate) async fn is_confirmed(question: &str, output: Output) -> io::Result<bool> {
    if output.is_json() || !io::stdin().is_terminal() {
        return Ok(false);
    }
    output.line(question)?;
    // On a blocking thread, so that a signal interrupts the wait for input.
    let typed = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let line = typed.await.map_err(io::Error::other)??;
    Ok(line.trim() == "yes")
}

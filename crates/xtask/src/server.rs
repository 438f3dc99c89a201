//! A server program for the tests: found, or installed where that needs no question to anyone.

use std::env;

use redlock_sandbox::{NotFound, SERVER_VARIABLE, ServerBinary};

use crate::{install, step::Failed};

/// Finds a server program, and installs one if there is none and this machine lets us.
pub(crate) fn ensure() -> Result<ServerBinary, Failed> {
    let missing = match ServerBinary::find() {
        Ok(found) => return Ok(found),
        Err(missing) => missing,
    };
    // If one is named that is not there, no installation makes that right.
    if env::var_os(SERVER_VARIABLE).is_some() || !install::debian("server", &["redis-server"]) {
        return Err(explain(&missing));
    }
    ServerBinary::find().map_err(|missing| explain(&missing))
}

fn explain(missing: &NotFound) -> Failed {
    Failed(format!("the tests need a server: {missing}"))
}

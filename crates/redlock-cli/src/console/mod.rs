//! `redlock console`: the page of the console, for a browser.

mod gate;

use std::{net::SocketAddr, path::PathBuf};

use axum::Router;
use redlock_console::{Access, Console, router};
use redlock_core::Redlock;

pub(crate) use self::gate::Gate;
use crate::{
    connection::ConnectionArgs,
    context::CommandContext,
    exit::{CommandError, CommandResult},
    http, keys, probe,
};

/// The arguments of `console`.
#[derive(clap::Args, Debug)]
pub(crate) struct ConsoleArgs {
    /// Answers HTTP at this address; port 0 is one that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Lets everybody with access act: pause, resume, run and stop jobs, release keys
    #[arg(long)]
    operate: bool,

    /// The prefix of the page's address, such as /ops/locks, if a proxy in front leaves it there
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = base_path)]
    base_path: String,

    /// A file with the token that opens the page, which it needs at an address that other machines reach: a line of at
    /// least 16 characters that other users of this machine may not read
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// The scheme and the host under which browsers know the page, as in an address, if a proxy has others; may be repeated
    #[arg(long, value_name = "URL")]
    origin: Vec<String>,

    /// The name of an election to show; may be repeated
    #[arg(long, value_name = "NAME")]
    election: Vec<String>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Serves the page until a signal ends it.
pub(crate) async fn run(args: ConsoleArgs, context: &CommandContext) -> CommandResult {
    let gate = Gate::new(args.token_file.as_deref(), args.origin.clone())?;
    if !gate.is_enough_for(args.listen) {
        return Err(CommandError::wrong(NEEDS_TOKEN));
    }
    let settings = args.connection.settings().await?;
    let output = context.output;
    // The client makes the namespace known to the nodes, so this comes before it.
    let places = probe::connect(&settings).await;
    if let Some(why) = keys::unknown_namespace(&places, &settings).await {
        output.progress(&why);
    }
    drop(places);
    let client = context.client(settings.builder().connect_lazily()).await?;
    let access = match args.operate {
        true => Access::Operate,
        false => Access::Read,
    };
    let page = page(client, access, &args.origin, &args.election)?;
    let base = &*args.base_path;
    let page = gate.around(base, page);
    let routes = match base {
        "" => page,
        // As a service, it is asked for the prefix with a slash at its end, too.
        _ => Router::new().nest_service(base, page),
    };
    let (listener, address) = http::listen(args.listen).await?;
    let port = address.port();
    let is_everywhere = address.ip().is_unspecified();
    let url = match is_everywhere {
        true => format!("http://localhost:{port}{base}/"),
        false => format!("http://{address}{base}/"),
    };
    if is_everywhere {
        output.progress(
            "it listens at all addresses of this machine: elsewhere, put one of them, or its name, in place of localhost",
        );
    }
    if output.is_json() {
        output.json(&serde_json::json!({"url": url, "operate": args.operate}))?;
    } else {
        output.plain(&url)?;
    }
    match http::serve(&listener, routes).await {}
}

/// Returns the routes of the console of a client.
pub(crate) fn page(
    client: Redlock,
    access: Access,
    origins: &[String],
    elections: &[String],
) -> Result<Router, CommandError> {
    let console = Console::builder(client).access(move |_| access);
    let console = console.origins(origins).elections(elections).build();
    let console = console.map_err(|error| CommandError::wrong(error.to_string()))?;
    Ok(router(console))
}

/// Reads a prefix of addresses, without the slash at its end.
fn base_path(text: &str) -> Result<String, String> {
    if !text.starts_with('/') {
        return Err("it must begin with a slash, as in /ops/locks".to_owned());
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    if !text.bytes().all(is_plain) || text.contains("//") || text.contains("/.") {
        return Err(
            "it may have letters, digits, -, ., _, ~ and single slashes, as in /ops/locks"
                .to_owned(),
        );
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// The words for an address at which anybody could look, or act.
pub(crate) const NEEDS_TOKEN: &str = "other machines reach this address, and may not see the page without a token: give --token-file FILE, or \
     listen at 127.0.0.1, and let a proxy with authentication pass requests on";

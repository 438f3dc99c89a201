//! `redlock completions` and `redlock man`: made from what can be typed.

use std::{io, path::PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{
    context::Context,
    exit::{Exit, Failure},
};

/// The arguments of `completions`.
#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// The arguments of `man`.
#[derive(clap::Args, Debug)]
pub(crate) struct ManArgs {
    /// The verb; the command as a whole without one
    verb: Option<String>,

    /// Writes all pages into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    dir: Option<PathBuf>,
}

/// Prints completions of a command for a shell.
pub(crate) fn completions(
    args: &CompletionsArgs,
    mut command: Command,
    context: &Context,
) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "redlock", &mut text);
    print(&text, context)
}

/// Prints a manual page, or writes all of them.
pub(crate) fn man(
    args: &ManArgs,
    mut command: Command,
    context: &Context,
) -> Result<Exit, Failure> {
    if let Some(folder) = &args.dir {
        let written = clap_mangen::generate_to(command, folder);
        let cannot = |error: io::Error| Failure::wrong(format!("{}: {error}", folder.display()));
        written.map_err(cannot)?;
        return Ok(Exit::Yes);
    }
    command.build();
    let mut text = Vec::new();
    let page = match &args.verb {
        None => Man::new(command),
        Some(verb) => {
            let found = command.find_subcommand(verb).cloned();
            let found =
                found.ok_or_else(|| Failure::wrong(format!("{verb} is no verb of redlock")))?;
            Man::new(found)
        }
    };
    page.render(&mut text)?;
    print(&text, context)
}

fn print(text: &[u8], context: &Context) -> Result<Exit, Failure> {
    context
        .output
        .plain(String::from_utf8_lossy(text).trim_end())?;
    Ok(Exit::Yes)
}

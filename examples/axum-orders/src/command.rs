use std::path::PathBuf;

use crate::{server::Options, show::Show};

/// What the command line asks for.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Command {
    /// Everything, in processes of its own.
    Show(Show),
    /// One replica.
    Serve(Options),
    /// The load, on replicas that run already.
    Load(Vec<String>),
}

pub(crate) const USAGE: &str = "\
usage: axum-orders                      three replicas, their load, and what goes wrong without the layer
       axum-orders --without-layer      the load on replicas without the layer
       axum-orders --without-fence      a replica that is stopped too long, on a database that compares no tokens
       axum-orders serve [--port 3000] [--database axum-orders.db] [--without-layer] [--without-fence]
                         [--dangerous-bless]
       axum-orders load http://127.0.0.1:3000...";

impl Command {
    /// `None` is a mistake of usage.
    pub(crate) fn from_arguments(arguments: &[String]) -> Option<Self> {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match &arguments[..] {
            [] => Some(Self::Show(Show::Whole)),
            ["--without-layer"] => Some(Self::Show(Show::WithoutLayer)),
            ["--without-fence"] => Some(Self::Show(Show::WithoutFence)),
            ["serve", options @ ..] => serve(options).map(Self::Serve),
            ["load", replicas @ ..] if !replicas.is_empty() => {
                let replica = |url: &&str| url.trim_end_matches('/').to_owned();
                Some(Self::Load(replicas.iter().map(replica).collect()))
            }
            _ => None,
        }
    }
}

fn serve(arguments: &[&str]) -> Option<Options> {
    let mut options = Options {
        port: 3000,
        database: PathBuf::from("axum-orders.db"),
        layer: true,
        fence: true,
        bless: false,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--port" => options.port = arguments.next()?.parse().ok()?,
            "--database" => options.database = arguments.next()?.into(),
            "--without-layer" => options.layer = false,
            "--without-fence" => options.fence = false,
            "--dangerous-bless" => options.bless = true,
            _ => return None,
        }
    }
    Some(options)
}

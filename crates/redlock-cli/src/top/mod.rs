//! `redlock top`: what an operator looks at during an incident, as it is now.

mod view;

use std::{
    io::{self, IsTerminal},
    thread,
    time::Duration,
};

use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
};
use redlock_console::{
    Snapshot,
    look::sample::{Sampler, SamplerOptions},
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{
    clock::duration,
    connection::{ConnectionArgs, NodeSettings},
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
};

/// The arguments of `top`.
#[derive(clap::Args, Debug)]
pub(crate) struct TopArgs {
    /// The beginning of the names of the resources to show
    #[arg(default_value = "")]
    prefix: String,

    /// The name of an election to show; may be repeated
    #[arg(long, value_name = "NAME")]
    election: Vec<String>,

    /// The time between two looks at the nodes
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    every: Duration,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Shows the nodes and the keys until the user presses q; with JSON, writes a line for each look.
pub(crate) async fn run(args: TopArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let is_json = context.output.is_json();
    if !is_json && !io::stdout().is_terminal() {
        let message = "top needs a terminal; for a program: redlock top --json, redlock ls --json";
        return Err(CommandError::wrong(message));
    }
    let every = args.every.max(SHORTEST);
    let client = context.client(settings.builder().connect_lazily()).await?;
    let mut options = SamplerOptions::default();
    (options.prefix, options.elections) = (args.prefix, args.election);
    let mut sampler = Sampler::new(client, settings.clone(), options);
    if !is_json {
        return show(&mut sampler, &settings, every).await;
    }
    loop {
        context.output.json(&sampler.look().await)?;
        tokio::time::sleep(every).await;
    }
}

/// Draws each look as soon as it was taken, and handles keys meanwhile.
async fn show(sampler: &mut Sampler, settings: &NodeSettings, every: Duration) -> CommandResult {
    let mut screen = Screen::open()?;
    let mut sample = None;
    loop {
        screen.draw(sample.as_ref(), settings)?;
        sample = tokio::select! {
            looked = sampler.look() => Some(looked),
            ended = screen.wait_for_the_end(sample.as_ref(), settings) => {
                ended?;
                return Ok(Exit::Yes);
            }
        };
        screen.draw(sample.as_ref(), settings)?;
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            ended = screen.wait_for_the_end(sample.as_ref(), settings) => {
                ended?;
                return Ok(Exit::Yes);
            }
        }
    }
}

/// The terminal, which is as it was before when this is dropped.
struct Screen {
    terminal: DefaultTerminal,
    /// What is typed, and what becomes of the window.
    events: UnboundedReceiver<io::Result<Event>>,
}

impl Screen {
    fn open() -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        let (tell, events) = unbounded_channel();
        // On another thread: a read from a terminal that is gone may never end, and signals must be handled meanwhile.
        thread::spawn(move || {
            loop {
                let event = event::read();
                let is_over = event.is_err();
                if tell.send(event).is_err() || is_over {
                    return;
                }
            }
        });
        Ok(Self { terminal, events })
    }

    fn draw(&mut self, sample: Option<&Snapshot>, settings: &NodeSettings) -> io::Result<()> {
        self.terminal
            .draw(|frame| view::draw(frame, sample, settings))
            .map(drop)
    }

    /// Waits until the user presses a key that ends the view.
    async fn wait_for_the_end(
        &mut self,
        sample: Option<&Snapshot>,
        settings: &NodeSettings,
    ) -> io::Result<()> {
        while let Some(event) = self.events.recv().await {
            match event? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers == KeyModifiers::CONTROL => {
                        return Ok(());
                    }
                    _ => {}
                },
                Event::Resize(..) => self.draw(sample, settings)?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// More often would be a load of its own: each look scans the keys of each node.
const SHORTEST: Duration = Duration::from_millis(200);

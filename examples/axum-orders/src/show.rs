//! What happens, in order.

use std::path::PathBuf;

use tempfile::TempDir;

use stage::{BoxError, Nodes, Story};

use crate::{answers, books::Books, late, load, replica::Replica, server::NAMESPACE, store::Store};

/// How much of it is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Show {
    Whole,
    /// Only the load, on replicas without the layer, judged as if they had it.
    WithoutLayer,
    /// Only the replica that is stopped too long, judged as if the database compared tokens.
    WithoutFence,
}

const REPLICAS: usize = 3;

/// Runs the show; what it returns ends its last line.
pub(crate) async fn run(show: Show) -> Result<String, BoxError> {
    let story = Story::begin();
    match show {
        Show::Whole => whole(story).await,
        Show::WithoutLayer => {
            let books = without_layer(story).await?;
            if books.are_right() {
                Ok(format!("by chance, without the layer: {books}"))
            } else {
                Err(format!("without the layer: {books}").into())
            }
        }
        Show::WithoutFence => {
            let nodes = Nodes::choose(NAMESPACE, story).await?;
            let service = Service::start(&nodes.environment, &["--without-fence"], story).await?;
            let late = late::run(&service.replicas, story).await?;
            service.stop()?;
            let refused = late.verdict()?;
            Ok(format!("by chance, without the fence: {refused}"))
        }
    }
}

async fn whole(story: Story) -> Result<String, BoxError> {
    let nodes = Nodes::choose(NAMESPACE, story).await?;
    let service = Service::start(&nodes.environment, &[], story).await?;
    let urls = service.urls();
    story.tell(format_args!("1. the load, with the layer"));
    let books = load::run(&urls, story).await?;
    if !books.are_right() {
        return Err(format!("with the layer: {books}").into());
    }
    story.tell(format_args!("2. a replica is stopped inside of a handler"));
    let late = late::run(&service.replicas, story).await?;
    let late = late.verdict()?;
    story.tell(format_args!("3. what clients see when they are refused"));
    answers::conflict(&urls, story).await?;
    let unavailable = answers::unavailable(&nodes, &urls, story).await?;
    service.stop()?;
    drop(nodes);

    story.tell(format_args!("4. the same load, without the layer"));
    let careless = without_layer(story).await?;
    if !is_telling(&careless) {
        return Err(format!(
            "without the layer it came right this time, which proves nothing: {careless}"
        )
        .into());
    }
    Ok(format!(
        "{books}; {late}; 409 and {unavailable} told as problem+json; without the layer {} paid twice, {} oversold, \
         {} mixed",
        careless.paid_twice, careless.oversold, careless.mixed
    ))
}

/// Runs the load without the layer, again if it came right by chance: a busy machine may let the replicas run one
/// after the other.
async fn without_layer(story: Story) -> Result<Books, BoxError> {
    let service = Service::start(&[], &["--without-layer"], story).await?;
    let mut books = load::run(&service.urls(), story).await?;
    for _ in 1..ATTEMPTS {
        if !is_telling(&books) {
            books = load::run(&service.urls(), story).await?;
        }
    }
    service.stop()?;
    Ok(books)
}

/// Whether both kinds of mistakes were made.
fn is_telling(books: &Books) -> bool {
    books.paid_twice > 0 && books.oversold > 0
}

const ATTEMPTS: usize = 3;

/// The replicas over one database that goes with them.
struct Service {
    // Dropped before the folder.
    replicas: Vec<Replica>,
    _folder: TempDir,
}

impl Service {
    async fn start(
        environment: &[(&'static str, String)],
        flags: &[&str],
        story: Story,
    ) -> Result<Self, BoxError> {
        let folder = tempfile::Builder::new().prefix("axum-orders-").tempdir()?;
        let database: PathBuf = folder.path().join("orders.db");
        // So that the replicas do not all make the tables.
        Store::open(&database).await?.close().await;
        let mut environment = environment.to_vec();
        environment.push(("REDLOCK_TTL", LEASE.to_owned()));
        if std::env::var_os("RUST_LOG").is_none() {
            environment.push(("RUST_LOG", "axum_orders=warn".to_owned()));
        }
        let start = || Replica::start(&database, &environment, flags);
        let replicas = futures_util::future::try_join_all((0..REPLICAS).map(|_| start())).await?;
        let service = Self {
            replicas,
            _folder: folder,
        };
        story.tell(format_args!(
            "{REPLICAS} replicas over one database listen on {}{}",
            service.urls().join(", "),
            flags
                .iter()
                .map(|flag| format!(" ({flag})"))
                .collect::<String>()
        ));
        Ok(service)
    }

    fn urls(&self) -> Vec<String> {
        self.replicas
            .iter()
            .map(|replica| replica.url.clone())
            .collect()
    }

    fn stop(self) -> Result<(), BoxError> {
        self.replicas.into_iter().try_for_each(Replica::stop)
    }
}

/// So short that the story is: a replica that is gone keeps others out for so long.
const LEASE: &str = "2s";

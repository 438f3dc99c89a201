//! The load: many clients that want the same few things at the same time, through all replicas.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use stage::{BoxError, Story};

use crate::{
    books::Books,
    client::{Answer, Http},
};

/// Customers; each presses the button six times: twice at each of three replicas.
const ORDERS: usize = 10;
const PRESSES: usize = 6;

/// Products that more customers want than there are.
const PRODUCTS: usize = 3;
const STOCK: i64 = 10;
const CUSTOMERS: usize = 30;

/// Tenants; each sends its catalogue three times.
const TENANTS: usize = 3;
const IMPORTS: usize = 3;
const ARTICLES: usize = 60;

/// Runs the load on replicas that run already, and says what came of it.
pub(crate) async fn judge(replicas: &[String]) -> Result<String, BoxError> {
    let books = run(replicas, Story::begin()).await?;
    if books.are_right() {
        Ok(books.to_string())
    } else {
        Err(books.to_string().into())
    }
}

/// Runs the load and reads in the end what is in the books.
pub(crate) async fn run(replicas: &[String], story: Story) -> Result<Books, BoxError> {
    let http = Http::new();
    let ids = Ids::new();
    let first = &replicas[0];
    for index in 0..ORDERS {
        let url = format!("{first}/orders/{}", ids.nth(index));
        http.put(&url, &json!({ "amount": 4_200 })).await?;
    }
    for index in 0..PRODUCTS {
        let url = format!("{first}/products/{}", ids.nth(index));
        http.put(&url, &json!({ "stock": STOCK })).await?;
    }

    let began = Instant::now();
    let mut clients = JoinSet::new();
    for (number, (path, body)) in requests(ids).into_iter().enumerate() {
        let http = http.clone();
        let url = format!("{}{path}", replicas[number % replicas.len()]);
        let offset = Duration::from_millis(100) * u32::try_from(number % 8)?;
        clients.spawn(async move { http.post_patiently(&url, &body, offset).await });
    }
    let (mut requests, mut returns) = (0, 0);
    let mut books = Books::default();
    while let Some(ended) = clients.join_next().await {
        let (answer, came_back) = ended??;
        requests += 1;
        returns += came_back;
        if !is_final(&answer) {
            books.failed += 1;
            story.tell(format_args!("a client gave up at: {answer}"));
        }
    }

    for index in 0..ORDERS {
        let url = format!("{first}/orders/{}", ids.nth(index));
        books.order(http.get(&url).await?);
    }
    for index in 0..PRODUCTS {
        let url = format!("{first}/products/{}", ids.nth(index));
        books.product(http.get(&url).await?, STOCK);
    }
    for index in 0..TENANTS {
        let url = format!("{first}/tenants/{}/catalogue", ids.nth(index));
        books.catalogue(http.get(&url).await?, ARTICLES);
    }
    story.tell(format_args!(
        "{requests} clients were answered in {:.1} s, after coming back {returns} times as they were told to",
        began.elapsed().as_secs_f64()
    ));
    story.tell(format_args!("the books: {books}"));
    Ok(books)
}

/// Returns the requests, as path and body; all requests for one thing are in a row.
fn requests(ids: Ids) -> Vec<(String, Value)> {
    let mut requests = Vec::new();
    for index in 0..ORDERS {
        let path = format!("/orders/{}/pay", ids.nth(index));
        requests.extend(vec![(path, json!({ "card": "usual" })); PRESSES]);
    }
    for index in 0..PRODUCTS {
        let path = format!("/products/{}/reservations", ids.nth(index));
        requests.extend(vec![(path, Value::Null); CUSTOMERS]);
    }
    for index in 0..TENANTS {
        let path = format!("/tenants/{}/imports", ids.nth(index));
        requests.extend(vec![(path, catalogue(ARTICLES)); IMPORTS]);
    }
    requests
}

/// What a tenant sends.
pub(crate) fn catalogue(articles: usize) -> Value {
    let articles = (1..=articles).map(|number| format!("article {number}"));
    json!({ "articles": articles.collect::<Vec<_>>() })
}

/// Whether the request was done, or need not be any more: paid already, or sold out.
fn is_final(answer: &Answer) -> bool {
    match answer.status {
        StatusCode::OK | StatusCode::CREATED => true,
        StatusCode::CONFLICT => answer.retry_after().is_none(),
        _ => false,
    }
}

/// Numbers that no other run uses, because other runs may share the databases and the nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids(i64);

impl Ids {
    pub(crate) fn new() -> Self {
        let (random, ..) = uuid::Uuid::new_v4().as_fields();
        Self(i64::from(random) * 1_000)
    }

    pub(crate) fn nth(self, index: usize) -> i64 {
        self.0 + i64::try_from(index).unwrap_or_default()
    }
}

use redlock_core::FencingToken;

use super::{Store, StoreError, orders::Order, products::Product};

/// The tokens of an older and of a newer lease.
fn tokens() -> [Option<FencingToken>; 2] {
    [7, 8].map(FencingToken::new)
}

/// A database of its own, in a folder that goes with it.
async fn store() -> (Store, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("orders.db")).await.unwrap();
    (store, folder)
}

fn is_stale<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Stale))
}

#[tokio::test]
async fn an_older_lease_cannot_pay_once_a_newer_one_has_read() {
    let (store, _folder) = store().await;
    let [older, newer] = tokens();
    store.put_order(1, 500).await.unwrap();
    store.take_order(1, older).await.unwrap();
    store.take_order(1, newer).await.unwrap();
    assert!(is_stale(&store.pay_order(1, 500, older).await));
    assert!(!store.order(1).await.unwrap().paid);
    store.pay_order(1, 500, newer).await.unwrap();
    assert!(is_stale(&store.pay_order(1, 500, older).await));
    assert!(is_stale(&store.take_order(1, older).await));
    let paid = Order {
        amount: 500,
        paid: true,
        payments: 1,
    };
    assert_eq!(store.order(1).await.unwrap(), paid);
}

#[tokio::test]
async fn an_older_lease_cannot_reserve_once_a_newer_one_has_read() {
    let (store, _folder) = store().await;
    let [older, newer] = tokens();
    store.put_product(1, 1).await.unwrap();
    store.take_product(1, older).await.unwrap();
    store.take_product(1, newer).await.unwrap();
    assert!(is_stale(&store.reserve(1, 0, older).await));
    store.reserve(1, 0, newer).await.unwrap();
    assert!(is_stale(&store.take_product(1, older).await));
    let left = Product {
        stock: 0,
        reserved: 1,
    };
    assert_eq!(store.product(1).await.unwrap(), left);
}

#[tokio::test]
async fn an_older_import_adds_nothing_to_a_newer_one() {
    let (store, _folder) = store().await;
    let [older, newer] = tokens();
    let articles = ["pen".to_owned(), "ink".to_owned()];
    let old = store.begin_import(1, older).await.unwrap();
    store.import_articles(old, &articles).await.unwrap();
    store.import_articles(old, &articles).await.unwrap();
    assert_eq!(store.catalogue(1).await.unwrap(), (4, 1));
    let new = store.begin_import(1, newer).await.unwrap();
    assert!(is_stale(&store.import_articles(old, &articles).await));
    assert!(is_stale(&store.begin_import(1, older).await));
    store.import_articles(new, &articles).await.unwrap();
    assert_eq!(store.catalogue(1).await.unwrap(), (2, 1));
    // Another tenant has a fence of its own.
    store.begin_import(2, older).await.unwrap();
}

#[tokio::test]
async fn what_is_not_there_is_not_stale() {
    let (store, _folder) = store().await;
    let [token, _] = tokens();
    let order = store.take_order(1, token).await;
    assert!(matches!(order, Err(StoreError::NotFound)), "{order:?}");
    let product = store.take_product(1, token).await;
    assert!(matches!(product, Err(StoreError::NotFound)), "{product:?}");
}

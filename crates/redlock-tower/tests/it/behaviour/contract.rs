//! The contract of `tower_service::Service`.

use std::pin::pin;

use axum::body::Body;
use bytes::Bytes;
use futures_util::poll;
use http::{Request, Response};
use http_body_util::Full;
use redlock_core::Redlock;
use redlock_tower::{GenericLayer, HeaderKey, RedlockLayer, RedlockService};
use tower::{Layer, Service, ServiceExt};
use tower_test::mock::{self, Mock};

use crate::behaviour::kit::{
    KEY, Nodes, by_header, in_time, is_free, let_others_run, request, virtual_client,
};

type Req = Request<Body>;
type Res = Response<Full<Bytes>>;
type Handle = mock::Handle<Req, Res>;

fn mock_service(redlock: &Redlock) -> (RedlockService<Mock<Req, Res>, HeaderKey>, Handle) {
    let (inner, handle) = mock::pair();
    (
        RedlockLayer::new(redlock.clone(), by_header()).layer(inner),
        handle,
    )
}

#[tokio::test(start_paused = true)]
async fn the_inner_service_can_be_looked_at_changed_and_taken_out() {
    let redlock = virtual_client(&Nodes::new()).await;
    let mut http = RedlockLayer::new(redlock.clone(), by_header()).layer(1);
    *http.get_mut() += 1;
    assert_eq!((*http.get_ref(), http.into_inner()), (2, 2));
    let mut other = GenericLayer::new(redlock, by_header()).layer(1);
    *other.get_mut() += 1;
    assert_eq!((*other.get_ref(), other.into_inner()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn it_is_ready_while_the_inner_service_is_not() {
    let (mut service, mut handle) = mock_service(&virtual_client(&Nodes::new()).await);
    handle.allow(0);
    assert!(poll!(pin!(service.ready())).is_ready());
}

/// The mock panics when it is called without having been made ready.
#[tokio::test(start_paused = true)]
async fn the_inner_service_is_made_ready_under_the_lock_and_then_called() {
    let nodes = Nodes::new();
    let (mut service, mut handle) = mock_service(&virtual_client(&nodes).await);
    handle.allow(0);

    let service = in_time(service.ready()).await.unwrap();
    let mut response = pin!(service.call(request(KEY)));
    let call = async {
        nodes.have_keys(1).await;
        let_others_run().await;
        {
            let mut call = pin!(handle.next_request());
            assert!(
                poll!(call.as_mut()).is_pending(),
                "called before it was ready"
            );
        }
        handle.allow(1);
        let (_, answer) = handle.next_request().await.unwrap();
        answer.send_response(Response::new(Full::default()));
    };
    let (response, ()) = in_time(async { tokio::join!(response.as_mut(), call) }).await;
    assert_eq!(response.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_clone_of_a_ready_service_can_be_called_without_being_made_ready() {
    let redlock = virtual_client(&Nodes::new()).await;
    let (mut service, mut handle) = mock_service(&redlock);
    service.ready().await.unwrap();
    let response = service.clone().call(request(KEY));
    let answer = async {
        let (_, answer) = handle.next_request().await.unwrap();
        answer.send_response(Response::new(Full::default()));
    };
    assert!(tokio::join!(response, answer).0.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_inner_readiness_is_the_outcome_and_releases() {
    let redlock = virtual_client(&Nodes::new()).await;
    let (mut service, mut handle) = mock_service(&redlock);
    handle.send_error("worn out");
    let mut response = pin!(service.call(request(KEY)));
    assert_eq!(response.as_mut().await.unwrap_err().to_string(), "worn out");
    // The future is still there, and the lock is not.
    assert!(is_free(&redlock, KEY).await);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_inner_call_is_the_outcome_and_releases() {
    let redlock = virtual_client(&Nodes::new()).await;
    let (mut service, mut handle) = mock_service(&redlock);
    let mut response = pin!(service.call(request(KEY)));
    let answer = async { handle.next_request().await.unwrap().1.send_error("no") };
    let (outcome, ()) = tokio::join!(response.as_mut(), answer);
    assert_eq!(outcome.unwrap_err().to_string(), "no");
    assert!(is_free(&redlock, KEY).await);
}

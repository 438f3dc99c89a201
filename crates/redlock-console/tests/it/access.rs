//! Access, for each route and method, and requests of other sites.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
};
use redlock_console::{Access, Console, router};
use redlock_core::Redlock;
use redlock_sandbox::ServerOptions;

use crate::kit::{answer, get, in_memory, post, request, send, servers};

const LOOKS: [&str; 9] = [
    "/overview",
    "/overview?q=order&kind=shared",
    "/snapshot",
    "/events",
    "/console.css",
    "/console.js",
    "/key?name=order:7",
    "/job?name=billing/day",
    "/actions/backfill/count?job=billing/day&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z",
];

const ACTIONS: [&str; 9] = [
    "pause", "resume", "trigger", "rerun", "stop", "backfill", "cancel", "forget", "release",
];

async fn with_access(access: Access) -> Router {
    let client = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    let console = Console::builder(client).access(move |_| access);
    router(console.build().unwrap())
}

#[tokio::test]
async fn without_access_every_route_is_refused_whatever_the_method() {
    let routes = with_access(Access::None).await;
    for path in LOOKS.iter().chain(&["/nowhere", "/actions/pause"]) {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
            let refused = answer(&routes, request(method, path)).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn without_a_hook_every_look_is_answered_and_every_action_is_refused() {
    let (routes, _console) = in_memory().await;
    for path in LOOKS {
        // The stream has no end, and nothing is remembered of the job.
        let looked = send(&routes, request("GET", path)).await;
        let is_count = path.starts_with("/actions");
        let status = looked.status();
        assert!(
            status == StatusCode::OK || is_count && status == StatusCode::UNPROCESSABLE_ENTITY,
            "{path}: {status}"
        );
        assert_eq!(
            looked.headers()["x-content-type-options"],
            "nosniff",
            "{path}"
        );
    }
    for action in ACTIONS {
        let path = format!("/actions/{action}");
        let refused = post(&routes, &path, "job=billing/day&key=order:7&reason=r").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{action}");
        assert!(refused.text.contains("only shows"), "{refused:?}");
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
        for path in ["/", "/snapshot", "/nowhere"] {
            let refused = answer(&routes, request(method, path)).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn every_answer_has_the_policy_that_lets_no_foreign_script_in() {
    let routes = with_access(Access::Operate).await;
    for path in [
        "/",
        "/console.js",
        "/nowhere",
        "/snapshot?kind=none",
        "/key?name=",
    ] {
        let looked = get(&routes, path).await;
        let policy = looked.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "img-src 'self' data:",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{path}: {part} is not in {policy:?}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}

#[tokio::test]
async fn an_action_from_another_site_is_refused_unless_its_origin_is_named() {
    let client = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    let console = Console::builder(client).access(|_| Access::Operate);
    let console = console
        .origins(["https://ops.example.com"])
        .build()
        .unwrap();
    let routes = router(console);
    let act = async |headers: &[(&str, &str)]| {
        let mut act = Request::builder().method("POST").uri("/actions/resume");
        for (name, value) in headers {
            act = act.header(*name, *value);
        }
        let kind = "application/x-www-form-urlencoded";
        let act = act
            .header("content-type", kind)
            .header("host", "ops.internal:8080");
        let form = Body::from("job=billing/day&reason=r");
        answer(&routes, act.body(form).unwrap()).await
    };
    let (site, origin) = ("sec-fetch-site", "origin");
    for headers in [
        &[(site, "cross-site"), (origin, "https://evil.example")][..],
        &[(site, "same-site"), (origin, "https://other.example.com")],
        &[(site, "cross-site")],
        &[(origin, "https://evil.example")],
        &[(origin, "null")],
    ] {
        let refused = act(headers).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{headers:?}");
        assert!(refused.text.contains("another site"), "{refused:?}");
    }
    // They get to the action, which knows no such job.
    for headers in [
        &[(site, "same-origin")][..],
        &[(origin, "http://ops.internal:8080")],
        &[(site, "cross-site"), (origin, "https://ops.example.com")],
        &[],
    ] {
        let refused = act(headers).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{headers:?}"
        );
        assert!(
            refused
                .text
                .contains("nothing is remembered of billing/day"),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn of_two_viewers_the_one_acts_that_may_and_only_it_sees_buttons() {
    let (_servers, client) = servers(3, &ServerOptions::default()).await;
    redlock_cron::pause(&client, "billing", "day")
        .await
        .unwrap();
    let console =
        Console::builder(client.clone()).access(|parts| match parts.headers.get("x-user") {
            Some(user) if user == "alice" => Access::Operate,
            Some(_) => Access::Read,
            None => Access::None,
        });
    let routes = router(console.build().unwrap());
    let of = async |user: &str, method: &str, path: &str| {
        let mut request = request(method, path);
        request
            .headers_mut()
            .insert("x-user", user.parse().unwrap());
        if method == "POST" {
            let kind = "application/x-www-form-urlencoded".parse().unwrap();
            request.headers_mut().insert("content-type", kind);
            *request.body_mut() = Body::from("job=billing/day&reason=r&by=mallory");
        }
        answer(&routes, request).await
    };
    let resume = "/actions/resume";
    assert!(
        of("alice", "GET", "/overview")
            .await
            .text
            .contains("data-do")
    );
    assert!(!of("bob", "GET", "/overview").await.text.contains("data-do"));
    assert_eq!(
        of("bob", "POST", resume).await.status,
        StatusCode::FORBIDDEN
    );
    let memory = redlock_cron::inspect(&client, "billing", "day")
        .await
        .unwrap();
    assert_eq!(memory.is_paused(), Some(true));
    let done = of("alice", "POST", resume).await;
    assert_eq!(done.status, StatusCode::OK, "{done:?}");
    let memory = redlock_cron::inspect(&client, "billing", "day")
        .await
        .unwrap();
    assert_eq!(memory.is_paused(), Some(false));
}

#[tokio::test]
async fn a_page_under_a_prefix_links_below_it_and_a_prefix_opens_nothing_else() {
    let asked = Arc::new(AtomicU8::new(0));
    let client = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    let counted = Arc::clone(&asked);
    let console = Console::builder(client).access(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Access::Read
    });
    let routes = Router::new().nest("/ops/locks", router(console.build().unwrap()));
    let sent_on = get(&routes, "/ops/locks?q=a").await;
    assert_eq!(sent_on.status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(sent_on.header("location"), "locks/overview?q=a");
    let page = get(&routes, "/ops/locks/overview?q=a").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("href=\"console.css\""), "{}", page.text);
    assert_eq!(
        get(&routes, "/ops/locks/console.css").await.status,
        StatusCode::OK
    );
    let before = asked.load(Ordering::Relaxed);
    assert_eq!(
        get(&routes, "/ops/lockssnapshot").await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(asked.load(Ordering::Relaxed), before);
    assert_eq!(
        get(&routes, "/ops/locks/nowhere").await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(asked.load(Ordering::Relaxed), before + 1);
}

#[tokio::test]
async fn settings_that_are_no_use_are_named() {
    let client = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    for origin in [
        "ops.example.com",
        "https://ops.example.com/locks",
        "ftp://h",
        "",
    ] {
        let refused = Console::builder(client.clone()).origins([origin]).build();
        let refused = refused.unwrap_err();
        assert_eq!(refused.field(), "origins");
        assert!(
            refused.to_string().contains("https://ops.example.com"),
            "{refused}"
        );
    }
    let refused = Console::builder(client)
        .elections(["a\nb"])
        .build()
        .unwrap_err();
    assert_eq!(refused.field(), "elections");
}

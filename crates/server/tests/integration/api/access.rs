//! Tests of access control: tokens, roles, hosts and origins.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use milepost_core::token::{NewToken, Role, Secret};
use milepost_server::{AccessOptions, Options};
use milepost_testkit::pulse::{Pulse, STALL};
use milepost_testkit::wait;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::place::{Answer, Place, secret};

/// A caller: name, token, and role, or else the code of the error response.
struct Asker {
    name: &'static str,
    shows: Option<Secret>,
    role: Result<Role, &'static str>,
}

async fn askers(place: &Place) -> Vec<Asker> {
    let mut askers = vec![Asker { name: "nobody", shows: None, role: Err("no_token") }];
    for &role in Role::ALL {
        let shows = Some(place.token(role).await);
        askers.push(Asker { name: role.as_str(), shows, role: Ok(role) });
    }
    let admin = |name| NewToken::new(name, Role::Admin, &secret(), "tester");
    let expired = NewToken { lasts: Some(Duration::from_millis(1)), ..admin("expired") };
    let tomorrow = Timestamp::now() + jiff::Span::new().hours(24);
    let not_yet = NewToken { starts_at: Some(tomorrow), ..admin("not yet") };
    let revoked = place.token_of(admin("revoked")).await;
    place.store.revoke_token(revoked.prefix(), "tester").await.unwrap();
    for (name, shows, code) in [
        ("expired", place.token_of(expired).await, "token_expired"),
        ("not yet", place.token_of(not_yet).await, "token_not_yet_valid"),
        ("revoked", revoked, "token_revoked"),
        ("unknown", secret(), "unknown_token"),
    ] {
        askers.push(Asker { name, shows: Some(shows), role: Err(code) });
    }
    askers
}

/// Returns all routes: method, path with values inserted, and the role that is needed.
async fn routes(place: &Place) -> Vec<(Method, String, Option<Role>)> {
    let document = place.get("/openapi.json").await.body;
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let role = operation["security"][0]["token"][0].as_str().unwrap().parse().unwrap();
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            routes.push((method, path.clone(), Some(role)));
        }
    }
    let others = milepost_server::other_routes();
    routes.extend(others.into_iter().map(|(method, path, role)| (method, path.to_owned(), role)));
    routes
}

async fn ask(place: &Place, method: &Method, path: &str, shows: Option<&Secret>) -> Answer {
    let path =
        path.replace("/workers/{id}", "/workers/1").replace("{id}", "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c");
    let mut request = place.request(method.clone(), &path.replace("{name}", "x"));
    if let Some(secret) = shows {
        request = request.bearer_auth(secret.reveal());
    }
    if matches!(*method, Method::POST | Method::PUT) {
        request = request.json(&json!({}));
    }
    // Do not read an open stream to its end: it has none.
    let answer = request.send().await.unwrap();
    let (status, kind) = (answer.status(), answer.headers().get("content-type").cloned());
    let content_type = kind.map_or_else(String::new, |kind| kind.to_str().unwrap().to_owned());
    let text = if content_type == "text/event-stream" { String::new() } else { answer.text().await.unwrap() };
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Answer { status, content_type, body }
}

/// Returns the code of an authentication or authorization error; `None` if the route was reached.
fn refusal(answer: &Answer) -> Option<&str> {
    let code = answer.body["code"].as_str()?;
    let of_who = [
        "no_token",
        "unknown_token",
        "token_expired",
        "token_not_yet_valid",
        "token_revoked",
        "role_needed",
        "no_role_known",
    ];
    of_who.into_iter().find(|&its| its == code)
}

pub(crate) async fn every_route_is_open_to_the_roles_that_the_document_names_and_to_nobody_else(
    place: Place,
) {
    let routes = routes(&place).await;
    let (askers, mut met) = (askers(&place).await, BTreeSet::new());
    let locked =
        async || ask(&place, &Method::GET, "/v1/queues", None).await.status == StatusCode::UNAUTHORIZED;
    wait::until("tokens are required", locked).await;
    for (method, path, needed) in &routes {
        for asker in &askers {
            let answer = ask(&place, method, path, asker.shows.as_ref()).await;
            let expected = match (needed, asker.role) {
                (None, _) => None,
                (Some(needed), Ok(role)) if role.allows(*needed) => None,
                (Some(_), Ok(_)) => Some("role_needed"),
                (Some(_), Err(code)) => Some(code),
            };
            let what = format!("{method} {path} for {}: {answer:?}", asker.name);
            assert_eq!(refusal(&answer), expected, "{what}");
            match expected {
                Some("role_needed") => assert_eq!(answer.status, StatusCode::FORBIDDEN, "{what}"),
                Some(_) => assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{what}"),
                None => assert!(!answer.status.is_server_error(), "{what}"),
            }
        }
        met.insert((needed.map(Role::as_str), method.to_string()));
    }
    assert!(routes.len() > 25 && met.len() > 8, "{met:?}");
}

/// Routes for admins only.
const OF_ADMINS: [(&str, &str); 3] =
    [("POST", "/v1/doctor/repair"), ("POST", "/v1/events/reseed"), ("DELETE", "/v1/subscriptions/{name}")];
/// The worker protocol: for workers only.
const OF_WORKERS: [(&str, &str); 7] = [
    ("POST", "/v1/workers"),
    ("DELETE", "/v1/workers/{id}"),
    ("GET", "/v1/workers/{id}/jobs"),
    ("POST", "/v1/workers/{id}/claim"),
    ("POST", "/v1/workers/{id}/finish"),
    ("POST", "/v1/workers/{id}/heartbeat"),
    ("POST", "/v1/workers/{id}/report"),
];
/// Routes that viewers may not read: the audit log names users.
const LOOKED_AT_BY_OPERATORS: [(&str, &str); 1] = [("GET", "/v1/audit")];
/// Routes without authentication.
const OPEN: [(&str, &str); 8] = [
    ("GET", "/assets/{edition}/{name}"),
    ("GET", "/healthz"),
    ("GET", "/openapi.json"),
    ("GET", "/readyz"),
    ("GET", "/sign-in"),
    ("POST", "/sign-in"),
    ("GET", "/sign-in/oidc"),
    ("GET", "/sign-in/oidc/callback"),
];

/// Returns the role that an operation must need, independently of the OpenAPI document.
fn pinned(method: &str, path: &str) -> Role {
    let operation = (method, path);
    if OF_WORKERS.contains(&operation) {
        Role::Worker
    } else if OF_ADMINS.contains(&operation) || path.contains("token") {
        Role::Admin
    } else if method != "GET" || LOOKED_AT_BY_OPERATORS.contains(&operation) {
        Role::Operator
    } else {
        Role::Viewer
    }
}

pub(crate) async fn a_role_that_is_changed_is_changed_here_too(place: Place) {
    let viewer = place.token(Role::Viewer).await;
    let (mut changing, mut met) = (0, BTreeSet::new());
    for (method, path, needed) in routes(&place).await {
        if !path.starts_with("/v1/") {
            continue;
        }
        assert_eq!(needed, Some(pinned(method.as_str(), &path)), "{method} {path}");
        if path.starts_with("/v1/workers/") {
            assert_eq!(needed, Some(Role::Worker), "{method} {path} belongs to the worker protocol");
        }
        if method != Method::GET {
            let answer = ask(&place, &method, &path, Some(&viewer)).await;
            assert_eq!(refusal(&answer), Some("role_needed"), "{method} {path} for a viewer: {answer:?}");
            changing += 1;
        }
        met.insert((method.to_string(), path));
    }
    for (method, path) in OF_ADMINS.iter().chain(&OF_WORKERS).chain(&LOOKED_AT_BY_OPERATORS) {
        assert!(
            met.contains(&((*method).to_owned(), (*path).to_owned())),
            "the server has no route {method} {path}"
        );
    }
    assert!(changing > 25, "{changing} operations change something: {met:#?}");
}

pub(crate) async fn what_is_open_to_nobody_known_is_changed_here_too(place: Place) {
    let mut open = BTreeSet::new();
    for (method, path, needed) in routes(&place).await {
        match needed {
            None => assert!(open.insert((method.to_string(), path))),
            Some(Role::Viewer) => {
                let is_own = (method.as_str(), &*path) == ("POST", "/sign-out");
                assert!(method == Method::GET || is_own, "{method} {path} is for viewers");
            }
            Some(_) => {}
        }
    }
    let open: Vec<(&str, &str)> = open.iter().map(|(method, path)| (&**method, &**path)).collect();
    let mut expected = OPEN;
    expected.sort_unstable();
    assert_eq!(open, expected);
}

pub(crate) async fn nobody_is_asked_until_there_is_a_token_and_everybody_from_then_on(place: Place) {
    assert_eq!(place.get("/v1/queues").await.status, StatusCode::OK);
    let strict = Options {
        access: AccessOptions { require_tokens: true, ..AccessOptions::default() },
        ..Options::default()
    };
    let refused = place.beside(strict).await.get("/v1/queues").await;
    assert_eq!((refused.status, refused.code()), (StatusCode::UNAUTHORIZED, "no_token"));
    let token = place.token(Role::Viewer).await;
    let locked =
        async || ask(&place, &Method::GET, "/v1/queues", None).await.status == StatusCode::UNAUTHORIZED;
    wait::until("tokens are required", locked).await;
    let answer = place.request(Method::GET, "/v1/queues").bearer_auth(token.reveal()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let refused = place.request(Method::GET, "/v1/queues").send().await.unwrap();
    assert_eq!(refused.headers()["www-authenticate"], "Bearer realm=\"milepost\"");
    let used = async || place.store.token(token.prefix()).await.unwrap().unwrap().view.last_used_at.is_some();
    wait::until("its use is recorded", used).await;
}

pub(crate) async fn a_revoked_token_is_refused_within_a_second(place: Place) {
    let (token, _other) = (place.token(Role::Operator).await, place.token(Role::Viewer).await);
    let ask = async || ask(&place, &Method::GET, "/v1/queues", Some(&token)).await;
    assert_eq!(ask().await.status, StatusCode::OK);
    place.store.revoke_token(token.prefix(), "tester").await.unwrap();
    let (began, pulse) = (Instant::now(), Pulse::on(place.store.clone()));
    let refused = async || ask().await.status == StatusCode::UNAUTHORIZED;
    wait::until("the token is refused", refused).await;
    // If the machine stalled, the duration proves nothing.
    let (took, stall) = (began.elapsed(), pulse.slowest());
    assert!(
        took < Duration::from_secs(3) || stall > STALL,
        "revoked after {took:?}, longest request {stall:?}"
    );
    assert_eq!(ask().await.code(), "token_revoked");
}

pub(crate) async fn a_claim_that_waits_ends_with_its_token(place: Place) {
    let (token, _other) = (place.token(Role::Worker).await, place.token(Role::Admin).await);
    let ask = async |path: &str, body: serde_json::Value| {
        place.send(place.request(Method::POST, path).bearer_auth(token.reveal()).json(&body)).await
    };
    let worker = json!({"name": "w", "queues": ["default"], "kinds": ["k"]});
    let registered = async || ask("/v1/workers", worker.clone()).await.status == StatusCode::CREATED;
    wait::until("the token is accepted", registered).await;
    let worker = ask("/v1/workers", worker.clone()).await.body["id"].clone();
    let path = format!(
        "/v1/workers/{}/claim",
        worker.as_i64().map_or_else(|| worker.as_str().unwrap().to_owned(), |id| id.to_string())
    );
    let claim = ask(&path, json!({"queues": ["default"], "kinds": ["k"], "wait_ms": 30_000}));
    let revoke = async {
        place.store.revoke_token(token.prefix(), "tester").await.unwrap();
    };
    let (claimed, ()) = tokio::join!(claim, revoke);
    assert_eq!((claimed.status, claimed.code()), (StatusCode::UNAUTHORIZED, "token_revoked"));
}

pub(crate) async fn a_stream_ends_with_the_token_of_its_reader(place: Place) {
    let (token, _other) = (place.token(Role::Viewer).await, place.token(Role::Admin).await);
    let ready = async || ask(&place, &Method::GET, "/v1/stream", Some(&token)).await.status == StatusCode::OK;
    wait::until("a stream is accepted", ready).await;
    let stream = place.request(Method::GET, "/v1/stream").bearer_auth(token.reveal()).send().await.unwrap();
    place.store.revoke_token(token.prefix(), "tester").await.unwrap();
    assert_eq!(Place::why_it_ends(stream).await, "token_revoked");
}

pub(crate) async fn a_stream_that_nobody_was_asked_for_ends_when_there_is_a_token(place: Place) {
    let stream = place.request(Method::GET, "/v1/stream").send().await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    place.token(Role::Viewer).await;
    assert_eq!(Place::why_it_ends(stream).await, "no_token");
}

pub(crate) async fn a_server_that_others_reach_stays_closed(place: Place) {
    let serve = async |access: AccessOptions| {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let options = Options { access, ..Options::default() };
        let stop = CancellationToken::new();
        let serving =
            tokio::spawn(milepost_server::serve(listener, place.store.clone(), options, stop.clone()));
        (port, stop.drop_guard(), serving)
    };
    let (_, _stop, serving) = serve(AccessOptions::default()).await;
    let refused = serving.await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("no tokens are required"), "{refused}");
    let token = place.token(Role::Viewer).await;
    let (_, _stop, serving) = serve(AccessOptions::default()).await;
    let refused = serving.await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("unencrypted"), "{refused}");
    let (port, _stop, _serving) = serve(AccessOptions { behind_tls: true, ..AccessOptions::default() }).await;
    let url = format!("http://127.0.0.1:{port}/v1/queues");
    assert_eq!(reqwest::get(&url).await.unwrap().status(), StatusCode::UNAUTHORIZED);
    place.store.revoke_token(token.prefix(), "tester").await.unwrap();
    // Longer than results for tokens are cached.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let answer = reqwest::get(&url).await.unwrap();
    assert_eq!(
        answer.status(),
        StatusCode::UNAUTHORIZED,
        "the server requires tokens after the last token is revoked"
    );
}

pub(crate) async fn hosts_that_are_not_named_are_refused(place: Place) {
    let access =
        AccessOptions { allowed_hosts: vec!["jobs.example.org".to_owned()], ..AccessOptions::default() };
    let named = place.beside(Options { access, ..Options::default() }).await;
    let ask = async |server: &Place, host: &str| {
        server.send(server.request(Method::GET, "/healthz").header("Host", host)).await.status
    };
    assert_eq!(ask(&named, "jobs.example.org:7070").await, StatusCode::OK);
    assert_eq!(ask(&named, "evil.example").await, StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(ask(&place, "evil.example").await, StatusCode::MISDIRECTED_REQUEST);
    place.token(Role::Viewer).await;
    let any = async || ask(&place, "jobs.example.org").await == StatusCode::OK;
    wait::until("a server with tokens accepts any host name", any).await;
    assert_eq!(
        ask(&named, "evil.example").await,
        StatusCode::MISDIRECTED_REQUEST,
        "except a server with configured host names"
    );
}

pub(crate) async fn to_ask_for_no_token_opens_no_name_on_the_loopback_address(place: Place) {
    let access = AccessOptions { open_to_all: true, ..AccessOptions::default() };
    let open = place.beside(Options { access, ..Options::default() }).await;
    let ask = async |host: &str| {
        open.send(open.request(Method::GET, "/v1/queues").header("Host", host)).await.status
    };
    assert_eq!(ask("localhost").await, StatusCode::OK);
    assert_eq!(ask("evil.example").await, StatusCode::MISDIRECTED_REQUEST, "as in DNS rebinding");
}

pub(crate) async fn every_answer_says_what_a_browser_may_do_with_it(place: Place) {
    place.token(Role::Viewer).await;
    let locked = async || place.get("/v1/queues").await.status == StatusCode::UNAUTHORIZED;
    wait::until("tokens are required", locked).await;
    for path in ["/healthz", "/sign-in", "/v1/queues", "/no-such-path", "/openapi.json"] {
        for method in [Method::GET, Method::HEAD, Method::POST] {
            let answer = place.request(method.clone(), path).send().await.unwrap();
            let headers = answer.headers();
            let policy = headers["content-security-policy"].to_str().unwrap();
            for part in
                ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
            {
                assert!(policy.contains(part), "{method} {path}: {policy}");
            }
            assert!(!policy.contains("unsafe"), "{policy}");
            assert_eq!(headers["x-content-type-options"], "nosniff");
            assert_eq!(headers["referrer-policy"], "same-origin");
            assert_eq!(headers["cross-origin-opener-policy"], "same-origin");
            assert_eq!(headers["cache-control"], "no-store", "{method} {path}");
            assert!(!headers.contains_key("strict-transport-security"), "the server does not use TLS");
        }
    }
    let foreign =
        place.request(Method::GET, "/healthz").header("Host", "evil.example:1").header("Origin", "http://x");
    assert!(foreign.send().await.unwrap().headers().contains_key("content-security-policy"));
}

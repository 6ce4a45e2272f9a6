//! Tests of console sessions.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::join_all;
use milepost_core::job::NewJob;
use milepost_core::session::{NewSession, SessionTimes, SessionUser};
use milepost_core::token::{Digest, Role, Secret};
use milepost_server::{AccessOptions, Limits, Options};
use milepost_testkit::wait;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::api::place::Place;

pub(super) const FORM: &str = "application/x-www-form-urlencoded";

impl Place {
    /// Builds a request as a page of this server sends it.
    pub(super) fn by_page(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).header("origin", format!("http://{}", self.address()))
    }

    pub(super) async fn sign_in(&self, token: &str) -> Response {
        let form = format!("token={token}&next=%2Fmetrics");
        let request = self.by_page(Method::POST, "/sign-in").header("content-type", FORM);
        request.body(form).send().await.unwrap()
    }

    /// Signs in and returns the cookie.
    pub(super) async fn signed_in(&self, token: &Secret) -> String {
        let answer = self.sign_in(token.reveal()).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        assert_eq!(answer.headers()["location"], "/metrics");
        cookie(&answer).unwrap()
    }

    pub(super) async fn looks(&self, cookie: &str) -> Response {
        self.request(Method::GET, "/v1/queues").header("cookie", cookie).send().await.unwrap()
    }
}

/// Returns the session cookie that a response sets, without its attributes.
pub(super) fn cookie(answer: &Response) -> Option<String> {
    let mut all = answer.headers().get_all("set-cookie").iter().map(|set| set.to_str().unwrap());
    let set = all.find(|set| set.starts_with("milepost="))?;
    assert!(set.contains("; HttpOnly; SameSite=Lax"), "{set}");
    Some(set.split(';').next().unwrap().to_owned())
}

/// Starts a session with a known CSRF token. Returns the cookie and the masked token.
pub(super) async fn begun(place: &Place, token: &Secret) -> (String, String) {
    let (id, csrf) = ("an-id-that-nobody-guesses", "a-word-of-its-pages");
    let user = SessionUser::Token(token.prefix().to_owned());
    let session = NewSession { id: Digest::of(id), user, csrf: csrf.to_owned() };
    place.store.begin_session(&session, &SessionTimes::default()).await.unwrap();
    (format!("milepost={id}"), masked(csrf))
}

/// Masks a CSRF token with a pad of zeros, as a page could.
pub(super) fn masked(word: &str) -> String {
    URL_SAFE_NO_PAD.encode([vec![0; word.len()], word.as_bytes().to_vec()].concat())
}

pub(crate) async fn somebody_signs_in_acts_and_signs_out(place: Place) {
    let token = place.token(Role::Operator).await;
    let page = place.get("/sign-in?next=/metrics").await;
    let html = page.body.as_str().unwrap();
    assert!(
        html.contains("value=\"/metrics\"") && !html.contains("style=") && !html.contains("<script>"),
        "{html}"
    );
    let cookie = place.signed_in(&token).await;
    assert_eq!(place.looks(&cookie).await.status(), StatusCode::OK);
    assert_eq!(place.looks("milepost=x").await.status(), StatusCode::UNAUTHORIZED);
    let again = place.sign_in_with(&cookie, &token).await;
    assert_ne!(again, cookie, "each session gets a new cookie");
    let old_is_over = async || place.looks(&cookie).await.status() == StatusCode::UNAUTHORIZED;
    wait::until("the previous session has ended", old_is_over).await;

    let (cookie, csrf) = begun(&place, &token).await;
    let act =
        place.by_page(Method::PUT, "/v1/queues/q").header("cookie", &cookie).header("x-csrf-token", &csrf);
    assert_eq!(act.json(&json!({"paused": true})).send().await.unwrap().status(), StatusCode::OK);
    let out = place.by_page(Method::POST, "/sign-out").header("cookie", &cookie).header("content-type", FORM);
    let out = out.body(format!("csrf={csrf}")).send().await.unwrap();
    assert_eq!(
        (out.status(), &out.headers()["location"]),
        (StatusCode::SEE_OTHER, &"/sign-in".parse().unwrap())
    );
    assert!(out.headers()["set-cookie"].to_str().unwrap().starts_with("milepost=; "));
    assert_eq!(place.looks(&cookie).await.status(), StatusCode::UNAUTHORIZED);
    let worker = place.token(Role::Worker).await;
    assert_eq!(
        place.sign_in(worker.reveal()).await.status(),
        StatusCode::UNAUTHORIZED,
        "tokens of workers cannot sign in"
    );
}

impl Place {
    /// Signs in again in a browser that has a session.
    async fn sign_in_with(&self, old: &str, token: &Secret) -> String {
        let request =
            self.by_page(Method::POST, "/sign-in").header("cookie", old).header("content-type", FORM);
        let answer = request.body(format!("token={}", token.reveal())).send().await.unwrap();
        assert_eq!(answer.headers()["location"], "/");
        cookie(&answer).unwrap()
    }
}

pub(crate) async fn a_form_that_another_page_sends_is_refused(place: Place) {
    let token = place.token(Role::Operator).await;
    let (cookie, csrf) = begun(&place, &token).await;
    let put = |request: RequestBuilder| request.header("cookie", &cookie).json(&json!({"paused": true}));
    let path = "/v1/queues/q";
    let elsewhere = place.request(Method::PUT, path).header("origin", "https://evil.example");
    for (what, request) in [
        ("without an origin", place.request(Method::PUT, path).header("x-csrf-token", &csrf)),
        ("from another origin", elsewhere.header("x-csrf-token", &csrf)),
        ("without the CSRF token", place.by_page(Method::PUT, path)),
        ("with a wrong CSRF token", place.by_page(Method::PUT, path).header("x-csrf-token", "guessed")),
        ("with an empty CSRF token", place.by_page(Method::PUT, path).header("x-csrf-token", "")),
    ] {
        assert_eq!(put(request).send().await.unwrap().status(), StatusCode::FORBIDDEN, "{what}");
    }
    let out = |body: &str| {
        let request = place.by_page(Method::POST, "/sign-out").header("cookie", &cookie);
        request.header("content-type", FORM).body(body.to_owned()).send()
    };
    assert_eq!(out("").await.unwrap().status(), StatusCode::FORBIDDEN);
    assert_eq!(out("csrf=guessed").await.unwrap().status(), StatusCode::FORBIDDEN);
    assert_eq!(out(&"x".repeat(300 * 1024)).await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(place.looks(&cookie).await.status(), StatusCode::OK, "the session is still valid");
    let sign_in = place.request(Method::POST, "/sign-in").header("content-type", FORM);
    let answer = sign_in.body(format!("token={}", token.reveal())).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::FORBIDDEN, "other pages cannot sign in");
}

pub(crate) async fn a_session_ends_with_its_token(place: Place) {
    let (token, _other) = (place.token(Role::Viewer).await, place.token(Role::Admin).await);
    let cookie = place.signed_in(&token).await;
    assert_eq!(place.looks(&cookie).await.status(), StatusCode::OK);
    place.store.revoke_token(token.prefix(), "tester").await.unwrap();
    let ended = async || place.looks(&cookie).await.status() == StatusCode::UNAUTHORIZED;
    wait::until("the session ends", ended).await;
}

impl Place {
    /// Opens a stream as a page does.
    async fn listens(&self, cookie: &str) -> Response {
        let request = self.request(Method::GET, "/v1/stream").header("cookie", cookie);
        let stream = request.header("accept", "text/event-stream").send().await.unwrap();
        assert_eq!(stream.status(), StatusCode::OK);
        stream
    }

    /// Asserts that a stream is still open.
    async fn assert_goes_on(&self, stream: &mut Response) {
        let job =
            self.store.enqueue(&NewJob::new("mail", &json!({})).unwrap()).await.unwrap().job.to_string();
        let mut text = String::new();
        while !text.contains(&job) {
            let piece = timeout(wait::LIMIT, stream.chunk()).await.expect("a piece in time");
            text.push_str(std::str::from_utf8(&piece.unwrap().expect("the stream continues")).unwrap());
        }
    }
}

pub(crate) async fn who_signs_out_in_one_tab_ends_the_streams_of_all(place: Place) {
    let token = place.token(Role::Operator).await;
    let (cookie, csrf) = begun(&place, &token).await;
    let elsewhere = place.signed_in(&token).await;
    let (one, two, mut other) =
        (place.listens(&cookie).await, place.listens(&cookie).await, place.listens(&elsewhere).await);
    let out = place.by_page(Method::POST, "/sign-out").header("cookie", &cookie).header("content-type", FORM);
    let out = out.body(format!("csrf={csrf}")).send().await.unwrap();
    assert_eq!(out.status(), StatusCode::SEE_OTHER);
    for stream in [one, two] {
        assert_eq!(Place::why_it_ends(stream).await, "session_over");
    }
    place.assert_goes_on(&mut other).await;
}

pub(crate) async fn to_listen_is_not_to_use_a_session(place: Place) {
    let sessions = SessionTimes { idle: Duration::from_secs(10), ..SessionTimes::default() };
    let access = AccessOptions { sessions, ..AccessOptions::default() };
    let brief = place.beside(Options { access, ..Options::default() }).await;
    let token = place.token(Role::Viewer).await;
    let stream = brief.listens(&brief.signed_in(&token).await).await;
    assert_eq!(Place::why_it_ends(stream).await, "session_over");
}

pub(crate) async fn a_stream_goes_on_when_the_id_of_its_session_changes(place: Place) {
    let token = place.token(Role::Viewer).await;
    let (cookie, _) = begun(&place, &token).await;
    let mut stream = place.listens(&cookie).await;
    let ids = ["an-id-that-nobody-guesses", "the-next-one", "the-one-after-that"].map(Digest::of);
    for pair in ids.windows(2) {
        assert!(place.store.rotate_session(&pair[0], &pair[1]).await.unwrap());
        // Much longer than the interval of the checks: the absence of an end can only be observed by waiting.
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert_eq!(
        place.looks(&cookie).await.status(),
        StatusCode::UNAUTHORIZED,
        "only the previous id is accepted"
    );
    place.assert_goes_on(&mut stream).await;
}

pub(crate) async fn the_id_of_a_session_changes_and_the_session_goes_on(place: Place) {
    let sessions = SessionTimes { rotate: Duration::ZERO, ..SessionTimes::default() };
    let access = AccessOptions { sessions, ..AccessOptions::default() };
    let eager = place.beside(Options { access, ..Options::default() }).await;
    let token = place.token(Role::Viewer).await;
    let first = eager.signed_in(&token).await;
    let answer = eager.looks(&first).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let second = cookie(&answer).unwrap();
    assert_ne!(first, second);
    for id in [&first, &second] {
        assert_eq!(eager.looks(id).await.status(), StatusCode::OK, "browsers send concurrent requests");
    }
}

pub(crate) async fn a_page_that_says_what_went_wrong_loses_no_session(place: Place) {
    let sessions = SessionTimes { rotate: Duration::ZERO, ..SessionTimes::default() };
    let access = AccessOptions { sessions, ..AccessOptions::default() };
    let eager = place.beside(Options { access, ..Options::default() }).await;
    let first = eager.signed_in(&place.token(Role::Viewer).await).await;
    let look = async |path: &str| {
        let request = eager.request(Method::GET, path).header("cookie", &first);
        request.header("accept", "text/html").send().await.unwrap()
    };
    let is_of = async |cookie: &str| {
        let id = Digest::of(cookie.strip_prefix("milepost=").unwrap());
        place.store.session(&id, &sessions, false).await.unwrap().is_some_and(|found| found.id == id)
    };
    for (path, status) in
        [("/no/such/path", StatusCode::NOT_FOUND), ("/queues/set", StatusCode::METHOD_NOT_ALLOWED)]
    {
        let answer = look(path).await;
        assert_eq!((answer.status(), cookie(&answer)), (status, None), "{path}");
        assert!(answer.text().await.unwrap().contains("<span>viewer</span>"), "{path}");
        assert!(is_of(&first).await, "{path} did not rotate the id");
    }
    let answer = look("/audit").await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let second = cookie(&answer).expect("the response has a cookie with the next id");
    assert!(first != second && is_of(&second).await);
}

pub(crate) async fn a_form_that_does_not_come_is_not_waited_for(place: Place) {
    let limits = Limits { request_time: Duration::from_millis(300), ..Limits::default() };
    let brief = place.beside(Options { limits, ..Options::default() }).await;
    let (cookie, _) = begun(&place, &place.token(Role::Operator).await).await;
    let mut stream = TcpStream::connect(brief.address()).await.unwrap();
    let address = brief.address();
    let request = format!(
        "POST /queues/set HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nCookie: {cookie}\r\nContent-Type: {FORM}\r\nContent-Length: 100\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = timeout(wait::LIMIT, stream.read_to_string(&mut answer)).await;
    assert!(read.is_ok() && answer.starts_with("HTTP/1.1 408"), "{answer}");
}

pub(crate) async fn who_tries_too_often_has_to_wait(place: Place) {
    let token = place.token(Role::Viewer).await;
    let mut failures = 0;
    let tries = async {
        loop {
            for failed in join_all((0..20).map(|_| place.sign_in("mp_guess"))).await {
                assert!(!failed.headers().contains_key("set-cookie"));
                failures += u32::from(failed.status() == StatusCode::UNAUTHORIZED);
            }
            // A busy machine may be so slow that one more attempt is allowed.
            let refused = place.sign_in(token.reveal()).await;
            if refused.status() == StatusCode::TOO_MANY_REQUESTS {
                break refused;
            }
        }
    };
    let refused = timeout(wait::LIMIT, tries).await.expect("guesses are refused");
    assert!(failures >= 5, "only {failures} attempts");
    let wait_s: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=2).contains(&wait_s), "{wait_s}");
    tokio::time::sleep(Duration::from_secs(wait_s)).await;
    place.signed_in(&token).await;
}

pub(crate) async fn a_page_sends_those_who_are_not_signed_in_to_sign_in(place: Place) {
    place.token(Role::Viewer).await;
    let ask = async |path: &str, accept: &str| {
        place.request(Method::GET, path).header("accept", accept).send().await.unwrap()
    };
    let locked = async || ask("/metrics", "*/*").await.status() == StatusCode::UNAUTHORIZED;
    wait::until("tokens are required", locked).await;
    let sent = ask("/metrics?a=b", "text/html,*/*;q=0.8").await;
    assert_eq!(sent.status(), StatusCode::SEE_OTHER);
    assert_eq!(sent.headers()["location"], "/sign-in?next=%2Fmetrics%3Fa%3Db");
    let of_api = ask("/v1/queues", "text/html").await;
    assert_eq!(of_api.status(), StatusCode::UNAUTHORIZED, "the API returns an error");
}

pub(crate) async fn a_page_that_keeps_itself_new_does_not_keep_the_session(place: Place) {
    let idle = Duration::from_secs(12);
    let sessions = SessionTimes { idle, ..SessionTimes::default() };
    let access = AccessOptions { sessions, ..AccessOptions::default() };
    let brief = place.beside(Options { access, ..Options::default() }).await;
    let token = place.token(Role::Viewer).await;
    let cookie = brief.signed_in(&token).await;
    let refreshed = async || {
        let request = brief.request(Method::GET, "/queues").header("cookie", &cookie);
        request.header("x-milepost-refresh", "1").send().await.unwrap().status()
    };
    let listens = async || {
        let request = brief.request(Method::GET, "/v1/stream").header("cookie", &cookie);
        request.header("accept", "text/event-stream").send().await.unwrap().status()
    };
    let began = Instant::now();
    while began.elapsed() < idle * 4 / 3 {
        // The cached session of the refreshes must not hide the use of the session.
        assert_eq!(refreshed().await, StatusCode::OK);
        assert_eq!(brief.looks(&cookie).await.status(), StatusCode::OK, "the session is in use");
        tokio::time::sleep(idle / 20).await;
    }
    let is_over = async || {
        let seen = [refreshed().await, listens().await];
        seen.contains(&StatusCode::UNAUTHORIZED)
    };
    assert!(!is_over().await);
    wait::until("the unused session has ended", is_over).await;
}

pub(crate) async fn a_form_of_somebody_who_is_signed_in_no_more_is_answered_with_where_to_sign_in(
    place: Place,
) {
    let token = place.token(Role::Operator).await;
    let (cookie, csrf) = begun(&place, &token).await;
    let sent = async |cookie: &str, csrf: &str, from: &str| {
        let request = place.by_page(Method::POST, "/queues/set").header("cookie", cookie);
        let from = format!("http://{}{from}", place.address());
        let request =
            request.header("accept", "text/html").header("referer", from).header("content-type", FORM);
        place.send(request.body(format!("queue=q&operation=pause&reason=night&csrf={csrf}"))).await
    };
    place.store.end_session(&Digest::of("an-id-that-nobody-guesses")).await.unwrap();
    let answer = sent(&cookie, &csrf, "/queues?a=b").await;
    let html = answer.body.as_str().unwrap();
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(
        html.contains("The request was refused") && html.contains("/sign-in?next=%2Fqueues%3Fa%3Db"),
        "{html}"
    );
    let (cookie, _) = begun(&place, &token).await;
    let answer = sent(&cookie, "of-a-page-before", "/queues?a=b").await;
    let html = answer.body.as_str().unwrap();
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(html.contains("<span>operator</span>") && html.contains("href=\"/queues?a=b\""), "{html}");
    let answer = sent(&cookie, "of-a-page-before", "//evil.example/x").await;
    assert!(!answer.body.as_str().unwrap().contains("evil.example"), "{answer:?}");
    assert!(place.store.queues().await.unwrap().is_empty(), "nothing was changed");
}

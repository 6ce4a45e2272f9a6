//! Tests of clients behind a proxy, and of clients that share an address with one that guesses tokens.

use futures::future::join_all;
use milepost_core::limit::Rate;
use milepost_core::token::{NewToken, Role, Secret};
use milepost_server::{AccessOptions, ForwardedHeader, Limits, Options, TrustedProxies};
use milepost_testkit::wait;
use reqwest::{Method, StatusCode};

use crate::api::place::{Place, on_sqlite, secret};
use crate::api::sessions::FORM;

async fn behind(trusted: &[&str], rate: Option<Rate>) -> (tempfile::TempDir, Place) {
    let (folder, store) = on_sqlite().await;
    let trusted_proxies = TrustedProxies::parse(trusted.iter().copied(), ForwardedHeader::default()).unwrap();
    // As with --insecure-no-tokens: requests without a token are counted, too.
    let access = AccessOptions { trusted_proxies, open_to_all: true, ..AccessOptions::default() };
    let limits = rate.map_or_else(Limits::default, |rate| Limits { rate: Some(rate), ..Limits::default() });
    (folder, Place::serve_with(store, Options { access, limits, ..Options::default() }).await)
}

#[tokio::test]
async fn requests_are_counted_for_the_client_that_a_trusted_proxy_names() {
    let (_folder, place) = behind(&["127.0.0.1"], Some(Rate::new(0.001, 2))).await;
    let ask = async |client: &str| {
        let request = place.request(Method::GET, "/v1/queues").header("x-forwarded-for", client);
        request.send().await.unwrap().status()
    };
    for _ in 0..2 {
        assert_eq!(ask("203.0.113.1").await, StatusCode::OK);
    }
    assert_eq!(ask("203.0.113.1").await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        ask("203.0.113.9, 203.0.113.1").await,
        StatusCode::TOO_MANY_REQUESTS,
        "headers of clients are ignored"
    );
    assert_eq!(ask("203.0.113.2").await, StatusCode::OK);
}

#[tokio::test]
async fn what_others_than_trusted_proxies_say_of_the_client_is_ignored() {
    let (_folder, place) = behind(&["10.0.0.0/8"], Some(Rate::new(0.001, 2))).await;
    for _ in 0..5 {
        let request = place.request(Method::GET, "/v1/queues").header("x-forwarded-for", "203.0.113.1");
        assert_eq!(
            request.send().await.unwrap().status(),
            StatusCode::OK,
            "clients on this machine have no rate limit"
        );
    }
}

#[tokio::test]
async fn attempts_to_sign_in_are_counted_for_the_client_behind_the_proxy() {
    let (_folder, place) = behind(&["127.0.0.1"], None).await;
    let token = place.token(Role::Viewer).await;
    let sign_in = async |client: &str, token: &str| {
        let request = place.by_page(Method::POST, "/sign-in").header("content-type", FORM);
        request
            .header("x-forwarded-for", client)
            .body(format!("token={token}"))
            .send()
            .await
            .unwrap()
            .status()
    };
    let guess = async || join_all((0..20).map(|_| sign_in("203.0.113.1", "mp_guess"))).await;
    let refused = async || guess().await.contains(&StatusCode::TOO_MANY_REQUESTS);
    wait::until("guesses are refused", refused).await;
    assert_eq!(
        sign_in("203.0.113.2", token.reveal()).await,
        StatusCode::SEE_OTHER,
        "other clients can sign in"
    );
}

#[tokio::test]
async fn a_token_that_is_shown_for_the_first_time_counts_beside_somebody_who_guesses() {
    let (_folder, place) = behind(&[], None).await;
    let mut tokens = Vec::new();
    for number in 0..20 {
        tokens.push(
            place.token_of(NewToken::new(format!("t{number}"), Role::Viewer, &secret(), "tester")).await,
        );
    }
    let ask = async |token: &Secret| {
        let request = place.request(Method::GET, "/v1/queues").bearer_auth(token.reveal());
        place.send(request).await
    };
    for token in &tokens {
        // Guess until a guess is refused, so that the bucket for unknown tokens is empty. A slow machine needs more concurrent
        // guesses.
        let mut guesses = 16;
        while !join_all((0..guesses).map(|_| async { ask(&secret()).await.status }))
            .await
            .contains(&StatusCode::TOO_MANY_REQUESTS)
        {
            guesses *= 2;
            assert!(guesses < 4_096, "concurrent guesses are not refused");
        }
        let answer = ask(token).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    }
}

#[tokio::test]
async fn requests_without_a_token_that_counts_are_counted_for_their_address() {
    let (_folder, place) = behind(&["127.0.0.1"], Some(Rate::new(0.001, 3))).await;
    let token = place.token_of(NewToken::new("t", Role::Viewer, &secret(), "tester")).await;
    let ask = async |client: &str, token: Option<&str>| {
        let request = place.request(Method::GET, "/v1/queues").header("x-forwarded-for", client);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        request.send().await.unwrap().status()
    };
    // The last one is a program on this machine: it has no limit only while no token is required.
    for (client, shown) in [("203.0.113.1", None), ("203.0.113.2", Some("mp_nonsense")), ("127.0.0.9", None)]
    {
        for _ in 0..3 {
            assert_eq!(ask(client, shown).await, StatusCode::UNAUTHORIZED);
        }
        assert_eq!(ask(client, shown).await, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(
            ask(client, Some(token.reveal())).await,
            StatusCode::OK,
            "each token has a separate limit"
        );
    }
}

//! Tests of CSRF tokens and flash messages of pages.

use std::collections::BTreeSet;

use milepost_core::token::Role;
use milepost_server::{AccessOptions, Options};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::api::place::Place;
use crate::api::sessions::{FORM, begun};

/// Returns the CSRF tokens of the forms of a page.
fn carried(html: &str) -> Vec<&str> {
    let fields = html.split("name=\"csrf\" value=\"").skip(1);
    fields.map(|field| field.split('"').next().unwrap()).collect()
}

pub(crate) async fn each_page_shows_the_word_of_its_forms_in_another_way(place: Place) {
    let token = place.token(Role::Operator).await;
    place.store.pause_queue("q", false).await.unwrap();
    let (cookie, _) = begun(&place, &token).await;
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        let page = place.request(Method::GET, "/queues").header("cookie", &cookie).send().await.unwrap();
        let html = page.text().await.unwrap();
        assert!(!html.contains("a-word-of-its-pages"), "{html}");
        let word = carried(&html).pop().expect("a form").to_owned();
        let act = place
            .by_page(Method::PUT, "/v1/queues/q")
            .header("cookie", &cookie)
            .header("x-csrf-token", &word);
        assert_eq!(act.json(&json!({"paused": true})).send().await.unwrap().status(), StatusCode::OK);
        seen.insert(word);
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
}

pub(crate) async fn under_https_what_a_page_says_travels_as_the_session_does(place: Place) {
    let access = AccessOptions { behind_tls: true, ..AccessOptions::default() };
    let secure = place.beside(Options { access, ..Options::default() }).await;
    let token = place.token(Role::Operator).await;
    let (cookie, csrf) = begun(&place, &token).await;
    let cookie = cookie.replace("milepost=", "__Host-milepost=");
    let form =
        secure.by_page(Method::POST, "/queues/set").header("cookie", &cookie).header("content-type", FORM);
    let answer = form.body(format!("queue=q&operation=pause&reason=night&csrf={csrf}")).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let said = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        said.starts_with("__Host-milepost_said=done.")
            && said.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=30"),
        "{said}"
    );
    let said = said.split(';').next().unwrap();
    let page = |said: &str| {
        secure.request(Method::GET, "/queues").header("cookie", format!("{cookie}; {said}")).send()
    };
    let shown = page(said).await.unwrap();
    let forgets = shown.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        forgets.starts_with("__Host-milepost_said=; ") && forgets.contains("Secure; Max-Age=0"),
        "{forgets}"
    );
    let words = said.rsplit('.').next().unwrap();
    let words = percent_encoding::percent_decode_str(words).decode_utf8().unwrap().into_owned();
    assert!(shown.text().await.unwrap().contains(&words), "{words}");
    let tossed = page("milepost_said=done.all-is-well").await.unwrap().text().await.unwrap();
    assert!(!tossed.contains("all-is-well"), "{tossed}");
}

//! Tests of retention periods that operators set.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::Place;

async fn set(place: &Place, name: &str, period: &str) -> (StatusCode, Value) {
    let path = format!("/v1/retention/{name}");
    let answer = place.ask(Method::PUT, &path, json!({"period": period, "reason": "the disk"})).await;
    (answer.status, answer.body)
}

async fn stored(place: &Place, name: &str) -> Value {
    let all = place.get("/v1/retention").await.body;
    assert_eq!(all.as_array().unwrap().len(), 10, "{all}");
    all.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()["period"].clone()
}

pub(crate) async fn a_retention_period_is_set_and_removed(place: Place) {
    assert_eq!(stored(&place, "succeeded").await, Value::Null);
    assert_eq!(set(&place, "succeeded", "1d 2h").await.0, StatusCode::NO_CONTENT);
    assert_eq!(stored(&place, "succeeded").await, "1d 2h");
    assert_eq!(set(&place, "succeeded", "forever").await.0, StatusCode::NO_CONTENT);
    assert_eq!(stored(&place, "succeeded").await, "forever");
    for _ in 0..2 {
        let removed = place.ask(Method::DELETE, "/v1/retention/succeeded", Value::Null).await;
        assert_eq!(removed.status, StatusCode::NO_CONTENT);
    }
    assert_eq!(stored(&place, "succeeded").await, Value::Null);
    for (name, period, words) in [
        ("succeeded", "soon", "or give forever"),
        ("succeeded", "101y", "a hundred years"),
        ("audit", "1d", "30 days or longer"),
        ("jobs", "1d", "the names are succeeded, canceled"),
    ] {
        let (status, refused) = set(&place, name, period).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains(words), "{words}: {refused}");
    }
}

pub(crate) async fn a_retention_period_is_set_in_the_console(place: Place) {
    let html = place.page("/settings").await.1;
    assert!(
        html.matches("action=\"/retention/set\"").count() == 10 && html.contains("as configured, else 90d"),
        "{html}"
    );
    let send = async |url: &str, period: &str| {
        let fields = [
            ("name", "failed"),
            ("period", period),
            ("reason", "letters are read late"),
            ("back", "/settings"),
        ];
        place.form(url, &fields).await.1
    };
    let said = send("/retention/set", "200d").await;
    assert_eq!(said, "done.Kept from now on: dead letters of jobs and inboxes, 200d.");
    let html = place.page("/settings").await.1;
    assert!(html.contains("<td>200d</td>") && html.contains("action=\"/retention/remove\""), "{html}");
    assert!(send("/retention/set", "late").await.starts_with("refused"));
    assert!(send("/retention/remove", "").await.starts_with("done"));
    assert_eq!(stored(&place, "failed").await, Value::Null);
}

//! Tests of limits on kinds: set, list and remove.

use milepost_core::limit::{Limit, Source};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::Place;

pub(crate) async fn a_limit_is_set_shown_and_removed(place: Place) {
    for body in [
        json!({"kind": "mail", "rate": "100/m", "burst": 5}),
        json!({"group": "tenant:*", "concurrency": 3, "rate": "0.5/s"}),
        json!({"group": "g", "concurrency": 2}),
    ] {
        let set = place.ask(Method::PUT, "/v1/limits", body.clone()).await;
        assert_eq!(set.status, StatusCode::NO_CONTENT, "{body}: {set:?}");
    }
    let limits = place.ask(Method::GET, "/v1/limits", Value::Null).await.body;
    assert_eq!((&limits[0]["kind"], &limits[0]["burst"]), (&json!("mail"), &json!(5)));
    assert_eq!((&limits[1]["group"], &limits[1]["concurrency"]), (&json!("g"), &json!(2)));
    assert_eq!((&limits[2]["group"], &limits[2]["per_second"]), (&json!("tenant:*"), &json!(0.5)));
    assert_eq!(limits[2]["source"], "operator");
    let path = "/v1/limits?group=tenant:*";
    assert_eq!(place.ask(Method::DELETE, path, Value::Null).await.status, StatusCode::NO_CONTENT);
    let gone = place.ask(Method::DELETE, path, Value::Null).await;
    assert_eq!((gone.status, gone.code()), (StatusCode::NOT_FOUND, "no_such_limit"));
    place.store.put_limit(&Limit::group("c").slots(2), Source::Config).await.unwrap();
    let configured = place.ask(Method::DELETE, "/v1/limits?group=c", Value::Null).await;
    assert_eq!((configured.status, configured.code()), (StatusCode::CONFLICT, "of_configuration"));
}

pub(crate) async fn limits_that_cannot_be_are_refused(place: Place) {
    for (body, at) in [
        (json!({"rate": "1/s"}), "kind"),
        (json!({"kind": "k", "group": "g", "rate": "1/s"}), "group"),
        (json!({"kind": "k", "rate": "often"}), "rate"),
        (json!({"kind": "k", "rate": "1000000/s"}), "rate"),
        (json!({"kind": "k", "concurrency": 1}), "concurrency"),
        (json!({"group": "g", "concurrency": 0}), "concurrency"),
        (json!({"group": "g", "concurrency": 1, "burst": 1}), "burst"),
        (json!({"group": "g", "rate": "1/s", "burst": 0}), "burst"),
        (json!({"group": "g"}), "rate"),
        (json!({"group": "a*", "concurrency": 1}), "group"),
        (json!({"group": "\u{0}", "concurrency": 1}), "group"),
        (json!({"kind": "", "rate": "1/s"}), "kind"),
    ] {
        let answer = place.ask(Method::PUT, "/v1/limits", body.clone()).await;
        assert_eq!(
            (answer.status, answer.code(), answer.at()),
            (StatusCode::UNPROCESSABLE_ENTITY, "invalid_limit", at),
            "{body}"
        );
    }
    assert_eq!(place.ask(Method::DELETE, "/v1/limits", Value::Null).await.at(), "query kind");
    assert_eq!(place.ask(Method::DELETE, "/v1/limits?group=%00", Value::Null).await.at(), "query group");
}

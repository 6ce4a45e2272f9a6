//! Tests of the doctor: examination and repairs.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::Place;

pub(crate) async fn a_store_is_examined(place: Place) {
    place.created(&json!({"kind": "k", "group": "g"})).await;
    let checks = place.ask(Method::GET, "/v1/doctor/checks", Value::Null).await.body;
    let checks = checks.as_array().unwrap();
    let quick = checks.iter().filter(|check| check["cost"] == "quick").count();
    let examined = place.ask(Method::GET, "/v1/doctor", Value::Null).await.body;
    assert_eq!((&examined["findings"], &examined["answered"]), (&json!([]), &json!(quick)), "{examined}");
    assert_eq!(examined["left_out"], checks.len() - quick);
    let full = place.ask(Method::GET, "/v1/doctor?full=true", Value::Null).await.body;
    assert_eq!((&full["answered"], &full["left_out"]), (&json!(checks.len()), &json!(0)), "{full}");
    let one = place.ask(Method::GET, "/v1/doctor?check=two_ends", Value::Null).await.body;
    assert_eq!((&one["answered"], &one["unanswered"]), (&json!(1), &json!([])));
}

pub(crate) async fn what_is_asked_of_the_doctor_wrong_is_told(place: Place) {
    let unknown = place.ask(Method::GET, "/v1/doctor?check=headache", Value::Null).await;
    assert_eq!((unknown.status, unknown.at()), (StatusCode::BAD_REQUEST, "query check"));
    let repair = |check: &str| place.ask(Method::POST, "/v1/doctor/repair", json!({"check": check}));
    assert_eq!(repair("group_left_waiting").await.body, json!({"mended": 0}));
    let by_hand = repair("two_ends").await;
    assert_eq!((by_hand.code(), by_hand.at()), ("not_repairable", "check"));
    assert_eq!(repair("headache").await.at(), "check");
}

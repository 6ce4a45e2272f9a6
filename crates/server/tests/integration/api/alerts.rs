//! Tests of incidents of alerts and their silences.

use milepost_core::alert::{
    ActiveAlert, AlertKey, AlertRule, IncidentTimes, NoticeRules, NoticeTimes, Severity,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::{Answer, Place};

/// Returns the overview, as soon as it contains these words: its counts are cached.
async fn page_until(place: &Place, words: &str) -> String {
    milepost_testkit::wait::until(words, || async { place.page("/").await.1.contains(words) }).await;
    place.page("/").await.1
}

/// Pauses a queue, and records the alert as a server with a target does.
pub(crate) async fn record(place: &Place) {
    place.store.pause_queue("mail", true).await.unwrap();
    let alerts = milepost_server::alerts(&place.store).await.unwrap();
    let [alert] = &alerts[..] else { panic!("{alerts:?}") };
    let expected = ActiveAlert {
        key: AlertKey::new(AlertRule::QueuePaused, "mail"),
        severity: Severity::Warning,
        title: "Queue mail is paused".to_owned(),
        words: alert.words.clone(),
        command: "milepost queues resume mail".to_owned(),
    };
    assert_eq!(*alert, expected);
    place.store.observe_alerts(&alerts, &IncidentTimes::default()).await.unwrap();
}

async fn listed(place: &Place) -> Value {
    place.get("/v1/alerts").await.body
}

async fn silence(place: &Place, alert: &str, time: &str) -> Answer {
    let body = json!({"alert": alert, "for": time, "reason": "known"});
    place.ask(Method::POST, "/v1/alerts/silence", body).await
}

/// Returns the actions on the alert, newest first.
async fn audited(place: &Place) -> Vec<Value> {
    let whats = place.get("/v1/audit?subject=queue_paused%3A%20mail").await.body;
    whats["items"].as_array().unwrap().iter().map(|entry| entry["what"].clone()).collect()
}

async fn the_silence_ends_when_asked(place: &Place) {
    let body = json!({"alert": "queue_paused: mail", "reason": "solved"});
    let ended = place.ask(Method::POST, "/v1/alerts/unsilence", body).await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT);
    assert_eq!(listed(place).await[0]["silence"], Value::Null);
    assert_eq!(audited(place).await, ["alert.unsilence", "alert.silence"]);
}

pub(crate) async fn alerts_are_listed_and_silenced(place: Place) {
    assert_eq!(listed(&place).await, json!([]));
    let early = silence(&place, "queue_paused: mail", "1h").await;
    assert_eq!((early.status, early.code()), (StatusCode::NOT_FOUND, "no_such_alert"));
    record(&place).await;
    let alerts = listed(&place).await;
    assert_eq!((&alerts[0]["rule"], &alerts[0]["silence"]), (&json!("queue_paused"), &Value::Null));
    assert_eq!(place.get("/v1/status").await.body[0]["alert"], "queue_paused: mail");
    assert_eq!(silence(&place, "queue_paused: mail", "over").await.status, StatusCode::NO_CONTENT);
    let alerts = listed(&place).await;
    assert_eq!(
        (&alerts[0]["silence"]["reason"], &alerts[0]["silence"]["until"]),
        (&json!("known"), &Value::Null)
    );
    for (alert, time, at) in [("paused: mail", "1h", "alert"), ("queue_paused: mail", "soon", "for")] {
        let refused = silence(&place, alert, time).await;
        assert_eq!((refused.code(), refused.at()), ("invalid_silence", at));
    }
    the_silence_ends_when_asked(&place).await;
    assert_eq!(place.get("/v1/alerts?limit=0").await.at(), "query limit");
    let rules = NoticeRules::new("oncall");
    place.store.claim_notices(&rules, &NoticeTimes::default()).await.unwrap();
    assert_eq!(place.get("/v1/alert-targets").await.body[0]["name"], "oncall");
}

pub(crate) async fn an_alert_is_silenced_in_the_console(place: Place) {
    place.store.pause_queue("mail", true).await.unwrap();
    page_until(&place, "Queue mail is paused").await;
    assert!(!place.page("/").await.1.contains("/alerts/silence"), "no server records it");
    place.store.pause_queue("mail", false).await.unwrap();
    record(&place).await;
    let html = page_until(&place, "action=\"/alerts/silence\"").await;
    assert!(html.contains("<option value=\"8h\">8 hours</option>"), "{html}");
    let send = async |url: &str, time: &str| {
        let fields = [("alert", "queue_paused: mail"), ("for", time), ("reason", "known <b>"), ("back", "/")];
        place.form(url, &fields).await.1
    };
    assert_eq!(send("/alerts/silence", "8h").await, "done.Silenced: queue_paused: mail.");
    let html = page_until(&place, "action=\"/alerts/unsilence\"").await;
    assert!(html.contains("alert warning silenced") && html.contains("known &#60;b&#62;"), "{html}");
    assert!(send("/alerts/silence", "late").await.starts_with("refused"));
    assert_eq!(send("/alerts/unsilence", "").await, "done.queue_paused: mail is no longer silenced.");
}

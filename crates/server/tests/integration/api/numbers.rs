//! Tests of `/metrics`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use milepost_core::bulk::operation;
use milepost_core::event::{Aggregate, Begin, NewEvent};
use milepost_core::worker::NewWorker;
use milepost_testkit::faulty::Faulty;
use milepost_testkit::wait;
use reqwest::StatusCode;
use serde_json::json;
use tokio::time::timeout;

use crate::api::jobs::fail;
use crate::api::place::{Answer, Place};

/// The default scrape timeout of Prometheus, after which it gets no metrics at all.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns whether the response contains this line.
fn tells(answer: &Answer, line: &str) -> bool {
    answer.body.as_str().unwrap().lines().any(|its| its == line)
}

pub(crate) async fn metrics_tell_of_jobs_and_subscriptions(place: Place) {
    place.store.subscribe("orders", Begin::Beginning).await.unwrap();
    for n in 0..3 {
        place.created(&json!({"kind": "k", "queue": "post \"office\""})).await;
        let event = NewEvent::new(Aggregate::new("order", "1"), "order.paid", &n).unwrap();
        place.store.emit(&event).await.unwrap();
    }
    let answer = place.get("/metrics").await;
    assert!(answer.content_type.starts_with("application/openmetrics-text"), "{answer:?}");
    for line in [
        "# TYPE milepost_jobs gauge",
        "milepost_jobs{queue=\"post \\\"office\\\"\",kind=\"k\",state=\"pending\"} 3.0",
        "milepost_batches{state=\"running\"} 0.0",
        "milepost_relay_backlog_events{subscription=\"orders\"} 3.0",
        "milepost_relay_publishers{subscription=\"orders\"} 0.0",
        "milepost_store_up 1.0",
        "milepost_things_done_total{by=\"me\"} 7.0",
        "milepost_thing_size_bucket{le=\"2.0\"} 5",
        "milepost_thing_size_bucket{le=\"+Inf\"} 6",
        "# EOF",
    ] {
        assert!(tells(&answer, line), "{line} is not in\n{}", answer.body);
    }
}

pub(crate) async fn metrics_tell_of_jobs_that_are_due_and_not_of_reminders(place: Place) {
    place.created(&json!({"kind": "k", "queue": "now"})).await;
    for delay_ms in [3_600_000, 86_400_000] {
        place.created(&json!({"kind": "reminder", "queue": "later", "delay_ms": delay_ms})).await;
    }
    let answer = place.get("/metrics").await;
    for line in [
        "milepost_jobs{queue=\"later\",kind=\"reminder\",state=\"pending\"} 2.0",
        "milepost_jobs_due{queue=\"later\"} 0.0",
        "milepost_jobs_due{queue=\"now\"} 1.0",
        "milepost_queue_backlog_age_seconds{queue=\"later\"} 0.0",
    ] {
        assert!(tells(&answer, line), "{line} is not in\n{}", answer.body);
    }
    let text = answer.body.as_str().unwrap();
    let prefix = "milepost_queue_backlog_age_seconds{queue=\"now\"} ";
    let age = text.lines().find_map(|line| line.strip_prefix(prefix));
    assert!(age.is_some_and(|age| age.parse::<f64>().unwrap() > 0.0), "{age:?}");
}

pub(crate) async fn the_worker_that_a_server_keeps_for_operators_is_not_counted(place: Place) {
    let register = async |kind: &str| {
        let kinds = vec![kind.to_owned()];
        let worker = NewWorker {
            name: kind.to_owned(),
            queues: vec!["q".to_owned()],
            kinds,
            lease: SCRAPE_TIMEOUT,
            ..NewWorker::default()
        };
        place.store.register_worker(&worker).await.unwrap();
    };
    register(operation::NAME).await;
    let answer = place.get("/metrics").await;
    assert!(tells(&answer, "milepost_workers 0.0"), "{}", answer.body);
    register("mail").await;
    // Use another server, which has no cached metrics.
    let answer = place.beside(milepost_server::Options::default()).await.get("/metrics").await;
    assert!(tells(&answer, "milepost_workers 1.0"), "{}", answer.body);
}

pub(crate) async fn a_store_that_does_not_answer_is_told_before_prometheus_gives_up(place: Place) {
    let silent = Faulty::before(Arc::clone(&place.store));
    let server = Place::serve(silent.clone()).await;
    assert_eq!(server.get("/readyz").await.status, StatusCode::OK);
    let ask = async || timeout(SCRAPE_TIMEOUT, server.get("/metrics")).await.expect("a response in time");
    let own = "milepost_things_done_total{by=\"me\"} 7.0";
    silent.hold_looks(true);
    let busy = ask().await;
    assert!(tells(&busy, "milepost_store_up 1.0") && tells(&busy, own), "{}", busy.body);
    assert!(!busy.body.to_string().contains("milepost_workers"), "{}", busy.body);
    silent.hold_access(true);
    let down = ask().await;
    assert!(tells(&down, "milepost_store_up 0.0") && tells(&down, own), "{}", down.body);
    assert_eq!(server.get("/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
    silent.hold_access(false);
    silent.hold_looks(false);
    let answer = ask().await;
    assert!(
        tells(&answer, "milepost_store_up 1.0") && tells(&answer, "milepost_workers 0.0"),
        "{}",
        answer.body
    );
}

pub(crate) async fn a_store_that_is_away_at_the_start_does_not_end_the_server(place: Place) {
    let away = Faulty::before(Arc::clone(&place.store));
    away.access_lost.store(2, Ordering::SeqCst);
    let server = Place::serve(away.clone()).await;
    assert_eq!(server.get("/readyz").await.status, StatusCode::OK);
    assert_eq!(away.access_lost.load(Ordering::SeqCst), 0);
}

pub(crate) async fn how_many_jobs_wait_is_charted_also_while_nobody_looks(place: Place) {
    for _ in 0..3 {
        place.created(&json!({"kind": "k"})).await;
    }
    wait::until("the chart shows the three jobs", || async {
        let series = place.get("/series-recent.json").await.body;
        series["backlog"].as_array().unwrap().iter().any(|jobs| *jobs == json!(3))
    })
    .await;
}

pub(crate) async fn attempts_of_the_last_hour_are_told_by_minute_queue_and_kind(place: Place) {
    let total = |answer: &Answer, column: &str| {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        answer.body[column].as_array().unwrap().iter().map(|times| times.as_u64().unwrap()).sum::<u64>()
    };
    let told = async |query: &str| {
        let answer = place.get(&format!("/v1/metrics/series{query}")).await;
        [total(&answer, "started"), total(&answer, "succeeded"), total(&answer, "failed")]
    };
    place.created(&json!({"kind": "k", "max_attempts": 2})).await;
    fail(&place, &["no. 1", "no. 2"].map(str::to_owned)).await;
    place.store.roll_up(Duration::ZERO).await.unwrap();
    for query in ["", "?range=day", "?range=week", "?queue=default", "?kind=k&queue=default"] {
        assert_eq!(told(query).await, [2, 0, 2], "{query}");
    }
    assert_eq!(told("?kind=other").await, [0, 0, 0]);
    let hour = place.get("/v1/metrics/series").await.body;
    assert_eq!((&hour["step_s"], hour["at"].as_array().unwrap().len()), (&json!(60), 60));
    let refused = place.get("/v1/metrics/series?range=year").await;
    assert_eq!((refused.status, refused.at()), (StatusCode::BAD_REQUEST, "query range"), "{}", refused.body);
    // A minute of which less than a second was counted has no rate yet.
    wait::until("the chart shows the rate of failures", || async {
        place.store.roll_up(Duration::ZERO).await.unwrap();
        let charts = place.get("/series.json?kind=k").await.body;
        charts["failed"].as_array().unwrap().iter().any(|rate| rate.as_f64() > Some(0.0))
    })
    .await;
}

pub(crate) async fn a_list_of_a_queue_or_kind_has_its_charts(place: Place) {
    let charts = async |path: &str| place.page(path).await.1.contains("data-series=");
    assert!(
        charts("/").await && charts("/jobs?queue=a%26b&state=failed").await && charts("/jobs?kind=k").await
    );
    assert!(!charts("/jobs").await);
    let page = place.page("/jobs?queue=a%26b").await.1;
    assert!(page.contains("uplot.min") && !place.page("/jobs").await.1.contains("uplot.min"), "{page}");
    assert!(page.contains("data-series=\"&#38;queue=a%26b\""), "{page}");
}

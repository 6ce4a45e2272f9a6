//! `/metrics` tells what the store knows and what the process counts.

use milepost_core::event::{Aggregate, Begin, NewEvent};
use serde_json::json;

use crate::place::Place;

pub(crate) async fn metrics_tell_of_jobs_and_subscriptions(place: Place) {
    place.store.subscribe("orders", Begin::Beginning).await.unwrap();
    for n in 0..3 {
        place.created(&json!({"kind": "k", "queue": "post \"office\""})).await;
        let event = NewEvent::new(Aggregate::new("order", "1"), "order.paid", &n).unwrap();
        place.store.emit(&event).await.unwrap();
    }
    let answer = place.get("/metrics").await;
    assert!(answer.content_type.starts_with("application/openmetrics-text"), "{answer:?}");
    let text = answer.body.as_str().unwrap();
    for line in [
        "# TYPE milepost_jobs gauge",
        "milepost_jobs{queue=\"post \\\"office\\\"\",kind=\"k\",state=\"pending\"} 3.0",
        "milepost_batches{state=\"running\"} 0.0",
        "milepost_relay_backlog_events{subscription=\"orders\"} 3.0",
        "milepost_relay_publishers{subscription=\"orders\"} 0.0",
        "milepost_store_up 1.0",
        "milepost_things_done_total{by=\"me\"} 7.0",
        "# EOF",
    ] {
        assert!(text.lines().any(|its| its == line), "{line} is not in\n{text}");
    }
}

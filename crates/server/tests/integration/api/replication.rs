//! Answers that depend on a commit that no synchronous standby has.

use milepost_core::schedule::{Schedule, Source, Spec};
use milepost_testkit::Scene;
use milepost_testkit::lonely::Lonely;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::api::place::Place;

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_was_made_already_is_told_when_a_standby_has_it() {
    let mut lonely = Lonely::create().await;
    let store = lonely.scene.store.clone();
    let daily = Schedule::new("daily", Spec::cron("@daily", "UTC").unwrap(), Scene::job());
    store.put_schedule(&daily, Source::Operator).await.unwrap();
    let place = Place::serve(store.clone()).await;
    let again = place
        .request(Method::POST, "/v1/schedules/daily/operate")
        .json(&json!({"operation": "pause", "reason": "maintenance"}));
    let lost = async move { store.pause_schedule("daily").await.map(drop) };
    let again = async move { Ok(again.send().await.unwrap()) };
    let told = lonely.told_when_safe(lost, again).await;
    assert_eq!(told.status(), StatusCode::OK);
}

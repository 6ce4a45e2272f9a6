//! Tests of event pages of the console.

use std::time::Duration;

use jiff::Timestamp;
use milepost_core::event::Undelivered;
use milepost_testkit::wait;

use crate::api::console::{EVIL, fill};
use crate::api::events;
use crate::api::place::Place;

pub(crate) async fn what_is_parked_and_given_up_is_mended_on_its_page(place: Place) {
    let store = place.store.as_ref();
    fill(store).await;
    let parked = store.parked(None, None, 1).await.unwrap().remove(0);
    let of = &parked.first.aggregate;
    let edit = |payload: &'static str| {
        place.form(
            "/events/parked",
            &[
                ("subscription", EVIL),
                ("aggregate_type", &of.kind),
                ("aggregate_id", &of.id),
                ("operation", "edit"),
                ("payload", payload),
                ("reason", "typo"),
            ],
        )
    };
    let html = place.page("/events").await.1;
    let form = html.split(">Close<").find(|form| form.contains("name=\"payload\"")).unwrap();
    let begins_in = form.split(" autofocus").next().unwrap().rsplit(" name=\"").next().unwrap();
    assert!(begins_in.starts_with("payload"), "the payload field gets the focus: {form}");
    assert!(edit("{").await.1.starts_with("refused"));
    assert!(
        html.contains(&format!("name=\"event\" value=\"{}\"", parked.first.id)),
        "the form names its event"
    );
    assert!(edit("{\"mended\": true}").await.1.starts_with("done"));
    assert!(place.page("/events").await.1.contains("mended"));
    let dead = store.dead_events(None, None, 1).await.unwrap().remove(0).event.id.to_string();
    let drop = [("subscription", EVIL), ("event", &*dead), ("operation", "drop"), ("reason", "old")];
    assert!(place.form("/dead-letters/event", &drop).await.1.starts_with("done"));
    assert!(store.dead_events(None, None, 1).await.unwrap().is_empty());
    let since = (Timestamp::now() - Duration::from_secs(60)).to_string();
    let replay = [("subscription", EVIL), ("since", &*since), ("reason", "lost")];
    assert!(place.form("/events/replay", &replay).await.1.contains("are published again"));
    let pause = [("subscription", EVIL), ("operation", "pause"), ("reason", "the broker moves")];
    assert!(place.form("/events/subscription", &pause).await.1.starts_with("done"));
    assert_eq!(store.subscriptions().await.unwrap()[0].paused_why.as_deref(), Some("the broker moves"));
    let run = [("schedule", EVIL), ("operation", "run_now"), ("reason", "now")];
    assert!(place.form("/schedule/operate", &run).await.1.contains("was enqueued"));
}

pub(crate) async fn the_form_that_runs_a_schedule_makes_one_job_if_it_is_submitted_twice(place: Place) {
    fill(place.store.as_ref()).await;
    let html = place.page("/schedules").await.1;
    let id = html.split(r#"name="form" value=""#).nth(1).unwrap().split('"').next().unwrap();
    let run = [("schedule", EVIL), ("operation", "run_now"), ("reason", "now"), ("form", id)];
    let submit = async || place.form("/schedule/operate", &run).await.1;
    let (first, second) = (submit().await, submit().await);
    let job = |said: &str| said.split("Job ").nth(1).unwrap()[..36].to_owned();
    assert!(!first.contains("submitted before") && second.contains("submitted before"), "{first} {second}");
    assert_eq!(job(&first), job(&second));
}

pub(crate) async fn the_overview_tells_of_parked_aggregates(place: Place) {
    events::emit_orders(&place, 2).await;
    events::fail_as(&place, "mail", 1, Undelivered::Retry(Duration::from_secs(600))).await;
    let overview = async || place.page("/").await.1;
    wait::until("an alert is shown", async || overview().await.contains("1 aggregate is parked in mail"))
        .await;
    assert!(overview().await.contains("href=\"/events?subscription=mail#parked\""), "{}", overview().await);
    assert!(overview().await.contains("The error of one: no"), "{}", overview().await);
}

pub(crate) async fn all_halted_aggregates_of_a_subscription_are_retried_by_one_button(place: Place) {
    events::emit_orders(&place, 60).await;
    events::fail(&place, "mail", 30).await;
    let halted = "30 aggregates are halted in mail";
    let overview = async || place.page("/").await.1;
    wait::until("an alert is shown", async || overview().await.contains(halted)).await;
    let question = "Retry the first events of 30 aggregates in mail?";
    assert!(overview().await.contains(question), "the alert has the button");
    assert!(place.page("/events").await.1.contains(question), "the row of the subscription has it, too");
    let retry = [("subscription", "mail"), ("operation", "retry_parked"), ("reason", "the broker is back")];
    let said = place.form("/events/subscription", &retry).await.1;
    assert_eq!(said, "done.The first events of 30 aggregates in mail are retried now.");
    let parked = place.store.parked(Some("mail"), None, 100).await.unwrap();
    assert_eq!(parked.len(), 30);
    assert!(parked.iter().all(|view| view.next_delivery_at.is_some()), "none is halted: {parked:?}");
    let unknown = [("subscription", "gone"), ("operation", "retry_parked"), ("reason", "x")];
    assert!(place.form("/events/subscription", &unknown).await.1.starts_with("refused"));
}

/// Returns the target of a link with this text.
fn link(html: &str, name: &str) -> String {
    let before = html.split(&format!(">{name}</a>")).next().unwrap();
    let url = before.rsplit("href=\"").next().unwrap().split('"').next().unwrap();
    let url = url.replace("&#38;", "&").replace("&amp;", "&");
    url.split('#').next().unwrap().to_owned()
}

pub(crate) async fn long_lists_of_what_is_parked_and_given_up_go_on(place: Place) {
    events::emit_orders(&place, 120).await;
    events::fail(&place, "mail", 60).await;
    for (page, row, more, back) in
        [("/events", "<b>order ", "More", "First"), ("/dead-letters", "</b> order ", "Older", "Newest")]
    {
        let first =
            place.page(&format!("{page}?subscription=mail&aggregate_type=none&aggregate_id=0")).await.1;
        assert_eq!(
            (first.matches(row).count(), first.contains(&format!(">{back}</a>"))),
            (50, false),
            "{first}"
        );
        let rest = place.page(&link(&first, more)).await.1;
        assert_eq!(
            (rest.matches(row).count(), rest.contains(&format!(">{more}</a>"))),
            (10, false),
            "{rest}"
        );
        let again = place.page(&link(&rest, back)).await.1;
        assert_eq!(again.matches(row).count(), 50);
    }
}

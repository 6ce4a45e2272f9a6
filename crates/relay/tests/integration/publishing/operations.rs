//! Operations on subscriptions, and what operators see.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::event::listing::{EventFilter, EventPage};
use milepost_core::event::relay_listing::{DeadVerb, DeliveryState, ParkedVerb, Replay};
use milepost_core::event::{Aggregate, Exhausted, Outcome, RelayError};
use milepost_core::ident::EventId;
use milepost_testkit::wait;
use tokio::runtime::Handle;

use crate::common::script::Answer;
use crate::publishing::desk::{ALL, Desk, Running, giving_up, options, up_to};

pub(super) fn order(id: &str) -> Aggregate {
    Aggregate::new("order", id)
}

/// Emits three events of order 1; the first one fails and waits for an operator.
async fn halted(desk: &Desk) -> Running {
    desk.emit("1", 3).await;
    desk.sink.answer(|_| Answer::Refuse);
    let running = desk.run(giving_up("s", 1, Exhausted::Halt));
    wait::until("the aggregate is parked", || async {
        !desk.store.parked(None, None, 10).await.unwrap().is_empty()
    })
    .await;
    desk.sink.answer(|_| Answer::Take);
    running
}

pub(super) async fn relay_error<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> RelayError {
    match answer {
        Err(StoreError::Relay(error)) => error,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_parked_aggregate_is_shown_with_what_the_sink_said(desk: Desk) {
    let running = halted(&desk).await;
    let parked = desk.store.parked(Some("s"), None, 10).await.unwrap();
    let [of] = &parked[..] else { panic!("{parked:?}") };
    assert_eq!((of.first.aggregate.clone(), of.first.sequence, of.events), (order("1"), 1, 3));
    assert_eq!((of.deliveries, of.next_delivery_at, of.why.as_str()), (1, None, "refused by the script"));
    assert!(desk.store.parked(Some("other"), None, 10).await.unwrap().is_empty());
    let subscriptions = desk.store.subscriptions().await.unwrap();
    assert_eq!((subscriptions[0].parked_aggregates, subscriptions[0].halted_aggregates), (1, 1));
    assert_eq!(subscriptions[0].parked_why.as_deref(), Some("refused by the script"));
    assert_eq!(subscriptions[0].publishers[0].label, "test");
    running.stop().await;
}

pub(crate) async fn a_retry_lets_a_halted_aggregate_go_on(desk: Desk) {
    let running = halted(&desk).await;
    desk.store.change_parked("s", &order("1"), None, &ParkedVerb::Retry).await.unwrap();
    desk.until_taken(3).await;
    running.stop().await;
    assert_eq!(desk.sink.firsts("1"), up_to(3));
    assert!(desk.store.parked(None, None, 10).await.unwrap().is_empty());
}

/// Returns what became of each event of order 1 for subscription s, by sequence.
async fn deliveries(desk: &Desk) -> Vec<(i64, DeliveryState)> {
    let page = EventPage::Before(None);
    let filter = EventFilter { aggregate: Some(order("1")), event_type: None, page, limit: 10 };
    let log = desk.store.events(&filter).await.unwrap();
    let ids: Vec<EventId> = log.iter().map(|logged| logged.event.id).collect();
    let sequence = |id: EventId| log.iter().find(|logged| logged.event.id == id).unwrap().event.sequence;
    let deliveries = desk.store.deliveries(&ids).await.unwrap();
    let of_s = deliveries.into_iter().filter(|delivery| delivery.subscription == "s");
    let mut states: Vec<_> = of_s.map(|delivery| (sequence(delivery.event), delivery.state)).collect();
    states.sort_unstable_by_key(|(sequence, _)| *sequence);
    states
}

pub(crate) async fn a_skip_goes_past_the_first_event_and_keeps_it(desk: Desk) {
    use DeliveryState::{Parked, Passed, Skipped, Waiting};
    let running = halted(&desk).await;
    assert_eq!(deliveries(&desk).await, [(1, Parked), (2, Parked), (3, Parked)]);
    desk.store.change_parked("s", &order("1"), None, &ParkedVerb::Skip).await.unwrap();
    desk.until_taken(2).await;
    running.stop().await;
    assert_eq!(desk.sink.firsts("1"), [2, 3]);
    let dead = desk.store.dead_events(None, None, 10).await.unwrap();
    assert_eq!((dead.len(), dead[0].event.sequence, dead[0].skipped), (1, 1, true));
    desk.emit("1", 1).await;
    assert_eq!(deliveries(&desk).await, [(1, Skipped), (2, Passed), (3, Passed), (4, Waiting)]);
}

pub(crate) async fn an_event_that_is_named_is_changed_only_while_it_is_the_first(desk: Desk) {
    let running = halted(&desk).await;
    let first = desk.store.parked(None, None, 1).await.unwrap()[0].first.id;
    let skip = async |event| desk.store.change_parked("s", &order("1"), Some(event), &ParkedVerb::Skip).await;
    skip(first).await.unwrap();
    desk.until_taken(2).await;
    running.stop().await;
    let running = halted(&desk).await;
    let subscription = "s".to_owned();
    let error = relay_error(skip(first).await).await;
    assert_eq!(error, RelayError::NotFirst { subscription, aggregate: order("1"), event: first });
    running.stop().await;
    assert_eq!(desk.store.dead_events(None, None, 10).await.unwrap().len(), 1, "nothing else was skipped");
}

pub(crate) async fn an_edited_event_is_published_with_its_new_payload_under_its_id(desk: Desk) {
    let running = halted(&desk).await;
    let id = desk.store.parked(None, None, 1).await.unwrap()[0].first.id;
    let bad = ParkedVerb::edit("{").unwrap_err();
    assert!(matches!(bad, RelayError::Payload(_)), "{bad}");
    let edit = ParkedVerb::edit(r#"{"mended": true}"#).unwrap();
    desk.store.change_parked("s", &order("1"), None, &edit).await.unwrap();
    desk.until_taken(3).await;
    running.stop().await;
    let first = &desk.sink.taken()[0];
    assert_eq!((first.id, first.payload.get()), (id, r#"{"mended": true}"#));
}

/// Edits the first event of order 1 while the sink has its second attempt, which ends like this. Returns the payloads that the sink took.
async fn edited_during_an_attempt(desk: &Desk, then: Answer) -> Vec<String> {
    desk.emit("1", 2).await;
    let (store, runtime, attempts) = (desk.store.clone(), Handle::current(), AtomicUsize::new(0));
    desk.sink.answer(move |_| match attempts.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::Refuse,
        1 => {
            let edit = ParkedVerb::edit(r#"{"edited": true}"#).unwrap();
            let edited = async { store.change_parked("s", &order("1"), None, &edit).await.unwrap() };
            tokio::task::block_in_place(|| runtime.block_on(edited));
            then.clone()
        }
        _ => Answer::Take,
    });
    let running = desk.run(giving_up("s", 2, Exhausted::DeadLetter));
    desk.until_taken(2).await;
    running.stop().await;
    assert!(desk.store.dead_events(None, None, 10).await.unwrap().is_empty());
    desk.sink.taken().iter().map(|event| event.payload.get().to_owned()).collect()
}

pub(crate) async fn an_edit_counts_although_an_attempt_fails_at_that_moment(desk: Desk) {
    let taken = edited_during_an_attempt(&desk, Answer::Refuse).await;
    assert_eq!(taken, [r#"{"edited": true}"#, "null"]);
}

pub(crate) async fn an_edit_counts_although_an_attempt_succeeds_at_that_moment(desk: Desk) {
    let taken = edited_during_an_attempt(&desk, Answer::Take).await;
    assert_eq!(taken, ["null", r#"{"edited": true}"#, "null"]);
}

pub(crate) async fn what_is_not_parked_or_dead_cannot_be_changed(desk: Desk) {
    let running = desk.run(options("s"));
    desk.emit("1", 1).await;
    desk.until_taken(1).await;
    running.stop().await;
    let error = relay_error(desk.store.change_parked("s", &order("1"), None, &ParkedVerb::Retry).await).await;
    assert_eq!(error, RelayError::NotParked { subscription: "s".to_owned(), aggregate: order("1") });
    let error = relay_error(desk.store.change_parked("t", &order("1"), None, &ParkedVerb::Retry).await).await;
    assert_eq!(error, RelayError::NoSuchSubscription("t".to_owned()));
    let event = EventId::new();
    let error = relay_error(desk.store.change_dead("s", event, DeadVerb::Retry).await).await;
    assert_eq!(error, RelayError::NotDead { subscription: "s".to_owned(), event });
    let error = relay_error(desk.store.pause_subscription("t", "why").await).await;
    assert_eq!(error, RelayError::NoSuchSubscription("t".to_owned()));
    let error = relay_error(desk.store.resume_subscription("t").await).await;
    assert_eq!(error, RelayError::NoSuchSubscription("t".to_owned()));
}

pub(crate) async fn a_dead_letter_is_published_again_or_forgotten(desk: Desk) {
    desk.emit("1", 3).await;
    desk.sink.answer(|e| if e.sequence < 3 { Answer::Unacceptable } else { Answer::Take });
    let running = desk.run(options("s"));
    desk.until_taken(1).await;
    wait::until("there are two dead letters", || async {
        desk.store.dead_events(None, None, 10).await.unwrap().len() == 2
    })
    .await;
    desk.sink.answer(|_| Answer::Take);
    let dead = desk.store.dead_events(Some("s"), None, 10).await.unwrap();
    let of = |sequence| dead.iter().find(|of| of.event.sequence == sequence).unwrap().event.id;
    desk.store.change_dead("s", of(1), DeadVerb::Retry).await.unwrap();
    desk.store.change_dead("s", of(2), DeadVerb::Drop).await.unwrap();
    desk.until_taken(2).await;
    assert_eq!(desk.sink.firsts("1"), [3, 1]);
    assert!(desk.store.dead_events(None, None, 10).await.unwrap().is_empty());
    desk.emit("1", 1).await;
    desk.until_taken(3).await;
    running.stop().await;
}

pub(crate) async fn a_changed_filter_leaves_parked_events_and_dead_letters_alone(desk: Desk) {
    desk.emit("1", 3).await;
    desk.emit("2", 1).await;
    desk.sink.answer(|e| if e.aggregate.id == "2" { Answer::Unacceptable } else { Answer::Refuse });
    let running = desk.run(options("s"));
    wait::until("the aggregate is parked, and there is a dead letter", || async {
        let parked = desk.store.parked(None, None, 10).await.unwrap();
        let dead = desk.store.dead_events(None, None, 10).await.unwrap();
        parked.iter().map(|of| of.events).sum::<i64>() == 3 && dead.len() == 1
    })
    .await;
    running.stop().await;
    let dead = desk.store.dead_events(Some("s"), None, 10).await.unwrap()[0].event.id;
    desk.sink.answer(|_| Answer::Take);
    let mut others = options("s");
    others.subscription.filter.aggregate_types = vec!["invoice".to_owned()];
    let running = desk.run(others.clone());
    desk.store.change_dead("s", dead, DeadVerb::Retry).await.unwrap();
    desk.until_taken(4).await;
    desk.emit("1", 1).await;
    wait::until("the log is passed", || async { desk.store.subscriptions().await.unwrap()[0].backlog == 0 })
        .await;
    running.stop().await;
    assert_eq!((desk.sink.firsts("1"), desk.sink.firsts("2")), (up_to(3), up_to(1)));
    // Of events that are published again, the filter leaves out all but the one that the operator names.
    desk.store.replay("s", &Replay::Aggregate { aggregate: order("1"), from: 1 }).await.unwrap();
    desk.store.change_parked("s", &order("1"), None, &ParkedVerb::Retry).await.unwrap();
    let running = desk.run(others);
    wait::until("nothing is parked", || async { desk.store.parked(None, None, 1).await.unwrap().is_empty() })
        .await;
    running.stop().await;
    let again: Vec<i64> = desk.sink.taken()[4..].iter().map(|event| event.sequence).collect();
    assert_eq!(again, [1]);
}

pub(crate) async fn a_frozen_publisher_changes_nothing_of_a_subscription_that_was_created_again(desk: Desk) {
    desk.emit("1", 4).await;
    let (frozen, mut its) = desk.reader("s", Duration::from_secs(600)).await;
    its.balance().await.unwrap();
    its.page(ALL).await.unwrap();
    assert!(its.pass());
    assert!(desk.store.remove_subscription("s").await.unwrap());
    let (next, mut other) = desk.reader("s", Duration::from_secs(600)).await;
    other.balance().await.unwrap();
    let _ = its.commit(&Outcome::default()).await;
    assert_eq!(desk.store.subscriptions().await.unwrap()[0].backlog, 4, "all are to be published again");
    assert_eq!(other.page(ALL).await.unwrap().events.len(), 4);
    desk.store.leave(&frozen).await.unwrap();
    desk.store.leave(&next).await.unwrap();
}

pub(crate) async fn a_subscription_that_is_deleted_while_it_is_published_starts_again(desk: Desk) {
    desk.emit("1", 3).await;
    let running = desk.run(options("s"));
    desk.until_taken(3).await;
    assert!(desk.store.remove_subscription("s").await.unwrap());
    wait::until("all is published again", || async { desk.sink.taken().len() >= 6 }).await;
    desk.emit("1", 1).await;
    desk.until_taken(4).await;
    running.stop().await;
    let subscriptions = desk.store.subscriptions().await.unwrap();
    assert_eq!((subscriptions.len(), subscriptions[0].backlog), (1, 0));
}

pub(crate) async fn only_what_every_subscription_has_passed_is_forgotten(desk: Desk) {
    desk.emit_mixed(10, 100).await;
    let one = desk.run(options("one"));
    desk.until_taken(100).await;
    one.stop().await;
    // A second subscription has not read anything yet.
    desk.reader("two", Duration::from_secs(1)).await;
    prune(&desk).await;
    assert_eq!(desk.store.subscriptions().await.unwrap()[1].backlog, 100);
    desk.store.remove_subscription("two").await.unwrap();

    desk.sink.answer(|e| if e.aggregate.id == "x" { Answer::Refuse } else { Answer::Take });
    desk.emit("x", 2).await;
    let one = desk.run(options("one"));
    wait::until("the aggregate x is parked", || async {
        desk.store.parked(None, None, 10).await.unwrap().len() == 1
    })
    .await;
    prune(&desk).await;
    let left = desk.store.parked(None, None, 10).await.unwrap();
    assert_eq!(left[0].events, 2, "parked events are kept");
    let error =
        relay_error(desk.store.replay("one", &Replay::Aggregate { aggregate: order("3"), from: 1 }).await)
            .await;
    assert_eq!(error, RelayError::NoEvents(order("3")), "published events are deleted");
    desk.emit("3", 1).await;
    desk.until_taken(101).await;
    let error =
        relay_error(desk.store.replay("one", &Replay::Aggregate { aggregate: order("3"), from: 1 }).await)
            .await;
    assert_eq!(error, RelayError::BeforeRetention { aggregate: order("3"), first: 11 });
    desk.sink.answer(|_| Answer::Take);
    desk.until_taken(103).await;
    one.stop().await;
    assert_eq!(desk.sink.firsts("x"), [1, 2]);
}

async fn prune(desk: &Desk) {
    while desk.store.prune_log(Duration::ZERO).await.unwrap().is_some() {}
}

pub(crate) async fn a_paused_subscription_goes_on_when_it_is_resumed(desk: Desk) {
    let running = desk.run(options("s"));
    desk.emit("1", 1).await;
    desk.until_taken(1).await;
    desk.store.pause_subscription("s", "maintenance of the receiver").await.unwrap();
    wait::until("the publisher holds no slots", || async { running.stats.view().slots == 0 }).await;
    desk.emit("1", 1).await;
    let view = desk.store.subscriptions().await.unwrap().remove(0);
    assert_eq!((view.paused_why.as_deref(), view.backlog), (Some("maintenance of the receiver"), 1));
    assert_eq!(desk.sink.taken().len(), 1);
    assert!(desk.store.resume_subscription("s").await.unwrap());
    assert!(!desk.store.resume_subscription("s").await.unwrap());
    desk.until_taken(2).await;
    running.stop().await;
}

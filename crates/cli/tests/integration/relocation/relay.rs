//! Tests that subscriptions are moved.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use milepost_conformance::changes::{assert_emitted, want_kinds};
use milepost_core::event::relay_listing::{ParkedVerb, Replay};
use milepost_core::event::{
    Aggregate, Begin, Changes, Event, Failure, NewEvent, Outcome, PageSize, Publisher, Undelivered,
};
use milepost_core::event_work::{EventWork, Work};
use milepost_core::job::NewJob;
use milepost_core::port::{LogReader, Operation, Store};
use milepost_core::transition::Verb;
use milepost_testkit::scene::KIND;
use milepost_testkit::{Scene, relay, wait};
use serde_json::{Value, json};

use crate::relocation::Move;
use crate::support::block_on;

/// A publisher of one subscription.
struct Desk<'a> {
    store: &'a dyn Store,
    publisher: Publisher,
    reader: Box<dyn LogReader>,
}

impl<'a> Desk<'a> {
    async fn at(store: &'a dyn Store, subscription: &str) -> Self {
        let (publisher, reader) = relay::reader(store, subscription, Duration::from_secs(60)).await;
        Self { store, publisher, reader }
    }

    /// Reads a page and commits its outcome; events that the outcome does not mention are delivered.
    async fn publish(&mut self, events_max: usize, become_of: impl Fn(&[Event]) -> Outcome) -> Vec<Event> {
        let page = self.reader.page(PageSize { events_max, bytes_max: 1 << 20 }).await.unwrap();
        self.reader.commit(&become_of(&page.events)).await.unwrap();
        page.events
    }

    /// Publishes all events except those of parked orders; returns the sequences with their order.
    async fn publish_all(&mut self, parked: &[&str]) -> Vec<(String, i64)> {
        let waits = |event: &&Event| parked.contains(&event.aggregate.id.as_str());
        let mut published = Vec::new();
        loop {
            let behind = |events: &[Event]| Outcome {
                behind: events.iter().filter(waits).map(|event| event.id).collect(),
                ..Outcome::default()
            };
            let page = self.publish(100, behind).await;
            if page.is_empty() {
                published.sort();
                return published;
            }
            let delivered = page.iter().filter(|event| !waits(event));
            published.extend(delivered.map(|event| (event.aggregate.id.clone(), event.sequence)));
        }
    }

    async fn leave(self) {
        self.store.leave(&self.publisher).await.unwrap();
    }
}

fn failed(event: &Event, then: Undelivered) -> Failure {
    Failure { event: event.id, deliveries: 3, why: "told so: ü".to_owned(), then }
}

/// Makes the first event of an order fail, which holds back the later events of that order.
fn parks<'a>(order: &'a str, then: Undelivered) -> impl Fn(&[Event]) -> Outcome + 'a {
    move |events| {
        let mut of = events.iter().filter(|event| event.aggregate.id == order);
        let failures = of.next().map(|event| failed(event, then)).into_iter().collect();
        Outcome { failures, behind: of.map(|event| event.id).collect(), untried: Vec::new() }
    }
}

/// Creates subscriptions that are new, paused or half done, and that have parked and abandoned events.
pub(crate) async fn leave_half_done(both: &Move) {
    let store: &dyn Store = &both.sqlite();
    let mut halts = Desk::at(store, "halts").await;
    let events = halts.publish(100, parks("2", Undelivered::Halt)).await;
    let job = NewJob::new("nobody's", &()).unwrap();
    let work = EventWork { event: events[0].id, work: Work::Job(job.clone()) };
    assert_eq!(store.start_work(&halts.publisher, &[work]).await.unwrap(), Some(1));
    store.operate(job.id, &Operation::new(Verb::Cancel)).await.unwrap();
    halts.leave().await;
    let mut edits = Desk::at(store, "edits").await;
    edits.publish(100, parks("2", Undelivered::Retry(Duration::from_secs(3600)))).await;
    edits.leave().await;
    let order = Aggregate::new("order", "2");
    let edit = ParkedVerb::edit("{\"z\":  1.0}").unwrap();
    store.change_parked("edits", &order, None, &edit).await.unwrap();
    let mut gives_up = Desk::at(store, "gives up").await;
    let ends = [Undelivered::DeadLetter, Undelivered::Skip];
    let give_up = |events: &[Event]| {
        let failures = events.iter().zip(ends).map(|(event, then)| failed(event, then)).collect();
        Outcome { failures, ..Outcome::default() }
    };
    assert_eq!(gives_up.publish(2, give_up).await.len(), 2);
    gives_up.leave().await;
    store.pause_subscription("gives up", "the broker refuses: ü").await.unwrap();
    store.subscribe("new", Begin::Beginning).await.unwrap();
    let nobodys = Changes { kinds: vec!["nobody's: ü".to_owned()], dags: vec!["nobody's".to_owned()] };
    assert!(store.record_changes("new", &nobodys).await.unwrap());
    assert!(store.subscriptions().await.unwrap().iter().all(|subscription| {
        let half_done = ["gives up", "new"].contains(&subscription.name.as_str());
        (subscription.backlog > 0) == half_done && subscription.publishers.is_empty()
    }));
}

/// Returns all listings.
pub(crate) async fn listed(store: &dyn Store) -> Value {
    json!([
        store.subscriptions().await.unwrap(),
        store.parked(None, None, 100).await.unwrap(),
        store.dead_events(None, None, 100).await.unwrap(),
    ])
}

fn events(of: &[&str]) -> Vec<NewEvent> {
    of.iter().map(|id| NewEvent::new(Aggregate::new("order", *id), "order.paid", &()).unwrap()).collect()
}

fn published(of: &[(&str, i64)]) -> Vec<(String, i64)> {
    of.iter().map(|(id, sequence)| ((*id).to_owned(), *sequence)).collect()
}

#[test]
fn a_subscription_goes_on_exactly_where_it_was() {
    let both = Move::new();
    block_on(async {
        let store: &dyn Store = &both.sqlite();
        store.emit_many(&events(&["a", "b", "c", "a", "b", "c"])).await.unwrap();
        let mut relay = Desk::at(store, "s").await;
        let first = relay.publish(4, parks("b", Undelivered::Halt)).await;
        assert_eq!(first.len(), 4);
        relay.leave().await;
    });
    both.run(&[]).ok();
    block_on(async {
        let store: &dyn Store = &both.postgres().await;
        store.emit_many(&events(&["a", "d"])).await.unwrap();
        let mut relay = Desk::at(store, "s").await;
        let holding = relay.reader.balance().await.unwrap();
        assert_eq!((holding.slots, holding.taken_over), (64, 0));
        let parked = store.reader(relay.publisher.clone()).balance().await.unwrap().parked;
        assert_eq!(parked, [Aggregate::new("order", "b")], "the state that a starting relay reads");
        assert_eq!(relay.publish_all(&["b"]).await, published(&[("a", 3), ("c", 2), ("d", 1)]));
        assert_eq!(relay.publish_all(&["b"]).await, []);
        let due =
            store.due(&relay.publisher, 10, PageSize { events_max: 100, bytes_max: 1 << 20 }).await.unwrap();
        assert!(due.aggregates.is_empty(), "it waits for an operator: {due:?}");
        store.change_parked("s", &Aggregate::new("order", "b"), None, &ParkedVerb::Retry).await.unwrap();
        let due =
            store.due(&relay.publisher, 10, PageSize { events_max: 100, bytes_max: 1 << 20 }).await.unwrap();
        let sequences: Vec<i64> = due.aggregates[0].events.iter().map(|event| event.sequence).collect();
        assert_eq!((due.aggregates.len(), sequences), (1, vec![1, 2]));
        relay.leave().await;
    });
    assert_eq!(both.new.run(&["doctor"]).status, 0);
}

#[test]
fn changes_that_are_wanted_are_recorded_from_the_first_one_on_after_a_move() {
    let both = Move::new();
    let (gone_on, made) = (Scene::job(), Scene::job());
    block_on(async {
        let store: Arc<dyn Store> = Arc::new(both.sqlite());
        want_kinds(&store, "audit", &[KIND]).await;
        store.enqueue_many(std::slice::from_ref(&gone_on)).await.unwrap();
    });
    both.run(&[]).ok();
    block_on(async {
        let scene = Scene::on(Arc::new(both.postgres().await)).await;
        scene.enqueue(made.clone()).await;
        assert_eq!(scene.claim(10).await.len(), 2);
        for job in [gone_on.id, made.id] {
            assert_eq!(
                assert_emitted(&scene, job).await,
                2,
                "moved and later events are each published once"
            );
        }
    });
    assert_eq!(both.new.run(&["doctor"]).status, 0);
}

#[test]
fn what_is_emitted_after_a_move_is_published_though_the_log_was_forgotten() {
    let both = Move::new();
    block_on(async {
        let store: &dyn Store = &both.sqlite();
        store.emit_many(&events(&["a", "b", "c"])).await.unwrap();
        let mut relay = Desk::at(store, "s").await;
        assert_eq!(relay.publish_all(&[]).await.len(), 3);
        relay.leave().await;
        forget_log(store, 3).await;
    });
    both.run(&[]).ok();
    block_on(async {
        let store: &dyn Store = &both.postgres().await;
        store.emit_many(&events(&["a", "x"])).await.unwrap();
        let mut relay = Desk::at(store, "s").await;
        assert_eq!(relay.publish_all(&[]).await, published(&[("a", 2), ("x", 1)]));
    });
}

#[test]
fn what_was_published_before_a_move_can_be_forgotten_and_published_again() {
    let both = Move::new();
    block_on(async {
        let store: &dyn Store = &both.sqlite();
        store.emit_many(&events(&["a", "b", "c"])).await.unwrap();
        let mut relay = Desk::at(store, "s").await;
        assert_eq!(relay.publish_all(&[]).await.len(), 3);
        relay.leave().await;
    });
    both.run(&[]).ok();
    block_on(async {
        let store: &dyn Store = &both.postgres().await;
        let replay = Replay::Aggregate { aggregate: Aggregate::new("order", "a"), from: 1 };
        assert_eq!(store.replay("s", &replay).await.unwrap(), 1);
        forget_log(store, 2).await;
    });
}

/// Deletes the events that retention may delete.
async fn forget_log(store: &dyn Store, events: u64) {
    let forgotten = Cell::new(0);
    wait::until("the log is deleted", || async {
        let pruned = store.prune_log(Duration::ZERO).await.unwrap();
        forgotten.set(forgotten.get() + pruned.unwrap_or_default());
        forgotten.get() == events && pruned.is_none()
    })
    .await;
}

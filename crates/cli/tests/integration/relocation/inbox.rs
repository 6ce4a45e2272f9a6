//! Tests that inboxes are moved.

use std::time::Duration;

use milepost_conformance::inbox::event;
use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_core::inbox::listing::DeadFilter;
use milepost_core::inbox::{Consumer, GapPolicy};
use milepost_core::port::{InboxStore, Store};
use serde_json::{Value, json};

use crate::relocation::Move;

/// Creates events that were received, that wait, that were abandoned and that arrived too late.
pub(crate) async fn leave_half_done(both: &Move) {
    let store = both.sqlite();
    let impatient = Consumer { gap_wait: Duration::ZERO, ..Consumer::new("impatient") };
    store.put_consumer(&impatient).await.unwrap();
    let skips = Consumer { name: "skips".to_owned(), gap_policy: GapPolicy::SkipGap, ..impatient };
    store.put_consumer(&skips).await.unwrap();
    for consumer in ["patient", "impatient", "skips"] {
        take(both, consumer, &[1, 4, 5]).await;
        store.give_up_gaps(Some(consumer), 100).await.unwrap();
    }
    take(both, "skips", &[3]).await;
    store.expect_from("patient", &Aggregate::new("order", "2"), 7).await.unwrap();
    let store = both.sqlite();
    let id = EventId::new();
    let once = move |tx: &rusqlite::Transaction<'_>| {
        milepost_sqlite::once(tx, "once", id).and_then(|_| milepost_sqlite::once(tx, "once", id))
    };
    assert!(!store.transaction(once).await.unwrap());
    assert_eq!(store.inbox_ready("skips", 10).await.unwrap().len(), 1);
}

async fn take(both: &Move, consumer: &'static str, sequences: &[i64]) {
    let events: Vec<Event> = sequences
        .iter()
        .map(|&sequence| Event {
            headers: [("a".to_owned(), "ü".to_owned())].into(),
            ..event("größe/🦀", sequence)
        })
        .collect();
    let store = both.sqlite();
    let taken = store.transaction(move |tx| {
        events.iter().try_for_each(|event| milepost_sqlite::receive(tx, consumer, event).map(drop))
    });
    taken.await.unwrap();
}

/// Returns all listings.
pub(crate) async fn listed(store: &dyn Store) -> Value {
    json!([
        store.consumers().await.unwrap(),
        store.gaps(None, None, 10).await.unwrap(),
        store.dead_letters(&DeadFilter { limit: 100, ..DeadFilter::default() }).await.unwrap(),
        store.inbox_ready("skips", 10).await.unwrap(),
    ])
}

//! Ten concurrent clients that emit events: each rolls back about one in ten transactions, and two keep transactions open for 1 to 3 s.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use milepost_core::event::listing::{EventFilter, EventPage};
use milepost_core::event::{Aggregate, NewEvent};
use milepost_core::ident::EventId;
use milepost_core::port::EventLog;
use milepost_postgres::{PostgresStore, emit_many};
use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const WRITERS: usize = 10;
const AGGREGATES: usize = 300;

pub(crate) struct Writers(JoinSet<BTreeSet<EventId>>, CancellationToken);

/// Starts the clients.
pub(crate) fn start(url: &str) -> Writers {
    let (mut writers, enough) = (JoinSet::new(), CancellationToken::new());
    for number in 0..WRITERS {
        let (url, enough) = (url.to_owned(), enough.clone());
        writers.spawn(async move { write(&url, number, &enough).await });
    }
    Writers(writers, enough)
}

impl Writers {
    /// Stops the clients; returns the events that they rolled back.
    pub(crate) async fn ended(self) -> BTreeSet<EventId> {
        self.1.cancel();
        self.0.join_all().await.into_iter().flatten().collect()
    }
}

async fn write(url: &str, number: usize, enough: &CancellationToken) -> BTreeSet<EventId> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let mut rolled_back = BTreeSet::new();
    while !enough.is_cancelled() {
        let mut events: Vec<NewEvent> = (0..fastrand::usize(1..4)).map(|_| event(number)).collect();
        events.sort_by(|a, b| a.aggregate.cmp(&b.aggregate));
        let mut tx = connection.begin().await.unwrap();
        emit_many(&mut tx, &events).await.unwrap();
        let slow = number < 2;
        let open = if slow { fastrand::u64(1_000..3_000) } else { fastrand::u64(0..20) };
        tokio::time::sleep(Duration::from_millis(open)).await;
        if fastrand::u32(..10) == 0 {
            tx.rollback().await.unwrap();
            rolled_back.extend(events.iter().map(|event| event.id));
        } else {
            tx.commit().await.unwrap();
        }
    }
    rolled_back
}

/// Returns an event. All clients share the aggregates, except those of the two slow clients.
fn event(writer: usize) -> NewEvent {
    let which = fastrand::usize(..AGGREGATES);
    let name = if writer < 2 { format!("slow-{writer}-{}", which % 5) } else { which.to_string() };
    NewEvent::new(Aggregate::new("order", name), "changed", &serde_json::json!({ "by": writer })).unwrap()
}

/// Returns the aggregate and the sequence of each committed event.
pub(crate) async fn log(store: &PostgresStore) -> BTreeMap<EventId, (String, i64)> {
    let mut all = BTreeMap::new();
    let mut after = 0;
    loop {
        let filter = EventFilter { page: EventPage::After(after), limit: 1_000, ..EventFilter::default() };
        let page = store.events(&filter).await.unwrap();
        let Some(last) = page.last() else { return all };
        after = last.pos;
        all.extend(page.into_iter().map(|l| (l.event.id, (l.event.aggregate.id, l.event.sequence))));
    }
}

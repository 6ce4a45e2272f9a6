//! Servers that lose transactions which clients have seen, and assign their ids again.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::event::{Aggregate, NewEvent, Outcome, PageSize, Publisher};
use milepost_core::feed::InvalidFeed;
use milepost_core::ident::EventId;
use milepost_core::port::{LogReader, Store, SubscriptionStore};
use milepost_testkit::server::Server;
use milepost_testkit::{Scene, database, relay, wait};
use sqlx::{Connection, Executor, PgConnection};

const LEASE: Duration = Duration::from_secs(600);
const ALL: PageSize = PageSize { events_max: 1_000, bytes_max: 1 << 20 };

/// A publisher that owns all slots, on a server with a copy of its files from that time.
struct Place {
    server: Server,
    store: Arc<dyn Store>,
    publisher: Publisher,
    reader: Box<dyn LogReader>,
}

impl Place {
    async fn with_copy() -> Self {
        let server = Server::create().await;
        let store: Arc<dyn Store> = Arc::new(database::open(&server.url()).await);
        let (publisher, reader) = relay::reader(store.as_ref(), "s", LEASE).await;
        let mut place = Self { server, store, publisher, reader };
        place.server.stop().await;
        place.server.copy_files();
        place.start().await;
        place.reader.balance().await.unwrap();
        place
    }

    /// Restores the copied files. The publisher sees no connection error, as behind a pooler.
    async fn go_back(&self) {
        self.server.crash().await;
        self.server.put_files_back();
        self.start().await;
    }

    async fn start(&self) {
        self.server.start().await;
        wait::until("the store is connected again", || async {
            self.store.renew(&self.publisher).await.is_ok() && self.store.feed_end().await.is_ok()
        })
        .await;
    }

    /// Emits events, each in a separate transaction.
    async fn emit(&self, events: usize) -> Vec<EventId> {
        let mut emitted = Vec::new();
        for n in 0..events {
            let event = NewEvent::new(Aggregate::new("order", n.to_string()), "order.paid", &n).unwrap();
            // A pooled connection may be broken.
            wait::until("the event is emitted", || async { self.store.emit(&event).await.is_ok() }).await;
            emitted.push(event.id);
        }
        emitted.sort();
        emitted
    }

    async fn enqueue(&self, jobs: usize) {
        for _ in 0..jobs {
            let job = [Scene::job()];
            wait::until("the job is enqueued", || async { self.store.enqueue_many(&job).await.is_ok() })
                .await;
        }
    }
}

async fn page(reader: &mut Box<dyn LogReader>) -> Vec<EventId> {
    let page = reader.page(ALL).await.unwrap();
    let mut ids: Vec<EventId> = page.events.iter().map(|event| event.id).collect();
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn events_with_reassigned_transaction_ids_are_published() {
    let mut place = Place::with_copy().await;
    place.emit(30).await;
    assert_eq!(page(&mut place.reader).await.len(), 30);
    place.reader.pass();
    assert_eq!(page(&mut place.reader).await, []);
    place.go_back().await;
    let after = place.emit(10).await;
    assert_eq!(page(&mut place.reader).await, [], "the reader has not read the positions of this epoch yet");
    place.reader.balance().await.unwrap();
    assert_eq!(page(&mut place.reader).await, after);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_from_before_the_loss_is_not_written() {
    let mut place = Place::with_copy().await;
    place.emit(30).await;
    assert_eq!(page(&mut place.reader).await.len(), 30);
    assert!(place.reader.pass());
    place.go_back().await;
    let after = place.emit(10).await;
    place.reader.commit(&Outcome::default()).await.unwrap();
    place.store.leave(&place.publisher).await.unwrap();
    let (_, mut next) = relay::reader(place.store.as_ref(), "s", LEASE).await;
    assert_eq!(page(&mut next).await, after);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_is_refused_after_changes_were_lost() {
    let place = Place::with_copy().await;
    place.enqueue(30).await;
    let seen = place.store.feed_end().await.unwrap();
    place.go_back().await;
    place.enqueue(60).await;
    let end = place.store.feed_end().await.unwrap();
    for upto in [Some(&end), None] {
        let refused = place.store.feed(&seen, upto, 10).await.unwrap_err();
        assert!(matches!(refused, StoreError::Feed(InvalidFeed::Foreign)), "{refused}");
    }
    let refused = place.store.activity(&seen, 10).await.unwrap_err();
    assert!(matches!(refused, StoreError::Feed(InvalidFeed::Foreign)), "{refused}");
    place.enqueue(5).await;
    assert_eq!(place.store.feed(&end, None, 10).await.unwrap().changes.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_one_backend_ends_the_epoch() {
    let server = Server::create().await;
    let _store = database::open(&server.url()).await;
    let epoch = async || {
        let mut connection = PgConnection::connect(&server.url()).await.ok()?;
        let epoch = sqlx::query_scalar::<_, String>("select milepost.current_epoch()");
        epoch.fetch_one(&mut connection).await.ok()
    };
    let before = epoch().await.unwrap();
    assert_eq!(epoch().await.as_ref(), Some(&before));
    let mut victim = PgConnection::connect(&server.url()).await.unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut victim).await.unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    wait::until("a new epoch has begun", async || epoch().await.is_some_and(|now| now != before)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_upgrade_of_the_server_nothing_is_left_out() {
    let mut place = Place::with_copy().await;
    place.emit(30).await;
    assert_eq!(page(&mut place.reader).await.len(), 30);
    assert!(place.reader.pass());
    place.reader.commit(&Outcome::default()).await.unwrap();
    let left = place.emit(10).await;
    place.enqueue(3).await;
    let seen = place.store.feed_end().await.unwrap();
    place.store.leave(&place.publisher).await.unwrap();
    place.server.stop().await;
    if !place.server.upgrade().await {
        eprintln!("not tested: this PostgreSQL has no pg_upgrade");
        place.server.start().await;
        return;
    }
    place.server.start().await;
    wait::until("the store is connected again", || async { place.store.feed_end().await.is_ok() }).await;
    let refused = place.store.feed(&seen, None, 10).await.unwrap_err();
    assert!(matches!(refused, StoreError::Feed(InvalidFeed::Foreign)), "{refused}");
    let refused = place.reader.balance().await.unwrap_err();
    assert!(refused.to_string().contains("milepost events reseed"), "{refused}");
    assert_eq!(place.store.reseed().await.unwrap(), 1);
    let (_, mut next) = relay::reader(place.store.as_ref(), "s", LEASE).await;
    let published = page(&mut next).await;
    assert!(left.iter().all(|event| published.contains(event)), "{left:?} are among {published:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_history_is_not_reported_as_new() {
    let server = Server::create().await;
    let store = database::open(&server.url()).await;
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    // As after the restore of a dump from a server with higher transaction ids.
    sqlx::query(
        "insert into milepost.history (job_id, token, attempt, verb, to_state, xid)
         select gen_random_uuid(), 0, 0, 'create', 'pending', (pg_current_xact_id()::text::bigint + n)::text::xid8
         from generate_series(1, 40) n",
    )
    .execute(store.pool())
    .await
    .unwrap();
    let from = shared.feed_end().await.unwrap();
    let mut jobs = Vec::new();
    for _ in 0..100 {
        jobs.push(shared.enqueue_many(&[Scene::job()]).await.unwrap()[0].job);
    }
    let told = shared.feed(&from, None, 1_000).await.unwrap().changes;
    assert_eq!(told.len(), jobs.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_of_a_restored_dump_are_refused_until_a_reseed() {
    let server = Server::create().await;
    let store = database::open(&server.url()).await;
    // The table of the log is another one, as after the restore of a dump on a copy of the same server.
    let restored = "select milepost.subscribe('billing', false);
         alter table milepost.event rename to event_before;
         create table milepost.event (like milepost.event_before including all);";
    store.pool().execute(sqlx::raw_sql(restored)).await.unwrap();
    let hold = "select count(*) from milepost.hold_slots('billing', gen_random_uuid(), 'relay', 10000)";
    let held = async || sqlx::query_scalar::<_, i64>(hold).fetch_one(store.pool()).await;
    let refused = held().await.unwrap_err();
    assert_eq!(refused.as_database_error().unwrap().code().as_deref(), Some("MP021"), "{refused}");
    let reseed_needed = async || store.subscriptions().await.unwrap()[0].reseed_needed;
    assert!(reseed_needed().await);
    sqlx::query("select milepost.reseed()").execute(store.pool()).await.unwrap();
    assert!(!reseed_needed().await);
    assert!(held().await.unwrap() > 0);
}

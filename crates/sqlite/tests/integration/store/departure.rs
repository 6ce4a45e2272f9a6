//! A store that is being moved rejects all changes, and is unchanged if the move is abandoned.

use milepost_core::error::StoreError;
use milepost_core::port::{IntakeStore, Store, WorkerStore};
use milepost_core::relocation::{MoveError, MoveId, PAGE_ROWS_MAX, Part, Position};
use milepost_sqlite::enqueue;
use milepost_testkit::relay;

use crate::store::fixture::{self, HOUR, Home};

fn refusal<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> MoveError {
    match answer {
        Err(StoreError::Move(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn no_table_is_left_open_and_callers_own_tables_are() {
    let home = Home::new().await;
    home.connection().execute("CREATE TABLE orders (n)", ()).unwrap();
    home.store.depart(MoveId::new(), "postgres://db/app").await.unwrap();
    let conn = home.connection();
    let mut tables = conn
        .prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
             AND name NOT IN ('milepost_schema_migration', 'milepost_departure', 'orders')",
        )
        .unwrap();
    let tables: Vec<String> = tables.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(tables.len() > 14, "{tables:?}");
    let closed = "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1";
    for table in tables {
        let triggers: i64 = conn.query_row(closed, [&table], |row| row.get(0)).unwrap();
        assert_eq!(triggers, 3, "{table}");
    }
    conn.execute("INSERT INTO orders VALUES (1)", ()).unwrap();
}

#[tokio::test]
async fn every_part_is_a_table_that_is_counted() {
    let home = Home::new().await;
    let counted: Vec<Part> = home.store.count_parts().await.unwrap().iter().map(|(part, _)| *part).collect();
    assert_eq!(counted, Part::ALL);
    let id = MoveId::new();
    home.store.depart(id, "postgres://db/app").await.unwrap();
    for &part in Part::ALL {
        let page = home.store.page(id, part, &Position::Start, PAGE_ROWS_MAX).await.unwrap();
        assert_eq!((page.rows.part(), page.is_last), (part, true));
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_named() {
    let home = Home::new().await;
    let jobs = home.store.enqueue_many(&[fixture::job("a"), fixture::job("b")]).await.unwrap();
    let id = jobs[1].job;
    let changes = [
        ("UPDATE milepost_job SET priority = 100000 WHERE id = ?1", "priority = 100000"),
        (
            "UPDATE milepost_job SET priority = 0, created_at_ms = 9000000000000000000 WHERE id = ?1",
            "created_at_ms = 9000000000000000000",
        ),
    ];
    for (change, column) in changes {
        home.connection().execute(change, [id.0.as_bytes()]).unwrap();
        let moved = MoveId::new();
        home.store.depart(moved, "postgres://db/app").await.unwrap();
        let page = home.store.page(moved, Part::Jobs, &Position::Start, PAGE_ROWS_MAX).await;
        let message = refusal(page).to_string();
        assert!(message.contains(&format!("the row of job with id = {id}")), "{message}");
        assert!(message.contains(column) && message.contains("--give-up"), "{message}");
        assert!(home.store.stay(moved).await.unwrap());
    }
}

#[tokio::test]
async fn a_process_that_was_at_work_before_is_refused_and_so_is_a_callers_own_transaction() {
    let home = Home::new().await;
    let neighbour = home.neighbour();
    fixture::enqueue(&neighbour, fixture::job("a")).await;
    home.store.depart(MoveId::new(), "postgres://db/app").await.unwrap();
    let message = refusal(neighbour.enqueue_many(&[fixture::job("a")]).await).to_string();
    assert!(
        message.contains("are being moved to postgres://db/app") && message.contains("--give-up"),
        "{message}"
    );
    let mut conn = home.connection();
    let tx = conn.transaction().unwrap();
    refusal(enqueue(&tx, &fixture::job("a")));
}

#[tokio::test]
async fn a_store_that_stays_after_all_is_as_it_was() {
    let home = Home::new().await;
    let schema = |conn: &rusqlite::Connection| -> Vec<String> {
        let mut objects = conn.prepare("SELECT name FROM sqlite_schema ORDER BY name").unwrap();
        objects.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let before = schema(&home.connection());
    let id = MoveId::new();
    home.store.depart(id, "postgres://db/app").await.unwrap();
    assert_ne!(schema(&home.connection()), before);
    assert!(!home.store.stay(MoveId::new()).await.unwrap(), "the mark of another move is kept");
    assert!(home.store.stay(id).await.unwrap());
    assert_eq!(schema(&home.connection()), before);
    fixture::enqueue(&home.store, fixture::job("a")).await;
    let page = home.store.page(id, Part::Jobs, &Position::Start, PAGE_ROWS_MAX).await;
    assert_eq!(refusal(page), MoveError::NotUnderWay(id), "a store that can change is not copied");
}

#[tokio::test]
async fn a_store_that_was_left_for_good_neither_stays_nor_leaves_again() {
    let home = Home::new().await;
    let id = MoveId::new();
    home.store.depart(id, "postgres://db/app").await.unwrap();
    home.store.depart_for_good(id).await.unwrap();
    home.store.depart_for_good(id).await.unwrap();
    assert!(!home.store.stay(id).await.unwrap());
    assert!(matches!(refusal(home.store.depart(MoveId::new(), "x").await), MoveError::Closed { .. }));
    let message = refusal(home.store.enqueue_many(&[fixture::job("a")]).await).to_string();
    assert!(message.contains("were moved to postgres://db/app"), "{message}");
}

#[tokio::test]
async fn a_store_on_which_a_worker_lives_is_not_left() {
    let home = Home::new().await;
    let worker = fixture::worker(&home.store, &["a"], HOUR).await;
    let refused = refusal(home.store.depart(MoveId::new(), "x").await);
    assert_eq!(refused, MoveError::WorkersLive { workers: vec![format!("worker {worker} (tester)")] });
    assert_eq!(home.store.departure().await.unwrap(), None);
    home.store.heartbeat(worker).await.unwrap();
}

#[tokio::test]
async fn a_store_for_which_a_relay_publishes_is_not_left_and_one_that_is_left_takes_no_relay() {
    let home = Home::new().await;
    let store: &dyn Store = &home.store;
    let (publisher, _) = relay::reader(store, "s", HOUR).await;
    let refused = refusal(home.store.depart(MoveId::new(), "x").await);
    assert_eq!(refused, MoveError::WorkersLive { workers: vec!["relay here:1 (subscription s)".to_owned()] });
    store.leave(&publisher).await.unwrap();
    home.store.depart(MoveId::new(), "x").await.unwrap();
    let refused = refusal(store.reader(publisher).balance().await);
    assert!(matches!(refused, MoveError::Closed { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_page_ends_after_so_many_rows_or_bytes() {
    let home = Home::new().await;
    let large = milepost_core::job::NewJob::new("a", &"x".repeat(1_000_000)).unwrap();
    for _ in 0..10 {
        let large = milepost_core::job::NewJob { id: milepost_core::ident::JobId::new(), ..large.clone() };
        fixture::enqueue(&home.store, large).await;
    }
    let id = MoveId::new();
    home.store.depart(id, "x").await.unwrap();
    let page = |after, rows| {
        let store = home.store.clone();
        async move { store.page(id, Part::Jobs, &after, rows).await.unwrap() }
    };
    let three = page(Position::Start, 3).await;
    assert_eq!((three.rows.len(), three.is_last), (3, false));
    let large = page(Position::Start, PAGE_ROWS_MAX).await;
    assert_eq!((large.rows.len(), large.is_last), (9, false), "eight MiB");
    let last = page(large.reached, PAGE_ROWS_MAX).await;
    assert_eq!((last.rows.len(), last.is_last), (1, true));
}

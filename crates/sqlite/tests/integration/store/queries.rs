//! The query files: each can be prepared, each begins with a comment, and the hot ones use index searches.

use milepost_testkit::queries::{self, QueryFile};

use crate::store::fixture::Home;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Folders of queries of alerts, of which there are few, and of examinations, repairs and moves, which may read whole tables.
const RARE: [&str; 5] = ["alert/", "doctor/", "repair/", "move/", "clock/move_"];

#[tokio::test]
async fn every_query_file_prepares_and_says_what_it_does() {
    let home = Home::new().await;
    let conn = home.connection();
    let files = queries::all(CRATE);
    assert!(files.len() > 40);
    for QueryFile { name, sql } in files {
        conn.prepare(&sql).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(sql.starts_with("-- "), "{name} has no comment");
        assert!(sql.ends_with('\n'), "{name}");
    }
}

#[test]
fn every_query_file_is_used() {
    assert_eq!(queries::unused(CRATE), [] as [&str; 0]);
}

/// Lists and counts, which may read a whole table, and queries that read only a small table.
const MAY_SCAN: [&str; 26] = [
    "batches",
    "batches_with_key",
    "bulks",
    "consumers",
    "count_batches",
    "count_by_kind",
    "count_by_queue",
    "count_by_state",
    "dags",
    "definitions",
    "gaps",
    "jobs",
    "jobs_running",
    "jobs_with_key",
    "list_group_limits",
    "list_kind_limits",
    "paused_queues",
    "publishers",
    "queues",
    "replay_since",
    "replayed_aggregates",
    "schedules",
    "stop_requests",
    "subscriptions",
    "tokens",
    "workers",
];

fn plan(conn: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = statement.raw_query().mapped(|row| row.get(3));
    steps.collect::<rusqlite::Result<_>>().unwrap()
}

fn assert_searches(conn: &rusqlite::Connection, when: &str) {
    for QueryFile { name, sql } in queries::all(CRATE) {
        if RARE.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        let name = name.rsplit('/').next().unwrap();
        if MAY_SCAN.contains(&name) {
            continue;
        }
        for step in plan(conn, &sql) {
            let scans = [
                "audit",
                "live",
                "job",
                "history",
                "ended",
                "bulk",
                "bulk_failure",
                "bulk_target",
                "batch",
                "batch_task",
                "dag_task",
                "processed_event",
                "aggregate_checkpoint",
                "inbox_parked",
                "inbox_dead",
                "event",
                "parked_aggregate",
                "parked_event",
                "dead_event",
            ]
            .iter()
            .any(|table| {
                let scan = format!("SCAN milepost_{table}");
                step == scan || step.starts_with(&format!("{scan} "))
            });
            // The recursions start at the first entry of an index; another index contains only the rows that are needed.
            let probes = ["lost_workers", "unfilled_groups", "due_batches"].contains(&name);
            assert!(!scans || probes, "{name} {when}: {step}");
            // A search may sort the rows that it examines, a count its rows, and rollups the few counts that they add up.
            let may_sort =
                ["lost_workers", "search", "activity", "tally", "fold", "read", "operated", "started_by"]
                    .contains(&name);
            let sorts = step.contains("TEMP B-TREE") && !may_sort;
            assert!(!sorts, "{name} {when}: {step}");
        }
    }
}

#[tokio::test]
async fn hot_statements_search_an_index_whatever_the_statistics_say() {
    let home = Home::new().await;
    let conn = home.connection();
    assert_searches(&conn, "without statistics");
    conn.execute_batch("ANALYZE").unwrap();
    assert_searches(&conn, "analyzed when empty");
    let jobs: Vec<_> =
        (0..2000).map(|n| crate::store::fixture::job(if n % 2 == 0 { "a" } else { "b" })).collect();
    let store: &dyn milepost_core::port::Store = &home.store;
    store.enqueue_many(&jobs).await.unwrap();
    conn.execute_batch("ANALYZE").unwrap();
    assert_searches(&home.connection(), "analyzed when all were pending");
    let worker = crate::store::fixture::worker(store, &["a", "b"], crate::store::fixture::HOUR).await;
    crate::store::fixture::claim(store, worker, &["a", "b"], 2000).await;
    conn.execute_batch("ANALYZE").unwrap();
    assert_searches(&home.connection(), "analyzed when all were running");
}

#[tokio::test]
async fn attempts_can_be_read_as_such() {
    let home = Home::new().await;
    let store = &home.store;
    crate::store::fixture::enqueue(store, crate::store::fixture::job("a")).await;
    let worker = crate::store::fixture::worker(store, &["a"], crate::store::fixture::HOUR).await;
    for end in [crate::store::fixture::retry(std::time::Duration::ZERO), crate::store::fixture::success()] {
        let run = crate::store::fixture::claim(store, worker, &["a"], 1).await[0].run;
        crate::store::fixture::finish(store, worker, run, end).await;
    }
    let conn = home.connection();
    let mut statement =
        conn.prepare("SELECT attempt, outcome, error_code FROM milepost_attempt ORDER BY token").unwrap();
    let attempts: Vec<(u32, String, Option<String>)> = statement
        .query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        attempts,
        [(1, "retry".to_owned(), Some("broken".to_owned())), (2, "succeed".to_owned(), None)]
    );
}

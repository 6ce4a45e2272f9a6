//! The query files: each can be prepared, each begins with a comment, and the hot ones use index searches.

use std::fs;
use std::path::Path;

use crate::store::fixture::Home;

fn files_in(folder: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("queries").join(folder);
    let paths = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// Queries of examinations, repairs and moves, which may read whole tables.
fn rare_files() -> Vec<(String, String)> {
    [files_in("doctor"), files_in("mend"), files_in("move")].concat()
}

fn files() -> Vec<(String, String)> {
    let mut files = files_in("");
    files.sort();
    assert!(files.len() > 40);
    files
}

#[tokio::test]
async fn every_query_file_prepares_and_says_what_it_does() {
    let home = Home::new().await;
    let conn = home.connection();
    for (name, sql) in [
        &["", "audit", "bulk", "batch", "event", "feed", "inbox", "relay", "token", "session"]
            .map(files_in)
            .concat()[..],
        &rare_files(),
    ]
    .concat()
    {
        conn.prepare(&sql).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(sql.starts_with("-- "), "{name} has no comment");
        assert!(sql.ends_with('\n'), "{name}");
    }
}

/// Lists and counts, which may read a whole table, and queries that read only a small table.
const MAY_SCAN: [&str; 25] = [
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
    "workers",
];

fn plan(conn: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = statement.raw_query().mapped(|row| row.get(3));
    steps.collect::<rusqlite::Result<_>>().unwrap()
}

fn assert_searches(conn: &rusqlite::Connection, when: &str) {
    for (name, sql) in [
        files(),
        files_in("audit"),
        files_in("bulk"),
        files_in("batch"),
        files_in("feed"),
        files_in("inbox"),
        files_in("relay"),
    ]
    .concat()
    {
        if MAY_SCAN.contains(&name.as_str()) {
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
            let probes = ["lost_workers", "unfilled_groups", "due_batches"].contains(&name.as_str());
            assert!(!scans || probes, "{name} {when}: {step}");
            // A search may sort the rows that it examines, and a count the new rows; no other query may sort.
            let may_sort = ["lost_workers", "search", "activity"].contains(&name.as_str());
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

//! Tests that benchmarks remove only what benchmarks created.

use crate::support::{Place, Ran, on_each_store};

on_each_store! {
    a_bench_makes_its_store_anew_each_time,
    a_bulk_job_is_measured_beside_the_same_by_hand,
    a_job_of_another_queue_keeps_the_bench_away_even_when_it_has_ended,
    a_schedule_keeps_the_bench_away,
}

fn bench(place: &Place, args: &[&str]) -> Ran {
    place.run(&[&["bench", "jobs", "--jobs", "200", "--json"], args].concat())
}

fn a_bench_makes_its_store_anew_each_time(place: Place) {
    for _ in 0..2 {
        assert_eq!(bench(&place, &[]).json()["jobs"], 200);
        assert_eq!(place.ids().len(), 200);
    }
}

fn a_bulk_job_is_measured_beside_the_same_by_hand(place: Place) {
    for _ in 0..2 {
        let ran = place.run(&["bench", "bulk", "--rows", "3000", "--rounds", "1", "--json"]).ok();
        assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
        let report = ran.json();
        assert_eq!((&report["bench"], &report["rows"]), (&"bulk".into(), &3000.into()));
        assert!(
            report["rows_per_s"].as_f64().unwrap() > 0.0
                && report["by_hand_rows_per_s"].as_f64().unwrap() > 0.0
        );
        assert!(report["chunks"].as_u64().unwrap() > 1 && report["chunk_ms"]["p50"].as_f64().unwrap() > 0.0);
    }
}

fn a_job_of_another_queue_keeps_the_bench_away_even_when_it_has_ended(place: Place) {
    bench(&place, &[]).ok();
    let id = place.enqueue(&[]);
    place.run(&["jobs", "cancel", &id]).ok();
    // This job is not the newest one.
    place.run(&["enqueue", "noop", "--queue", "milepost-bench"]).ok();
    let ran = bench(&place, &[]);
    assert!(ran.status == 1 && ran.err.contains("a job of queue default"), "{}", ran.err);
    assert!(ran.err.contains("nothing was changed") && ran.err.contains("give a "), "{}", ran.err);
    assert_eq!(place.ids().len(), 202);
}

fn a_schedule_keeps_the_bench_away(place: Place) {
    place.run(&["migrate"]).ok();
    place.run(&["schedules", "add", "nightly", "--kind", "mail", "--cron", "0 3 * * *"]).ok();
    let ran = bench(&place, &[]);
    assert!(ran.status == 1 && ran.err.contains("schedule nightly"), "{}", ran.err);
    assert!(place.run(&["schedules", "list"]).ok().out.contains("nightly"));
}

#[test]
fn a_file_with_a_table_of_somebody_else_is_left_as_it_is() {
    let place = Place::sqlite();
    let path = place.path("jobs.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE orders (n); INSERT INTO orders VALUES (7)").unwrap();
    drop(db);
    let before = std::fs::read(&path).unwrap();
    for mode in ["throughput", "latency", "backlog"] {
        let ran = bench(&place, &["--mode", mode]);
        assert!(ran.status == 1 && ran.err.contains("table orders"), "{mode}: {}", ran.err);
        assert_eq!(std::fs::read(&path).unwrap(), before, "{mode}");
    }
    place.run(&["migrate"]).ok();
    let ran = bench(&place, &[]);
    assert!(ran.status == 1 && ran.err.contains("table orders"), "{}", ran.err);
}

#[test]
fn a_mode_for_servers_refuses_a_file_before_it_touches_it() {
    let place = Place::sqlite();
    bench(&place, &[]).ok();
    for mode in ["single-enqueue", "held-snapshot", "lying-statistics"] {
        let ran = bench(&place, &["--mode", mode]);
        assert!(
            ran.status == 1 && ran.err.contains(&format!("--mode {mode} measures PostgreSQL")),
            "{}",
            ran.err
        );
    }
    assert_eq!(place.ids().len(), 200, "the file of the earlier benchmark is unchanged");
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let place = Place::sqlite();
    place.write("jobs.db", "some notes, which are not a database".repeat(20));
    let ran = bench(&place, &[]);
    assert!(ran.status == 1 && ran.err.contains("not a database"), "{}", ran.err);
    assert!(place.read("jobs.db").starts_with("some notes"));
}

#[test]
fn tables_in_the_schema_and_what_stands_on_it_keep_the_bench_away() {
    let foreign = [
        ("create table milepost.orders (n int)", "table milepost.orders", "drop table milepost.orders"),
        (
            "create view public.waiting as select id from milepost.live",
            "view public.waiting",
            "drop view public.waiting",
        ),
        (
            "create table public.mine (job uuid references milepost.job)",
            "constraint mine_job_fkey on table public.mine",
            "drop table public.mine",
        ),
        (
            "create table public.mine (state milepost.job_state)",
            "column state of table public.mine",
            "drop table public.mine",
        ),
        (
            "create function milepost.mine() returns int language sql return 1",
            "function milepost.mine()",
            "drop function milepost.mine()",
        ),
    ];
    let place = Place::postgres();
    bench(&place, &[]).ok();
    for (make, name, remove) in foreign {
        place.sql(make);
        let ran = bench(&place, &[]);
        assert!(ran.status == 1 && ran.err.contains(name), "{name}: {}", ran.err);
        place.sql(remove);
    }
    bench(&place, &[]).ok();
}

//! Tests of rejected moves, and of rejected use of stores that are being moved.

use std::sync::Arc;

use milepost_core::error::StoreError;
use milepost_core::limit::{Limit, Source};
use milepost_core::port::{Operation, Store, WorkerStore};
use milepost_core::relocation::{MoveError, MoveId};
use milepost_core::retention::{Keep, Retained, RetentionPeriod};
use milepost_core::schedule::{Schedule, Spec};
use milepost_core::transition::Verb;
use milepost_core::worker::NewWorker;
use milepost_testkit::Scene;
use milepost_testkit::scene::{LONG, register};
use serde_json::Value;

use crate::relocation::Move;
use crate::relocation::stock::stock;
use crate::support::{Place, block_on};

#[test]
fn workers_that_live_are_named_and_have_to_be_stopped_first() {
    let both = Move::new();
    let worker = block_on(register(&(Arc::new(both.sqlite()) as Arc<dyn Store>), LONG));
    let refused = both.run(&[]);
    let named = format!("worker {worker} (testkit)");
    assert!(refused.status == 1 && refused.err.contains(&named), "{}", refused.err);
    assert!(refused.err.contains("stop them"), "{}", refused.err);
    both.old.run(&["enqueue", "mail"]).ok();
    block_on(async { both.sqlite().retire_worker(worker).await.unwrap() });
    both.run(&[]).ok();
}

#[test]
fn neither_store_can_be_used_while_it_moves_and_both_can_be_read() {
    let both = Move::new();
    let id = both.old.enqueue(&["--key", "k"]);
    both.new.run(&["migrate"]).ok();
    block_on(async {
        let (old, new) = (both.sqlite(), both.postgres().await);
        let move_id = MoveId::new();
        old.depart(move_id, &both.new.store).await.unwrap();
        new.begin_move(move_id, &both.old.store).await.unwrap();
        let stores: [Arc<dyn Store>; 2] = [Arc::new(old), Arc::new(new)];
        for store in &stores {
            let worker = NewWorker {
                name: "late".to_owned(),
                queues: vec![],
                kinds: vec![],
                lease: LONG,
                ..NewWorker::default()
            };
            refused(store.register_worker(&worker).await);
            refused(store.enqueue_many(&[Scene::job()]).await);
            refused(store.enqueue_many(&[Scene::job().key("k").group("g")]).await);
            refused(store.pause_queue("default", true).await);
            let spec = Spec::cron("@daily", "UTC").unwrap();
            refused(store.put_schedule(&Schedule::new("s", spec, Scene::job()), Source::Operator).await);
            refused(store.put_limit(&Limit::group("g").slots(2), Source::Operator).await);
            let period = RetentionPeriod { of: Retained::Failed, keep: Keep::Forever };
            refused(store.put_retention(period).await);
        }
        refused(stores[0].operate(id.parse().unwrap(), &Operation::new(Verb::Cancel)).await);
    });
    assert_eq!(both.old.job(&id)["state"], "pending");
    assert_eq!(both.new.ids(), Vec::<String>::new());
    let enqueued = both.new.run(&["enqueue", "mail"]);
    assert!(enqueued.status == 1 && enqueued.err.contains("is being filled from"), "{}", enqueued.err);
    let moved = both.run(&[]).ok();
    assert!(moved.err.contains("continuing"), "{}", moved.err);
    assert!(!both.new.run(&["enqueue", "mail", "--key", "k"]).ok().out.contains("error"));
    assert_eq!(both.new.ids(), [id], "the key is taken on the new store, too");
    assert_eq!(both.old.ids().len(), 1, "the old one can still be read");
}

fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Move(MoveError::Closed { .. }))), "{answer:?}");
}

#[test]
fn a_database_that_holds_anything_is_refused_and_left_alone() {
    for holds in [&["enqueue", "mail"][..], &["limits", "set", "--group", "g", "--concurrency", "2"]] {
        let both = Move::new();
        both.new.run(holds).ok();
        let refused = both.run(&[]);
        assert!(refused.status == 1 && refused.err.contains("it has rows of table"), "{}", refused.err);
        both.new.run(&["enqueue", "mail", "--key", "after"]).ok();
        both.old.run(&["enqueue", "mail"]).ok();
    }
}

#[test]
fn a_database_that_another_move_fills_is_refused() {
    let (both, other) = (Move::new(), Place::sqlite());
    other.enqueue(&[]);
    block_on(async { both.postgres().await.migrate().await.unwrap() });
    block_on(async { both.postgres().await.begin_move(MoveId::new(), &both.old.store).await.unwrap() });
    let refused = other.run(&["move", "--from", &other.store, "--to", &both.new.store]);
    assert!(refused.status == 1 && refused.err.contains("another move"), "{}", refused.err);
    other.enqueue(&[]);
}

#[test]
fn addresses_that_cannot_be_are_refused() {
    let both = Move::new();
    let run = |from: &str, to: &str| both.old.run(&["move", "--from", from, "--to", to]);
    let (old, new) = (&both.old.store, &both.new.store);
    for (from, to, words) in [
        (old, old, "the same store"),
        (old, &"sqlite:other.db".to_owned(), "is not PostgreSQL"),
        (new, old, "is not a SQLite store"),
        (old, &"mysql://ada:s3cret@h/d".to_owned(), "sqlite:PATH"),
    ] {
        let refused = run(from, to);
        assert!(refused.status == 2 && refused.err.contains(words), "{}", refused.err);
        assert!(!refused.err.contains("s3cret"), "{}", refused.err);
    }
    let missing = run("sqlite:missing.db", new);
    assert!(missing.status == 1 && missing.err.contains("there is no store"), "{}", missing.err);
    assert!(!both.old.path("missing.db").exists(), "it was not created");
    rusqlite::Connection::open(both.old.path("theirs.db"))
        .unwrap()
        .execute("CREATE TABLE t (n)", ())
        .unwrap();
    let theirs = run("sqlite:theirs.db", new);
    assert!(theirs.status == 1 && theirs.err.contains("not a Milepost store"), "{}", theirs.err);
}

#[test]
fn a_store_of_a_newer_version_is_refused_with_what_to_do_even_if_it_allows_this_one() {
    let both = Move::new();
    for compatible_from in [1, 999] {
        both.old.tamper(&format!(
            "INSERT INTO milepost.schema_migration VALUES (998 + {compatible_from}, 'later', 'x', 0, {compatible_from}) RETURNING name"
        ));
        let newer = both.run(&[]);
        assert!(newer.status == 1 && newer.err.contains("newer milepost"), "{}", newer.err);
    }
}

#[test]
fn a_damaged_store_is_not_moved() {
    let both = Move::new();
    both.old.enqueue(&[]);
    both.old.tamper("DELETE FROM milepost.live RETURNING kind");
    let refused = both.run(&[]);
    assert!(refused.status == 1 && refused.err.contains("job_without_place: 1"), "{}", refused.err);
    both.old.run(&["doctor", "--repair"]).ok();
    both.run(&[]).ok();
}

#[test]
fn a_move_whose_rows_differ_is_not_complete() {
    let both = Move::new();
    block_on(async {
        stock(&(Arc::new(both.sqlite()) as Arc<dyn Store>), 300).await;
        both.expire_leases();
    });
    both.kill_at(150);
    both.new.tamper(
        "do $$ begin perform set_config('milepost.move', (select move_id::text from milepost.arrival), true);
         delete from milepost.worker; end $$",
    );
    let failed = both.run(&["--json"]);
    assert_eq!(failed.status, 1, "{}", failed.err);
    let report: Value = serde_json::from_str(&failed.out).unwrap();
    let wrong: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["passed"] == false)
        .map(|check| check["what"].as_str().unwrap())
        .collect();
    assert_eq!((wrong, &report["complete"]), (vec!["rows of worker"], &false.into()));
    assert_eq!(both.new.run(&["enqueue", "mail"]).status, 1, "it cannot be used");
    both.run(&["--give-up"]).ok();
    both.run(&[]).ok();
}

#[test]
fn a_row_that_postgresql_cannot_keep_is_named() {
    let both = Move::new();
    both.old.enqueue_many(20);
    let bad = both.old.enqueue(&[]);
    // A value that another program may have written.
    both.old.tamper(
        "update milepost.job set payload = '1e-999999' where id = (select max(id) from milepost.job)",
    );
    both.old.enqueue_many(20);
    let refused = both.run(&[]);
    assert!(refused.status == 1 && refused.err.contains(&bad), "{}", refused.err);
    assert!(refused.err.contains("table job") && refused.err.contains("--give-up"), "{}", refused.err);
    both.run(&["--give-up"]).ok();
    assert_eq!(both.old.ids().len(), 41);
}

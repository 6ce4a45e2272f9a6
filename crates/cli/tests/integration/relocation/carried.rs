//! Tests that a moved store is complete and usable.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::bulk::listing::BulkFilter;
use milepost_core::claim::Claim;
use milepost_core::event::listing::EventFilter;
use milepost_core::event::{Aggregate, NewEvent};
use milepost_core::finish::{End, Finish, Finished};
use milepost_core::port::{Operation, Store};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::NewWorker;
use milepost_testkit::scene::LONG;
use milepost_testkit::{Scene, wait};
use serde_json::Value;

use crate::relocation::{Move, assert_same, listed, stock};
use crate::support::block_on;

#[test]
fn a_store_full_of_everything_arrives_as_it_was_and_goes_on() {
    let (both, old) = Move::filled();
    let verbs: std::collections::BTreeSet<&str> =
        old["jobs"].as_array().unwrap().iter().flat_map(verbs_of).collect();
    assert_eq!(verbs.len(), Verb::ALL.len(), "not every verb was used: {verbs:?}");

    let moved = both.run(&["--page-rows", "7", "--json"]).json();
    assert_eq!(moved["complete"], true, "{moved:#}");
    let parts = moved["parts"].as_array().unwrap();
    assert!(parts.iter().all(|part| part["rows"].as_u64() > Some(0)), "each table had rows: {parts:#?}");

    block_on(async {
        let store: Arc<dyn Store> = Arc::new(both.postgres().await);
        assert_same(&old, &listed(store.as_ref()).await);
        let token = store.token(stock::token().prefix()).await.unwrap();
        let token = token.expect("tokens are moved");
        assert!(token.is_of(&stock::token()) && token.view.scope == Some(stock::scope()), "{token:?}");
        assert_goes_on(&both, &store, &old).await;
    });
    let doctor = both.new.run(&["doctor"]);
    assert_eq!(doctor.status, 0, "{}", doctor.out);
}

fn verbs_of(job: &Value) -> Vec<&str> {
    job["history"].as_array().unwrap().iter().map(|entry| entry["verb"].as_str().unwrap()).collect()
}

/// Runs the remaining jobs to their ends; new rows get new numbers.
async fn assert_goes_on(both: &Move, store: &Arc<dyn Store>, old: &Value) {
    let again = store.enqueue_many(&[Scene::job().key("outlives its job")]).await.unwrap();
    assert!(again[0].duplicate, "a key that outlived its job is still taken");
    let again = NewEvent::new(Aggregate::new("order", "2"), "order.shipped", &()).unwrap();
    assert_eq!(store.emit(&again).await.unwrap().sequence, 8, "an aggregate continues after its last event");
    let newest = store.events(&EventFilter { limit: 2, ..EventFilter::default() }).await.unwrap();
    assert!(
        newest[0].event.id == again.id && newest[0].pos > newest[1].pos,
        "positions continue: {newest:?}"
    );
    store.pause_queue("night", false).await.unwrap();
    let rescued = store.rescue_expired(100, &|_, _, _| Duration::ZERO).await.unwrap();
    assert!(rescued.len() > 2, "jobs of the dead worker are taken back");
    for run in store.bulks(&BulkFilter::default()).await.unwrap() {
        if !run.state.is_ended() {
            // The tables that it reads were not moved.
            store.operate(run.id, &Operation::new(Verb::Cancel)).await.unwrap();
        }
    }
    both.new.tamper("update milepost.live set ready_at = now() where state in ('pending', 'retry_wait')");
    let timed = "select cast(count(*) as text) from milepost.live where timed";
    assert_eq!(both.new.tamper(timed), both.old.tamper(timed));
    assert_ne!(both.new.tamper(timed), "0", "no job waits for its time");
    both.new.tamper("update milepost.live set due_at = now() where timed");
    let kinds = ["test", "other", "grouped", "größe"].map(str::to_owned).to_vec();
    let queues = vec!["default".to_owned(), "night".to_owned()];
    let worker = NewWorker {
        name: "new".to_owned(),
        queues: queues.clone(),
        kinds: kinds.clone(),
        lease: LONG,
        ..NewWorker::default()
    };
    let worker = store.register_worker(&worker).await.unwrap();
    let known = old["workers"].as_array().unwrap().iter().filter_map(|worker| worker["id"].as_i64());
    assert!(i64::from(worker.0) > known.max().unwrap(), "ids of new workers are above the moved ones");
    wait::until("all jobs have run", || async {
        let claim = Claim {
            worker,
            claim_id: 1,
            queues: queues.clone(),
            kinds: kinds.clone(),
            limit: 50,
            thorough: false,
        };
        for job in store.claim(&claim).await.unwrap() {
            let end = End::Succeed { result: None };
            let grouped = job.group.is_some();
            let finish = Finish { run: job.run, end, grouped, task: job.batch.is_some() };
            assert_eq!(store.finish_many(worker, &[finish]).await.unwrap(), [Finished::Accepted]);
        }
        store.fill_groups().await.unwrap();
        while store.advance_batches().await.unwrap() > 0 {}
        let counts = store.count_by_state().await.unwrap();
        let left = [JobState::Pending, JobState::Blocked, JobState::Running, JobState::RetryWait];
        counts.iter().all(|(state, jobs)| !left.contains(state) || *jobs == 0)
    })
    .await;
    let scene = Scene { store: Arc::clone(store), worker };
    for row in store.jobs(&JobFilter { limit: 1000, ..JobFilter::default() }).await.unwrap() {
        scene.assert_history_folds(row.id).await;
    }
    let places = "select bool_and(new.pos > old.pos) from milepost.history new, milepost.history old
                  where new.worker_id = (select max(id) from milepost.worker) and old.worker_id < new.worker_id";
    assert_eq!(both.new.tamper(places), "t", "history positions continue above the moved ones");
}

#[test]
fn an_empty_store_moves() {
    let both = Move::new();
    both.run(&[]).ok();
    both.new.enqueue(&[]);
    assert_eq!(both.new.run(&["doctor"]).status, 0);
}

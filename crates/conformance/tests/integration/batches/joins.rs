//! Concurrent ends of the predecessors of one task.

use futures::future::join_all;
use milepost_conformance::batches::{done, job};
use milepost_core::dag::definition::Definition;
use milepost_core::dag::state::BatchState;
use milepost_core::finish::{Finish, Finished};
use milepost_core::transition::Verb;
use milepost_postgres::PostgresOptions;
use milepost_testkit::home;
use serde_json::json;

use crate::batches::kills::Stage;

const ENDERS: usize = 8;
const ROUNDS: usize = 30;

pub(crate) async fn eight_who_end_the_predecessors_of_a_join_release_it_once(stage: Stage) {
    let keys: Vec<String> = (0..ENDERS).map(|n| format!("p{n}")).collect();
    let join = keys.iter().fold(Definition::new("join"), |dag, key| dag.task(key, job()));
    // Two joins with the same predecessors, so that every end locks both rows.
    let join = join.task("y", job().after(keys.clone())).task("z", job().after(keys));
    stage.batches.define(join).await;
    let address = stage.home.address();
    let homes = join_all((0..ENDERS).map(|_| home::open(&address, PostgresOptions::default()))).await;
    for _ in 0..ROUNDS {
        let batch = stage.batches.start("join", json!({})).await;
        let claimed = stage.batches.claim(batch).await;
        let ends = claimed.values().zip(&homes).map(|(claimed, home)| async {
            let store = home.store();
            let finish = Finish { run: claimed.run, end: done(), grouped: false, task: true };
            loop {
                match store.finish_many(stage.batches.scene.worker, std::slice::from_ref(&finish)).await {
                    // On a slow disk another end keeps both rows longer than a worker waits for them.
                    Ok(answers) if answers[0] == Finished::Held => {}
                    Ok(answers) => break answers[0],
                    Err(error) => assert!(error.is_transient(), "{error}"),
                }
            }
        });
        let answers = join_all(ends).await;
        assert!(answers.iter().all(|answer| *answer == Finished::Accepted), "{answers:?}");
        stage.batches.advance().await;
        for key in ["y", "z"] {
            let task = stage.batches.task(batch, key).await;
            let job = task.job.expect("the task has no job");
            assert_eq!(stage.batches.scene.count(job, Verb::Create).await, 1);
        }
        stage.batches.assert_sound(batch).await;
        let joined = stage.batches.scene.claim(100).await;
        assert_eq!(joined.len(), 2, "each task was released once");
        for job in &joined {
            stage.batches.finish(job, done()).await;
        }
        assert_eq!(stage.batches.state(batch).await, BatchState::Done);
    }
}

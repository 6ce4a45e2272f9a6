//! Random batches that are moved to random versions of their DAG.

use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::rule::Rule;
use milepost_core::dag::state::TaskState;
use serde_json::json;

use super::{Batches, done, fails, job};

/// Number of batches.
const CASES: u64 = 10;

/// Returns a version with some of the keys, each after some of those before it.
fn random_version(random: &mut fastrand::Rng) -> Definition {
    let keys: Vec<String> = (0..16).filter(|_| random.u8(0..4) > 0).map(|at| format!("t{at:02}")).collect();
    let keys = if keys.is_empty() { vec!["t00".to_owned()] } else { keys };
    keys.iter().enumerate().fold(Definition::new("random"), |dag, (at, key)| {
        let after: Vec<&String> = keys[..at].iter().filter(|_| random.u8(0..4) == 0).collect();
        let rule = if after.is_empty() { Rule::default() } else { *random.choice(Rule::ALL).unwrap() };
        let task = job().rule(rule).after(after);
        dag.task(key, if random.bool() { task } else { task.when("input.yes") })
    })
}

pub async fn random_batches_go_over_to_random_versions(batches: Batches) {
    go_over_to_random_versions(batches, fastrand::u64(..)).await;
}

/// Regression test: with the first of these, some tasks were decided twice.
pub async fn random_batches_that_once_failed_go_over_to_random_versions(batches: Batches) {
    go_over_to_random_versions(batches, 13_395_969_667_796_828_917).await;
}

async fn go_over_to_random_versions(batches: Batches, seed: u64) {
    println!("seed {seed}");
    for case in 0..CASES {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_add(case));
        let batch = batches.begin(random_version(&mut random), json!({ "yes": true })).await;
        for _ in 0..3 {
            let ends = fastrand::Rng::with_seed(random.u64(..));
            let ends = std::cell::RefCell::new(ends);
            batches.work(|_| if ends.borrow_mut().u8(0..3) == 0 { fails() } else { done() }).await;
            let before = batches.tasks(batch).await;
            let new = random_version(&mut random);
            let dag = Dag::check(new.clone()).unwrap();
            let again: Vec<&str> =
                dag.graph().keys().iter().filter(|_| random.u8(0..4) == 0).map(String::as_str).collect();
            if dag.version() == batches.view(batch).await.version {
                continue;
            }
            batches.renew(batch, new.clone(), &again).await;
            for task in batches.tasks(batch).await.iter().filter(|task| !again.contains(&task.key.as_str())) {
                let old = before.iter().find(|old| old.key == task.key && old.state != TaskState::Waiting);
                assert!(old.is_none_or(|old| (old.state, old.job) == (task.state, task.job)), "{task:?}");
            }
        }
        batches.work(|_| done()).await;
        batches.assert_sound(batch).await;
    }
}

//! Random batches with inner batches, whose failed tasks are rerun.

use std::cell::RefCell;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::inside::OPEN;
use milepost_core::batch::listing::TaskView;
use milepost_core::batch::operation::BatchVerb;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::rule::Rule;
use milepost_core::dag::state::TaskState;
use milepost_core::ident::BatchId;
use serde_json::json;

use super::inside::finish;
use super::{Batches, done, fails, invalid, job};
use milepost_testkit::scene::KIND;

/// Number of batches.
const CASES: u64 = 5;
/// Number of reruns of failed tasks in each batch before all tasks succeed.
const RERUNS: usize = 4;

impl Batches {
    /// Returns the tasks whose job or batch a rerun of failed tasks keeps: those that have succeeded, and inner batches that are still running.
    async fn kept(&self) -> Vec<(BatchId, TaskView)> {
        let mut kept = Vec::new();
        for batch in self.all().await {
            let tasks = self.tasks(batch.id).await.into_iter();
            let stays = |task: &TaskView| {
                task.state == TaskState::Succeeded || task.batch.is_some() && OPEN.contains(&task.state)
            };
            kept.extend(tasks.filter(stays).map(|task| (batch.id, task)));
        }
        kept
    }
}

/// Returns a DAG of some jobs, lists and batches of the DAGs in `dags`, each after some of those before it.
fn random_dag(name: &str, dags: &[&str], random: &mut fastrand::Rng) -> Definition {
    let tasks = random.usize(2..6);
    (0..tasks).fold(Definition::new(name), |dag, at| {
        let after: Vec<String> =
            (0..at).filter(|_| random.u8(0..3) == 0).map(|at| format!("t{at}")).collect();
        let rules = [Rule::AllSuccess, Rule::AllSuccess, Rule::AllDone, Rule::NoneFailed, Rule::OneFailed];
        let rule = if after.is_empty() { Rule::default() } else { *random.choice(&rules).unwrap() };
        let task = match (random.u8(0..3), random.choice(dags)) {
            (0, _) => Task::each(KIND, "[1, 2, 3, 4]").payload(json!("${ item }")),
            (1, Some(inner)) => Task::batch(*inner),
            _ => job(),
        };
        dag.task(format!("t{at}"), task.after(after).rule(rule))
    })
}

pub async fn random_batches_in_batches_come_to_their_ends(batches: Batches) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    for case in 0..CASES {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_add(case));
        batches.define(random_dag("leaf", &[], &mut random)).await;
        batches.define(random_dag("middle", &["leaf"], &mut random)).await;
        let outer = batches.run(random_dag("outer", &["middle", "leaf"], &mut random), json!({})).await;
        for _ in 0..RERUNS {
            let all = batches.all().await;
            if let Some(one) = random.choice(&all).filter(|_| random.bool()) {
                // Fails if the batch has ended or is stopped.
                drop(batches.try_operate(one.id, BatchVerb::Abort).await);
            }
            let ends = RefCell::new(random.fork());
            batches.work(|_| if ends.borrow_mut().u8(0..4) == 0 { fails() } else { done() }).await;
            let before = batches.kept().await;
            match batches.try_rerun_failed(outer).await {
                Ok(_) => {}
                Err(error) => assert_eq!(invalid::<()>(Err(error)), InvalidBatch::NothingToRerun(outer)),
            }
            batches.assert_nothing_found().await;
            batches.advance().await;
            batches.assert_nothing_found().await;
            for (batch, task) in before {
                let now = &batches.tasks(batch).await[task.task as usize];
                assert_eq!(
                    (now.job, now.batch),
                    (task.job, task.batch),
                    "no other task runs again: {task:?}"
                );
            }
        }
        finish(&batches, outer).await;
    }
}

//! Reruns of tasks.

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::operation::BatchVerb;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::rule::Rule;
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::port::Operation;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use serde_json::json;

use super::{Batches, done, fails, graph, invalid, job};

pub async fn a_rerun_of_what_failed_goes_on(batches: Batches) {
    let dag = graph("d", &[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    let batch = batches.run(dag.task("skipped", job().when("false").after(["c"])), json!({})).await;
    batches.step(batch, &["a"], done()).await;
    batches.step(batch, &["b"], fails()).await;
    let old = batches.task(batch, "b").await.job.unwrap();
    let tasks = batches.numbers(batch, &["b"]).await;
    let operated = batches.operate(batch, BatchVerb::Rerun { tasks }).await;
    assert_eq!((operated.changed, operated.generation), (1, 2));
    batches.assert_states(batch, "a succeeded, b active, c waiting, skipped waiting").await;
    let task = batches.task(batch, "b").await;
    assert_eq!((task.generation, batches.task(batch, "a").await.generation), (2, 1));
    assert!(task.job.is_some_and(|job| job != old));
    assert_eq!(
        batches.scene.state(old).await,
        JobState::Canceled,
        "the old job is canceled, so that it cannot be retried"
    );
    batches.scene.assert_history_folds(old).await;
    batches.step(batch, &["b"], done()).await;
    batches.step(batch, &["c"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    let generations: Vec<u32> = batches.tasks(batch).await.iter().map(|task| task.generation).collect();
    assert_eq!(generations, [1, 2, 2, 2], "the generation in which each task was decided");
}

pub async fn a_rerun_from_a_task_on_runs_all_that_follows_again(batches: Batches) {
    let dag = graph("d", &[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])]);
    let batch = batches.run(dag.task("e", job().when("false").after(["b"])), json!({})).await;
    batches.work(|_| done()).await;
    batches.assert_states(batch, "a succeeded, b succeeded, c succeeded, d succeeded, e skipped").await;
    let tasks = batches.numbers(batch, &["b", "d", "e"]).await;
    batches.operate(batch, BatchVerb::Rerun { tasks }).await;
    batches.assert_states(batch, "a succeeded, b active, c succeeded, d waiting, e waiting").await;
    let view = batches.view(batch).await;
    assert_eq!((view.state, view.generation, view.ended_at), (BatchState::Running, 2, None));
    batches.step(batch, &["b"], done()).await;
    batches.step(batch, &["d"], done()).await;
    batches.assert_states(batch, "a succeeded, b succeeded, c succeeded, d succeeded, e skipped").await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn a_rerun_of_one_task_leaves_what_follows(batches: Batches) {
    let dag = graph("d", &[("a", &[]), ("b", &["a"])]).task("c", job().after(["a"]).rule(Rule::OneFailed));
    let batch = batches.run(dag, json!({})).await;
    batches.work(|_| done()).await;
    batches.assert_states(batch, "a succeeded, b succeeded, c skipped").await;
    let tasks = batches.numbers(batch, &["a"]).await;
    batches.operate(batch, BatchVerb::Rerun { tasks }).await;
    batches.assert_states(batch, "a active, b succeeded, c skipped").await;
    assert_eq!(batches.task(batch, "b").await.pre_cnt, 1);
    batches.step(batch, &["a"], fails()).await;
    batches.assert_states(batch, "a failed, b succeeded, c skipped").await;
    assert_eq!(batches.state(batch).await, BatchState::Failed);
}

pub async fn a_job_of_a_batch_is_not_rerun_by_itself(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[])]), json!({})).await;
    batches.step(batch, &["a"], done()).await;
    let job = batches.task(batch, "a").await.job.unwrap();
    let refused = invalid(batches.scene.operate(job, Operation::new(Verb::Rerun)).await);
    assert_eq!(refused, InvalidBatch::JobOfBatch { job, batch, task: "a".to_owned() });
    assert_eq!(batches.scene.state(job).await, JobState::Succeeded);
}

/// More successors than one page includes.
const HUB: u32 = 3000;

pub async fn a_rerun_of_a_hub_takes_back_what_stood_in_line(batches: Batches) {
    let hub = Definition::new("hub").task("a", job());
    let hub = (0..HUB).fold(hub, |dag, n| dag.task(format!("s{n:05}"), job().after(["a"])));
    let batch = batches.run(hub, json!({})).await;
    let claimed = batches.claim(batch).await;
    batches.finish(&claimed["a"], fails()).await;
    // Only some of its successors have been informed of the failure.
    let tasks = batches.numbers(batch, &["a"]).await;
    let operated = batches.try_operate(batch, BatchVerb::Rerun { tasks }).await.unwrap();
    assert_eq!(operated.changed, 1);
    assert_eq!(batches.advance().await, 0, "nothing is left to advance");
    let tasks = batches.tasks(batch).await;
    assert!(tasks[1..].iter().all(|task| (task.state, task.pre_cnt) == (TaskState::Waiting, 1)));
    batches.assert_sound(batch).await;
    batches.step(batch, &["a"], done()).await;
    assert_eq!(batches.view(batch).await.counts.active, u64::from(HUB));
}

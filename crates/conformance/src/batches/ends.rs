//! Effects of job ends on batches.

use std::time::Duration;

use milepost_core::batch::operation::BatchVerb;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::rule::{Decision, Outcome, Rule, Tally, decide};
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::finish::{End, Finish, Finished};
use milepost_core::port::Operation;
use milepost_core::transition::Verb;
use serde_json::json;

use super::{Batches, answers, done, fails, graph, job};
use milepost_testkit::scene::{LONG, register, retry};

pub async fn a_diamond_runs_in_order(batches: Batches) {
    let diamond = graph("d", &[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])]);
    let batch = batches.run(diamond, json!({})).await;
    batches.step(batch, &["a"], done()).await;
    batches.assert_states(batch, "a succeeded, b active, c active, d waiting").await;
    let claimed = batches.claim(batch).await;
    batches.finish(&claimed["c"], done()).await;
    batches.assert_states(batch, "a succeeded, b active, c succeeded, d waiting").await;
    batches.finish(&claimed["b"], done()).await;
    batches.step(batch, &["d"], done()).await;
    batches.assert_states(batch, "a succeeded, b succeeded, c succeeded, d succeeded").await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    for task in batches.tasks(batch).await {
        let job = task.job.expect("a job");
        batches.scene.assert_history_folds(job).await;
        assert!(task.released_at.is_some() && task.started_at.is_some() && task.ended_at.is_some());
    }
}

/// Two predecessors that end in every possible way, and a successor for each rule.
pub async fn every_rule_does_what_its_table_says(batches: Batches) {
    for &first in Outcome::ALL {
        for &second in Outcome::ALL {
            let name = format!("{first}_{second}");
            let dag = Rule::ALL
                .iter()
                .fold(Definition::new(&name).task("0", of(first)).task("1", of(second)), |dag, &rule| {
                    dag.task(rule.as_str(), job().after(["0", "1"]).rule(rule))
                });
            let batch = batches.run(dag, answers()).await;
            let claimed = batches.claim(batch).await;
            for (key, outcome) in [("0", first), ("1", second)] {
                match outcome {
                    Outcome::Succeeded => batches.finish(&claimed[key], done()).await,
                    Outcome::Failed => batches.finish(&claimed[key], fails()).await,
                    Outcome::Canceled => batches.finish(&claimed[key], End::Cancel).await,
                    Outcome::Skipped => assert!(!claimed.contains_key(key)),
                }
            }
            batches.advance().await;
            let mut tally = Tally::new(2);
            tally.add(first);
            tally.add(second);
            let states = batches.states(batch).await;
            for &rule in Rule::ALL {
                let expected = match decide(rule, &tally) {
                    Decision::Wait => TaskState::Waiting,
                    Decision::Run => TaskState::Active,
                    Decision::Skip => TaskState::Skipped,
                };
                assert_eq!(states[rule.as_str()], expected, "{rule} after {first} and {second}");
            }
            batches.assert_sound(batch).await;
            batches.scene.claim(100).await;
        }
    }
}

fn of(outcome: Outcome) -> Task {
    if outcome == Outcome::Skipped { job().when("input.no") } else { job() }
}

pub async fn a_failed_task_holds_the_batch_until_its_job_is_tried_again(batches: Batches) {
    let dag = graph("d", &[("a", &[]), ("b", &["a"]), ("c", &[])]);
    let dag = dag.task("alarm", job().after(["a"]).rule(Rule::OneFailed));
    let batch = batches.run(dag, json!({})).await;
    let claimed = batches.claim(batch).await;
    batches.finish(&claimed["a"], fails()).await;
    batches.assert_states(batch, "a failed, alarm active, b waiting, c active").await;
    assert_eq!(batches.state(batch).await, BatchState::Running, "other tasks can continue");
    batches.finish(&claimed["c"], done()).await;
    batches.step(batch, &["alarm"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Failed);
    let failed = batches.task(batch, "a").await;
    assert!(failed.error.is_some_and(|error| error.contains("failed on purpose")));
    let job = claimed["a"].run.job;
    batches.scene.operate(job, Operation::new(Verb::RetryNow)).await.unwrap();
    batches.assert_states(batch, "a active, alarm succeeded, b waiting, c succeeded").await;
    assert_eq!(batches.state(batch).await, BatchState::Running);
    batches.step(batch, &["a"], done()).await;
    batches.step(batch, &["b"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    batches.assert_sound(batch).await;
}

pub async fn attempts_that_are_tried_again_change_nothing(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    batches.step(batch, &["a"], retry(Duration::ZERO)).await;
    let later = End::Yield { delay: Duration::ZERO, note: "later".to_owned() };
    batches.step(batch, &["a"], later).await;
    batches.assert_states(batch, "a active, b waiting").await;
    batches.step(batch, &["a"], done()).await;
    batches.assert_states(batch, "a succeeded, b active").await;
}

pub async fn a_rescue_of_the_last_attempt_goes_on(batches: Batches) {
    let one = Task { max_attempts: 1, ..job() };
    let dag = Definition::new("d").task("a", one).task("b", job().after(["a"]).rule(Rule::OneFailed));
    let batch = batches.run(dag, json!({})).await;
    let leaver = register(&batches.scene.store, LONG).await;
    assert_eq!(batches.scene.claim_for(leaver, 1).await.unwrap().len(), 1);
    batches.scene.store.retire_worker(leaver).await.unwrap();
    let rescued = batches.scene.store.rescue_expired(10, &|_, _, _| Duration::ZERO).await.unwrap();
    assert_eq!(rescued[0].verb, Verb::Fail);
    batches.advance().await;
    batches.assert_states(batch, "a failed, b active").await;
}

/// More successors than one page includes.
const HUB: u32 = 5000;

fn hub() -> Definition {
    let hub = Definition::new("hub").task("a", job());
    let hub =
        (0..HUB).fold(hub, |dag, n| dag.task(format!("s{n:05}"), job().after(["a"]).rule(Rule::AllDone)));
    hub.task("z", job().after((0..HUB).map(|n| format!("s{n:05}"))))
}

pub async fn a_hub_with_more_successors_than_a_page_releases_all(batches: Batches) {
    let batch = batches.run(hub(), json!({})).await;
    let claimed = batches.claim(batch).await;
    batches.finish(&claimed["a"], done()).await;
    let counts = batches.view(batch).await.counts;
    assert!(counts.active <= 2000, "at most one page of tasks is active: {counts:?}");
    assert!(batches.advance().await > 0);
    assert_eq!(batches.view(batch).await.counts.active, u64::from(HUB));
    batches.assert_sound(batch).await;
    assert_eq!(batches.work_together(done).await, HUB as usize + 1);
    assert_eq!(batches.state(batch).await, BatchState::Done);
    batches.assert_sound(batch).await;
}

pub async fn ends_of_a_hub_stand_in_line(batches: Batches) {
    let batch = batches.run(hub(), json!({})).await;
    let claimed = batches.claim(batch).await;
    batches.finish(&claimed["a"], fails()).await;
    assert_eq!(batches.state(batch).await, BatchState::Running, "the failure has not reached all tasks yet");
    let job = claimed["a"].run.job;
    batches.scene.operate(job, Operation::new(Verb::RetryNow)).await.unwrap();
    let again = batches.scene.claim(5000).await;
    let again = again.iter().find(|claimed| claimed.run.job == job).expect("the job is not ready again");
    batches.finish(again, done()).await;
    batches.advance().await;
    let (view, tasks) = (batches.view(batch).await, batches.tasks(batch).await);
    assert_eq!((view.counts.active, view.counts.succeeded), (u64::from(HUB), 1));
    assert!(tasks[..tasks.len() - 1].iter().all(|task| task.pre_cnt == 0));
    batches.assert_sound(batch).await;
}

pub async fn a_batch_has_not_failed_while_ends_stand_in_line(batches: Batches) {
    let hub = (0..HUB).fold(Definition::new("hub").task("a", job()), |dag, n| {
        dag.task(format!("s{n:05}"), job().after(["a"]))
    });
    let batch = batches.run(hub.task("z", job().after(["a"]).rule(Rule::OneFailed)), json!({})).await;
    let claimed = batches.claim(batch).await;
    batches.finish(&claimed["a"], fails()).await;
    let view = batches.view(batch).await;
    assert_eq!(
        (view.counts.active, view.state),
        (0, BatchState::Running),
        "the failure has not reached z yet"
    );
    batches.advance().await;
    batches.step(batch, &["z"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Failed);
    let states: Vec<_> = batches.history(batch).await.into_iter().map(|entry| entry.to).collect();
    assert_eq!(states, ["running", "failed"]);
}

pub async fn many_ends_at_once_are_counted_in_a_join(batches: Batches) {
    let join = (0..300).fold(Definition::new("join"), |dag, n| dag.task(format!("s{n:03}"), job()));
    let batch =
        batches.run(join.task("z", job().after((0..300).map(|n| format!("s{n:03}")))), json!({})).await;
    let claimed = batches.scene.claim(1000).await;
    assert_eq!(claimed.len(), 300);
    let ends = |jobs: &[milepost_core::claim::ClaimedJob]| -> Vec<Finish> {
        jobs.iter().map(|job| Finish { run: job.run, end: done(), grouped: false, task: true }).collect()
    };
    batches.scene.store.finish_many(batches.scene.worker, &ends(&claimed[..299])).await.unwrap();
    batches.advance().await;
    assert_eq!(batches.task(batch, "z").await.pre_cnt, 1);
    batches.scene.store.finish_many(batches.scene.worker, &ends(&claimed[299..])).await.unwrap();
    batches.step(batch, &["z"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn ends_told_twice_count_once(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &[]), ("c", &["a", "b"])]), json!({})).await;
    let claimed = batches.claim(batch).await;
    let end = Finish { run: claimed["a"].run, end: done(), grouped: false, task: true };
    let said =
        batches.scene.store.finish_many(batches.scene.worker, &[end.clone(), end.clone()]).await.unwrap();
    assert!(said[0] == Finished::Accepted && said[1] != Finished::Fenced, "{said:?}");
    let said = batches.scene.store.finish_many(batches.scene.worker, &[end]).await.unwrap();
    assert_eq!(said, [Finished::Repeated]);
    batches.assert_states(batch, "a succeeded, b active, c waiting").await;
    assert_eq!(batches.task(batch, "c").await.pre_cnt, 1);
}

pub async fn tasks_of_a_group_wait_for_one_another(batches: Batches) {
    let grouped = || Task { group: Some("g".to_owned()), ..job() };
    let batch = batches.run(Definition::new("d").task("a", grouped()).task("b", grouped()), json!({})).await;
    batches.assert_states(batch, "a active, b active").await;
    let mut ran = Vec::new();
    for _ in 0..2 {
        let claimed = batches.claim(batch).await;
        assert_eq!(claimed.len(), 1, "one task at a time: {:?}", claimed.keys());
        for (key, job) in claimed {
            batches.finish(&job, done()).await;
            ran.push(key);
        }
        batches.advance().await;
    }
    ran.sort();
    assert_eq!(ran, ["a", "b"]);
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn an_operator_of_jobs_moves_the_batch_too(batches: Batches) {
    let batch =
        batches.run(graph("d", &[("a", &[]), ("b", &[]), ("c", &["a"]), ("d", &["b"])]), json!({})).await;
    let job = |task: milepost_core::batch::listing::TaskView| task.job.unwrap();
    let (a, b) = (job(batches.task(batch, "a").await), job(batches.task(batch, "b").await));
    batches.scene.operate(a, Operation::new(Verb::Abort)).await.unwrap();
    batches.scene.operate(b, Operation::new(Verb::Cancel)).await.unwrap();
    batches.assert_states(batch, "a aborted, b canceled, c waiting, d skipped").await;
    assert_eq!(batches.state(batch).await, BatchState::Aborted);
    batches.scene.operate(a, Operation::new(Verb::Resume)).await.unwrap();
    batches.scene.operate(a, Operation::new(Verb::Mark)).await.unwrap();
    batches.assert_states(batch, "a succeeded, b canceled, c active, d skipped").await;
    let tasks = batches.numbers(batch, &["c"]).await;
    batches.operate(batch, BatchVerb::Cancel { tasks }).await;
    assert_eq!(batches.state(batch).await, BatchState::Canceled);
}

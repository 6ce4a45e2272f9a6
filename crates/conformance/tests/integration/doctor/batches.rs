//! Repairs of batches: repaired batches run to their end; batches in flight or being deleted have no findings.

use std::time::Duration;

use milepost_conformance::batches::{Batches, done, gives, graph, job};
use milepost_core::batch::operation::BatchVerb;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::doctor::Check;
use milepost_core::ident::{BatchId, JobId};
use milepost_testkit::examine::{examine, look};
use milepost_testkit::home::Home;
use milepost_testkit::scene::KIND;
use serde_json::json;

use crate::doctor::{checks, homes};

/// A store with batches, and its tables.
struct Ward {
    home: Box<dyn Home>,
    batches: Batches,
}

async fn wards() -> Vec<Ward> {
    let mut wards = Vec::new();
    for home in homes().await {
        let batches = Batches::on(home.store()).await;
        wards.push(Ward { home, batches });
    }
    wards
}

impl Ward {
    /// Starts `a > b > c`, in which `a` has succeeded and `b` waits for a worker.
    async fn chain(&self) -> BatchId {
        let chain = graph("chain", &[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
        let batch = self.batches.run(chain, json!({})).await;
        self.batches.step(batch, &["a"], done()).await;
        batch
    }

    fn id(&self, batch: BatchId) -> String {
        self.home.id(JobId(batch.0))
    }

    /// Deletes a job with all its rows.
    async fn unmake(&self, job: JobId) {
        for (table, key) in [("live", "id"), ("ended", "id"), ("history", "job_id"), ("job", "id")] {
            let id = self.home.id(job);
            self.home.tamper(&format!("delete from milepost.{table} where {key} = {id}")).await;
        }
    }

    /// Moves task `number` back to waiting and deletes its job.
    async fn take_back(&self, batch: BatchId, number: u32) {
        let task = self.batches.tasks(batch).await.remove(number as usize);
        self.unmake(task.job.unwrap()).await;
        let id = self.id(batch);
        self.home
            .tamper(&format!(
                "update milepost.batch_task set state = 'waiting', job_id = null
                 where batch_id = {id} and task = {number};
                 update milepost.batch set waiting = waiting + 1, active = active - 1 where id = {id}"
            ))
            .await;
    }

    async fn repair(&self, check: Check) -> u64 {
        self.batches.store.repair(check, &look(), 100).await.unwrap()
    }

    /// Asserts that only this check has a finding, repairs it, and lets the batch run to its end.
    async fn repairs(&self, check: Check, batch: BatchId) {
        self.repairs_except(check).await;
        self.goes_on(batch).await;
    }

    async fn repairs_except(&self, check: Check) {
        let found = examine(&self.batches.store).await;
        assert_eq!(checks(&found), [check], "{found:#?}");
        assert!(self.repair(check).await > 0);
        assert_eq!(examine(&self.batches.store).await, []);
    }

    async fn goes_on(&self, batch: BatchId) {
        self.batches.advance().await;
        self.batches.work(|_| gives(&json!([1, 2]))).await;
        assert_eq!(self.batches.state(batch).await, BatchState::Done);
        self.batches.assert_sound(batch).await;
        assert_eq!(examine(&self.batches.store).await, []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_behind_its_job_is_put_right_and_what_follows_runs() {
    for ward in wards().await {
        let batch = ward.chain().await;
        ward.take_back(batch, 1).await;
        let id = ward.id(batch);
        ward.home
            .tamper(&format!(
                "update milepost.batch_task set state = 'active' where batch_id = {id} and task = 0;
                 update milepost.batch_task set pre_cnt = 1, succeeded = 0 where batch_id = {id} and task = 1;
                 update milepost.batch set active = 1, succeeded = 0 where id = {id}"
            ))
            .await;
        ward.repairs(Check::TaskStateDiffers, batch).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_for_nothing_is_released() {
    for ward in wards().await {
        let batch = ward.chain().await;
        ward.take_back(batch, 1).await;
        ward.repairs(Check::PreCntDiffers, batch).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_can_never_run_and_waits_is_skipped() {
    for ward in wards().await {
        let batch = ward.chain().await;
        ward.batches.operate(batch, BatchVerb::Cancel { tasks: vec![1] }).await;
        ward.batches.assert_states(batch, "a succeeded, b canceled, c skipped").await;
        let id = ward.id(batch);
        let ended_at = ward.home.time("ended_at");
        ward.home
            .tamper(&format!(
                "update milepost.batch_task set state = 'waiting' where batch_id = {id} and task = 2;
                 update milepost.batch set waiting = 1, skipped = 0, state = 'running', {ended_at} = null where id = {id}"
            ))
            .await;
        ward.repairs_except(Check::PreCntDiffers).await;
        assert_eq!(ward.batches.state(batch).await, BatchState::Canceled);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_job_is_gone_is_failed_until_it_is_rerun() {
    for ward in wards().await {
        let batch = ward.chain().await;
        ward.unmake(ward.batches.task(batch, "b").await.job.unwrap()).await;
        ward.repairs_except(Check::TaskStateDiffers).await;
        ward.batches.assert_states(batch, "a succeeded, b failed, c waiting").await;
        assert_eq!(ward.batches.state(batch).await, BatchState::Failed);
        ward.batches.operate(batch, BatchVerb::Rerun { tasks: vec![1] }).await;
        ward.goes_on(batch).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_and_the_end_of_a_batch_are_put_right() {
    for ward in wards().await {
        let ended_at = ward.home.time("ended_at");
        let past = ward.home.ago(Duration::ZERO);
        let changes = [
            "waiting = 0".to_owned(),
            "state = 'failed'".to_owned(),
            format!("state = 'done', {ended_at} = {past}"),
            format!("{ended_at} = {past}"),
        ];
        for change in changes {
            let batch = ward.chain().await;
            ward.home
                .tamper(&format!("update milepost.batch set {change} where id = {}", ward.id(batch)))
                .await;
            ward.repairs(Check::BatchCountsDiffer, batch).await;
        }
        ward.home.tamper(&format!("update milepost.batch set {ended_at} = null")).await;
        ward.repairs_except(Check::BatchCountsDiffer).await;
        assert!(ward.batches.all().await.iter().all(|batch| batch.ended_at.is_some()));
    }
}

/// Returns a DAG with `a`, a list over its result, and a successor.
fn over_a_list() -> Definition {
    let each = Task::each(KIND, "tasks.a.output").after(["a"]);
    Definition::new("list").task("a", job()).task("list", each).task("z", job().after(["list"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inner_batch_and_the_task_that_it_is_agree_again() {
    for ward in wards().await {
        let batches = &ward.batches;
        let batch = batches.run(over_a_list(), json!({})).await;
        batches.step(batch, &["a"], gives(&json!([1, 2]))).await;
        let inner = batches.task(batch, "list").await.batch.unwrap();
        let (id, of_inner) = (ward.id(batch), ward.id(inner));
        ward.home.tamper(&format!("update milepost.batch set state = 'failed' where id = {of_inner}")).await;
        ward.repairs_except(Check::BatchCountsDiffer).await;
        ward.home
            .tamper(&format!(
                "update milepost.batch_task set pre_cnt = 1 where batch_id = {of_inner} and task = 1"
            ))
            .await;
        ward.repairs_except(Check::PreCntDiffers).await;

        batches.step(inner, &["0", "1"], gives(&json!(1))).await;
        assert_eq!(batches.task(batch, "z").await.state, TaskState::Active);
        // The end of the inner batch was not reported to the outer one.
        ward.take_back(batch, 2).await;
        ward.home
            .tamper(&format!(
                "update milepost.batch_task set state = 'active' where batch_id = {id} and task = 1;
                 update milepost.batch_task set pre_cnt = 1, succeeded = 0 where batch_id = {id} and task = 2;
                 update milepost.batch set active = 1, succeeded = 1 where id = {id}"
            ))
            .await;
        ward.repairs(Check::TaskStateDiffers, batch).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_said_of_what_is_still_being_counted_nor_is_it_mended() {
    for ward in wards().await {
        let batch = ward.chain().await;
        let id = ward.id(batch);
        ward.home
            .tamper(&format!(
                "insert into milepost.batch_spread (batch_id, task, was, state) values ({id}, 0, 'active', 'active');
                 update milepost.batch_task set pre_cnt = 1 where batch_id = {id} and task = 1"
            ))
            .await;
        assert_eq!(examine(&ward.batches.store).await, []);
        ward.home.tamper(&format!("update milepost.batch set waiting = 0 where id = {id}")).await;
        assert_eq!(checks(&examine(&ward.batches.store).await), [Check::BatchCountsDiffer]);
        assert_eq!(ward.repair(Check::BatchCountsDiffer).await, 0);
        ward.home.tamper("delete from milepost.batch_spread").await;
        assert_eq!(ward.repair(Check::BatchCountsDiffer).await, 1);
        ward.goes_on(batch).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_being_forgotten_is_sound_at_every_moment() {
    for ward in wards().await {
        let batches = &ward.batches;
        let batch = batches.run(over_a_list(), json!({})).await;
        let items: Vec<u32> = (0..2500).collect();
        batches.step(batch, &["a"], gives(&json!(items))).await;
        batches.operate(batch, BatchVerb::Cancel { tasks: vec![0, 1, 2] }).await;
        assert_eq!(batches.state(batch).await, BatchState::Canceled);
        tokio::time::sleep(Duration::from_millis(3)).await;
        let mut pages = 0;
        while batches.store.prune_batches(Duration::ZERO).await.unwrap() > 0 {
            assert_eq!(examine(&batches.store).await, []);
            pages += 1;
        }
        assert!(pages > 1, "the work was done in several pages");
        assert_eq!(batches.all().await.len(), 0);
    }
}

//! Deliberate damage to batches.

use milepost_conformance::batches::{Batches, graph};
use milepost_core::batch::operation::BatchVerb;
use milepost_core::doctor::Check;
use milepost_core::ident::{BatchId, JobId};
use serde_json::json;

use crate::doctor::damage::{Besides, NOTHING_BESIDES, Patient};

impl Patient<'_> {
    /// Starts a batch of three tasks in sequence.
    async fn batch(&self) -> (Batches, BatchId) {
        let batches = Batches::on(self.home.store()).await;
        let chain = graph("chain", &[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
        let batch = batches.run(chain, json!({})).await;
        (batches, batch)
    }

    /// Creates batches that do not match their tasks, and tasks that do not match their jobs.
    pub(crate) async fn damage_batches(&self, check: Check) -> Besides {
        let touched = |batch: BatchId| {
            let id = self.home.id(JobId(batch.0));
            format!(
                "update milepost.batch set {} = {} where id = {id}",
                self.home.time("updated_at"),
                self.past()
            )
        };
        match check {
            Check::TaskStateDiffers => {
                self.batch().await;
                self.tamper("update milepost.batch_task set state = 'succeeded' where task = 0").await;
                return Some(vec![Check::PreCntDiffers, Check::BatchCountsDiffer]);
            }
            Check::PreCntDiffers => {
                self.batch().await;
                self.tamper("update milepost.batch_task set pre_cnt = 2 where task = 1").await;
            }
            Check::BatchCountsDiffer => {
                self.batch().await;
                self.tamper("update milepost.batch set waiting = 3").await;
            }
            Check::BatchIncomplete => {
                self.batch().await;
                self.tamper("delete from milepost.batch_task where task = 1").await;
            }
            Check::BatchLeftover => {
                let (batches, batch) = self.batch().await;
                batches.operate(batch, BatchVerb::Cancel { tasks: vec![0, 1, 2] }).await;
                self.spread(batch).await;
                self.tamper("delete from milepost.batch").await;
            }
            Check::JobWithoutBatch => {
                self.batch().await;
                for rows in ["batch", "batch_task", "batch_input", "batch_history"] {
                    self.tamper(&format!("delete from milepost.{rows}")).await;
                }
            }
            Check::TaskLeftDue => {
                let (_, due) = self.batch().await;
                self.tamper("update milepost.batch_task set state = 'due', job_id = null where task = 0")
                    .await;
                self.tamper("update milepost.batch set due = 1, active = 0").await;
                self.tamper(&touched(due)).await;
                let (_, spread) = self.batch().await;
                self.spread(spread).await;
                self.tamper(&touched(spread)).await;
            }
            _ => return None,
        }
        NOTHING_BESIDES
    }

    /// Adds an end to the queue of ends to be counted in a batch.
    async fn spread(&self, batch: BatchId) {
        let id = self.home.id(JobId(batch.0));
        self.tamper(&format!(
            "insert into milepost.batch_spread (batch_id, task, was, state) values ({id}, 0, 'active', 'active')"
        ))
        .await;
    }
}

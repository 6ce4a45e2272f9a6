//! The calls of a client for batches.

use std::time::Duration;

use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::batch::start::{NewBatch, Started};
use milepost_core::batch::wait::NewSignal;
use serde_json::json;

use super::client::Caller;
use super::setup::{DAG, WAIT};
use crate::record::What;

/// The number of different keys.
const KEYS: u32 = 100;
/// The grace of running tasks when a batch is aborted.
const GRACE: Duration = Duration::from_millis(500);

impl Caller {
    /// Starts a batch with one of the two versions, half of them with a key.
    pub(super) async fn start_batch(&mut self) {
        // A key belongs to one version, so that a repeated start asks for the same batch.
        let key = self.random.u32(..KEYS);
        let version = key as usize % self.versions.len();
        let list: Vec<u32> = (0..self.random.u32(..6)).collect();
        let mut batch = NewBatch::new(DAG, &json!({ "list": list })).expect("JSON");
        batch = batch.version(self.versions[version].version());
        if self.random.bool() {
            batch = batch.key(key.to_string());
        }
        let what = |started: Option<&Started>| What::StartBatch {
            batch: started.map_or(batch.id, |started| started.batch).to_string(),
            key: batch.key.clone(),
            version: version as u64 + 1,
        };
        let started = self.until_known(what, || self.store.start_batch(&batch)).await;
        self.batches.extend(started.as_ref().map(|started| started.batch));
        self.unsignaled.extend(started.map(|started| started.batch));
    }

    /// Sends the signal that the first of its batches waits for. Its id is the same for all callers.
    pub(super) async fn signal_batch(&mut self) {
        let Some(batch) = self.unsignaled.pop_front() else { return };
        let signal = NewSignal::new(batch, WAIT).id(WAIT);
        let what = |_: Option<&_>| What::Signal { batch: batch.to_string(), task: WAIT.to_owned() };
        self.until_known(what, || self.store.signal_batch(&signal)).await;
    }

    /// Aborts or resumes one of its batches.
    pub(super) async fn operate_batch(&mut self) {
        let Some(&batch) = self.random.choice(&self.batches) else { return };
        let what = if self.random.bool() { BatchVerb::Abort } else { BatchVerb::Resume };
        let operation = BatchOperation { batch, generation: None, grace: GRACE, note: None, what };
        // A refusal is as good as an answer: only the states at the end are checked.
        let _ = self.store.operate_batch(&operation).await;
    }
}

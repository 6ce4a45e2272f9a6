//! The calls of a client for the bulk job.

use std::time::Duration;

use milepost_core::actions::GRACE_DEFAULT;
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::Operation;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use super::client::Caller;
use super::setup::{BULK, TARGETS, bulk_definition};
use crate::record::What;

/// The number of chunks after which a run that was started is aborted, at most: some runs end before.
const CHUNKS_MAX: u32 = 16;
/// How often a client looks whether its run has begun, with the pause of a chunk in between.
const WAITS_MAX: u32 = 100;
/// How long an aborted run waits for its resume, at least, and in pauses between chunks: a chunk that began in spite of the abort is seen.
const ABORTED_FOR_MIN: Duration = Duration::from_millis(300);
const ABORTED_FOR_CHUNKS: u32 = 3;

impl Caller {
    /// Starts a run of the bulk job, and interrupts it in its middle.
    pub(super) async fn start_bulk(&mut self) {
        let job = bulk_definition().direct(NewJob::new(BULK, &serde_json::json!({})).expect("JSON"));
        let what = |_: Option<&_>| What::StartBulk {
            run: job.id.to_string(),
            targets: (1..=TARGETS).map(|id| id.to_string()).collect(),
            optional: Vec::new(),
            in_store: true,
        };
        let started = self.until_known(what, || self.store.start_bulk(&job)).await;
        let Some(started) = started else { return };
        self.runs.push(started.job);
        self.until_running(started.job).await;
        tokio::time::sleep(self.pace.chunk_pause * self.random.u32(..CHUNKS_MAX)).await;
        self.interrupt(started.job).await;
    }

    /// Waits for a while until a run has begun: the runs of the group go one after another, and one that waits has no chunk that could begin
    /// after its abort.
    async fn until_running(&self, job: JobId) {
        for _ in 0..WAITS_MAX {
            let state = self.store.job(job).await.ok().flatten().map(|view| view.row.state);
            if state.is_none_or(|state| state == JobState::Running || state.is_ended()) {
                return;
            }
            tokio::time::sleep(self.pace.chunk_pause).await;
        }
    }

    /// Interrupts one of its runs.
    pub(super) async fn interrupt_bulk(&mut self) {
        if let Some(&job) = self.random.choice(&self.runs) {
            self.interrupt(job).await;
        }
    }

    /// Aborts a run, and resumes it after a moment. Half of the aborts have a grace time, as those of `milepost bulk abort`: the run keeps its
    /// token then, and must itself notice the request.
    async fn interrupt(&mut self, job: JobId) {
        let run = job.to_string();
        let [abort, resume] = [Verb::Abort, Verb::Resume].map(Operation::new);
        let abort = if self.random.bool() { abort.grace(GRACE_DEFAULT) } else { abort };
        let what = |_: Option<&_>| What::AbortBulk { run: run.clone() };
        self.until_known(what, || self.store.operate(job, &abort)).await;
        tokio::time::sleep(ABORTED_FOR_MIN.max(self.pace.chunk_pause * ABORTED_FOR_CHUNKS)).await;
        let what = |_: Option<&_>| What::ResumeBulk { run: run.clone() };
        self.until_known(what, || self.store.operate(job, &resume)).await;
    }
}

//! Bulk operations of the faulty store; storing the progress of a chunk can fail.

use super::{Faulty, lost, suffers};
use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::bulk::progress::{BeforeChunk, Step, Taken};
use milepost_core::bulk::run::{ChunkDone, Rest, Survey, TargetFailure};
use milepost_core::bulk::settings::SettingsChange;
use milepost_core::ident::{JobId, Run};
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::{BulkProgress, BulkStaging, BulkStore, StoreResult};
use milepost_core::precedence::{Put, Scope, Synced};
use milepost_core::schedule::Source;
use milepost_core::state::JobState;

#[async_trait]
impl BulkStore for Faulty {
    async fn put_bulk(&self, definition: &Definition, source: Source) -> StoreResult<Put> {
        self.pass("put_bulk", self.inner.put_bulk(definition, source)).await
    }

    async fn sync_bulks(&self, configured: &[Definition], scope: &Scope) -> StoreResult<Synced> {
        self.pass("sync_bulks", self.inner.sync_bulks(configured, scope)).await
    }

    async fn bulk_definition(&self, name: &str) -> StoreResult<Option<Definition>> {
        self.pass("bulk_definition", self.inner.bulk_definition(name)).await
    }

    async fn bulk_definitions(&self) -> StoreResult<Vec<Definition>> {
        self.pass("bulk_definitions", self.inner.bulk_definitions()).await
    }

    async fn start_bulk(&self, job: &NewJob) -> StoreResult<Enqueued> {
        self.pass("start_bulk", self.inner.start_bulk(job)).await
    }

    async fn stage_bulk(&self, name: &str) -> StoreResult<Box<dyn BulkStaging>> {
        self.pass("stage_bulk", self.inner.stage_bulk(name)).await
    }

    async fn bulks(&self, filter: &BulkFilter) -> StoreResult<Vec<BulkView>> {
        self.pass("bulks", self.inner.bulks(filter)).await
    }

    async fn bulk_failures(&self, job: JobId, after: i64, limit: u32) -> StoreResult<Vec<TargetFailure>> {
        self.pass("bulk_failures", self.inner.bulk_failures(job, after, limit)).await
    }

    async fn operated_jobs(&self, run: JobId) -> StoreResult<Vec<(JobState, i64)>> {
        self.pass("operated_jobs", self.inner.operated_jobs(run)).await
    }

    async fn set_bulk(&self, job: JobId, change: &SettingsChange) -> StoreResult<()> {
        self.pass("set_bulk", self.inner.set_bulk(job, change)).await
    }

    async fn retry_bulk_failures(&self, job: JobId) -> StoreResult<Enqueued> {
        self.pass("retry_bulk_failures", self.inner.retry_bulk_failures(job)).await
    }

    async fn interrupt_bulk(&self, job: JobId) -> StoreResult<bool> {
        self.pass("interrupt_bulk", self.inner.interrupt_bulk(job)).await
    }
}

#[async_trait]
impl BulkProgress for Faulty {
    async fn take_bulk(&self, run: Run, fingerprint: &str, since: &str) -> StoreResult<Taken> {
        self.pass("take_bulk", self.inner.take_bulk(run, fingerprint, since)).await
    }

    async fn freeze_bulk(&self, run: Run, survey: &Survey) -> StoreResult<()> {
        self.pass("freeze_bulk", self.inner.freeze_bulk(run, survey)).await
    }

    async fn look_bulk(&self, run: Run, rows: u32) -> StoreResult<BeforeChunk> {
        self.pass("look_bulk", self.inner.look_bulk(run, rows)).await
    }

    async fn advance_bulk(&self, run: Run, step: &Step) -> StoreResult<ChunkDone> {
        if suffers(&self.advances_failed) {
            return lost();
        }
        self.pass("advance_bulk", self.inner.advance_bulk(run, step)).await
    }

    async fn rest_bulk(&self, run: Run, rest: &Rest) -> StoreResult<()> {
        self.pass("rest_bulk", self.inner.rest_bulk(run, rest)).await
    }

    async fn end_bulk(&self, run: Run, then: Option<&NewJob>) -> StoreResult<()> {
        self.pass("end_bulk", self.inner.end_bulk(run, then)).await
    }
}

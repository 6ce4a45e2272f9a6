//! Implementation of the worker's port.

use async_trait::async_trait;
use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::finish::{Finish, Finished};
use milepost_core::ident::{JobId, Run, RunToken, WorkerId};
use milepost_core::port::{StoreResult, WakeStream, WorkerStore};
use milepost_core::sql;
use milepost_core::text::without_nul;
use milepost_core::worker::{Heartbeat, NewWorker, Report};
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

use crate::row::{self, Decoded, named};
use crate::session::Session;
use crate::store::PostgresStore;
use crate::wake;

#[async_trait]
impl WorkerStore for PostgresStore {
    async fn register_worker(&self, worker: &NewWorker) -> StoreResult<WorkerId> {
        let query = sqlx::query(sql!("register_worker"))
            .bind(&worker.name)
            .bind(&worker.queues)
            .bind(&worker.kinds)
            .bind(whole_ms(worker.lease))
            .bind(serde_json::to_string(&worker.backoffs).unwrap_or_else(|_| "{}".to_owned()))
            .bind(worker.slots.map(|slots| i32::try_from(slots.get()).unwrap_or(i32::MAX)));
        let id = self.inner.hot.row(query).await.and_then(row::value);
        id.map(WorkerId).map_err(|e| self.fail("register_worker", e))
    }

    async fn heartbeat(&self, worker: WorkerId) -> StoreResult<Heartbeat> {
        let renewed = async |session: &mut Session<'_>| {
            let renewed = session.execute(sqlx::query(sql!("heartbeat")).bind(worker.0)).await?;
            if renewed == 0 {
                return Ok(None);
            }
            session.rows(sqlx::query(sql!("stop_requests")).bind(worker.0)).await.map(Some)
        };
        let rows = self.inner.hot.run(renewed).await.map_err(|e| self.fail("heartbeat", e))?;
        let Some(rows) = rows else { return Err(StoreError::WorkerLost(worker)) };
        let stops = rows
            .iter()
            .map(|row| {
                let run = Run { job: JobId(row.try_get("id")?), token: RunToken(row.try_get("token")?) };
                Ok((run, named(row, "verb")?))
            })
            .collect::<Decoded<_>>()
            .map_err(|e| self.fail("heartbeat", e))?;
        Ok(Heartbeat { stops })
    }

    async fn claim(&self, claim: &Claim) -> StoreResult<Vec<ClaimedJob>> {
        self.claim_jobs(claim).await
    }

    async fn held(&self, worker: WorkerId) -> StoreResult<Vec<ClaimedJob>> {
        self.held_jobs(worker).await
    }

    async fn finish_many(&self, worker: WorkerId, finishes: &[Finish]) -> StoreResult<Vec<Finished>> {
        self.finish_runs(worker, finishes).await
    }

    async fn report_many(&self, reports: &[Report]) -> StoreResult<Vec<bool>> {
        // All statements lock rows in the order of their IDs.
        let mut sorted: Vec<&Report> = reports.iter().collect();
        sorted.sort_unstable_by_key(|report| report.run.job);
        let progress = |report: &Report| report.progress.clone();
        let query = sqlx::query(sql!("report"))
            .bind(sorted.iter().map(|r| r.run.job.0).collect::<Vec<_>>())
            .bind(sorted.iter().map(|r| r.run.token.0).collect::<Vec<_>>())
            .bind(sorted.iter().map(|r| progress(r).map(|p| p.done)).collect::<Vec<_>>())
            .bind(sorted.iter().map(|r| progress(r).and_then(|p| p.total)).collect::<Vec<_>>())
            .bind(
                sorted
                    .iter()
                    .map(|r| progress(r).and_then(|p| p.message).map(|text| without_nul(&text)))
                    .collect::<Vec<_>>(),
            )
            .bind(sorted.iter().map(|r| r.checkpoint.as_deref()).collect::<Vec<_>>());
        let accepted = self.inner.hot.rows(query).await.and_then(row::values);
        let accepted: HashSet<Uuid> = accepted.map_err(|e| self.fail("report_many", e))?;
        if accepted.len() < reports.len() {
            self.confirm_replication().await?;
        }
        Ok(reports.iter().map(|report| accepted.contains(&report.run.job.0)).collect())
    }

    async fn checkpoints(&self, jobs: &[JobId]) -> StoreResult<HashMap<JobId, String>> {
        let jobs: Vec<Uuid> = jobs.iter().map(|job| job.0).collect();
        let rows = self.inner.hot.rows(sqlx::query(sql!("checkpoints")).bind(jobs)).await;
        let read = |row: &PgRow| Ok((JobId(row.try_get(0)?), row.try_get(1)?));
        rows.and_then(|rows| rows.iter().map(read).collect()).map_err(|e| self.fail("checkpoints", e))
    }

    async fn retire_worker(&self, worker: WorkerId) -> StoreResult<()> {
        let retired = self.inner.hot.execute(sqlx::query(sql!("retire_worker")).bind(worker.0)).await;
        retired.map(drop).map_err(|e| self.fail("retire_worker", e))
    }

    async fn wakes(&self) -> StoreResult<Box<dyn WakeStream>> {
        Ok(wake::subscribe(self))
    }
}

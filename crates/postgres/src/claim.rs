//! Taking jobs.

use std::collections::HashMap;

use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::error::StoreError;
use milepost_core::ident::WorkerId;
use milepost_core::port::StoreResult;
use sqlx::postgres::PgRow;
use sqlx::{PgExecutor, Row};

use crate::lane::Probe;
use crate::row::{self, Decoded};
use crate::statement;
use crate::store::PostgresStore;

impl PostgresStore {
    pub(crate) async fn claim_jobs(&self, claim: &Claim) -> StoreResult<Vec<ClaimedJob>> {
        let pairs: Vec<(&str, &str)> = claim
            .queues
            .iter()
            .flat_map(|queue| claim.kinds.iter().map(move |kind| (queue.as_str(), kind.as_str())))
            .collect();
        let turn = usize::try_from(claim.claim_id).unwrap_or(0);
        let probe = self.inner.floors.probe(&pairs, turn);
        let rows = self.take(claim, &probe).await?;
        let jobs: Vec<ClaimedJob> =
            rows.iter().map(row::claimed_job).collect::<Decoded<_>>().map_err(|e| self.fail("claim", e))?;
        self.learn(&probe, claim, &rows, &jobs).map_err(|e| self.fail("claim", e))?;
        if jobs.is_empty() {
            self.check_lease(claim.worker).await?;
        }
        Ok(jobs)
    }

    async fn take(&self, claim: &Claim, probe: &Probe) -> StoreResult<Vec<PgRow>> {
        if !self.pins_locally() {
            return take(&self.inner.hot, claim, probe).await.map_err(|e| self.fail("claim", e));
        }
        let mut tx = self.begin("claim").await?;
        let rows = take(&mut *tx, claim, probe).await.map_err(|e| self.fail("claim", e))?;
        tx.commit().await.map_err(|e| self.fail("claim", e))?;
        Ok(rows)
    }

    /// A lane that did not fill the claim has nothing left; in one that did, nothing before its last job.
    fn learn(&self, probe: &Probe, claim: &Claim, rows: &[PgRow], jobs: &[ClaimedJob]) -> Decoded<()> {
        let floors = &self.inner.floors;
        let taken = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
        floors.spent(probe, taken);
        if taken < claim.limit {
            floors.learn_empty(probe);
            return Ok(());
        }
        let mut youngest_ms: HashMap<(&str, &str, i16), i64> = HashMap::new();
        for (row, job) in rows.iter().zip(jobs) {
            let age_ms: i64 = row.try_get("age_ms")?;
            let lane = (job.queue.as_str(), job.kind.as_str(), i16::from(job.priority.get()));
            youngest_ms.entry(lane).and_modify(|ms| *ms = age_ms.min(*ms)).or_insert(age_ms);
        }
        for at in 0..probe.queues.len() {
            let lane = (probe.queues[at].as_str(), probe.kinds[at].as_str(), probe.priorities[at]);
            if let Some(&age_ms) = youngest_ms.get(&lane) {
                floors.learn(probe, at, age_ms);
            }
        }
        Ok(())
    }

    /// An empty claim may mean that the worker is dead.
    async fn check_lease(&self, worker: WorkerId) -> StoreResult<()> {
        let alive: bool = sqlx::query_scalar(statement::IS_ALIVE)
            .bind(worker.0)
            .fetch_one(&self.inner.hot)
            .await
            .map_err(|e| self.fail("claim", e))?;
        if alive { Ok(()) } else { Err(StoreError::WorkerLost(worker)) }
    }

    pub(crate) async fn held_jobs(&self, worker: WorkerId) -> StoreResult<Vec<ClaimedJob>> {
        let rows = sqlx::query(statement::HELD)
            .bind(worker.0)
            .fetch_all(&self.inner.hot)
            .await
            .map_err(|e| self.fail("held", e))?;
        rows.iter().map(row::claimed_job).collect::<Decoded<_>>().map_err(|e| self.fail("held", e))
    }
}

async fn take(
    executor: impl PgExecutor<'_>,
    claim: &Claim,
    probe: &Probe,
) -> Result<Vec<PgRow>, sqlx::Error> {
    sqlx::query(statement::CLAIM)
        .bind(claim.worker.0)
        .bind(claim.claim_id)
        .bind(i64::from(claim.limit))
        .bind(&probe.queues)
        .bind(&probe.kinds)
        .bind(&probe.priorities)
        .bind(&probe.ages_ms)
        .fetch_all(executor)
        .await
}

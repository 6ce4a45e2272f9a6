//! Claims of jobs.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::error::StoreError;
use milepost_core::finish::{Finish, unreadable};
use milepost_core::ident::WorkerId;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::claim_lanes::Probe;
use crate::row::{self, Decoded};
use crate::store::PostgresStore;

impl PostgresStore {
    pub(crate) async fn claim_jobs(&self, claim: &Claim) -> StoreResult<Vec<ClaimedJob>> {
        let pairs: Vec<(&str, &str)> = claim
            .queues
            .iter()
            .flat_map(|queue| claim.kinds.iter().map(move |kind| (queue.as_str(), kind.as_str())))
            .collect();
        let turn = usize::try_from(claim.claim_id).unwrap_or(0);
        let probe = self.inner.floors.probe(&pairs, turn, claim.thorough);
        let rows = self.take(claim, &probe).await?;
        let taken = self.learn(&probe, claim, &rows).map_err(|e| self.fail("claim", e))?;
        let Taken { jobs, unreadable } = taken.ok_or(StoreError::WorkerLost(claim.worker))?;
        if !unreadable.is_empty() {
            self.give_up(claim.worker, &unreadable).await;
        }
        Ok(jobs)
    }

    /// Fails runs of jobs that cannot be decoded, so that they do not block others. If this fails, the runs stay with the
    /// worker, which ends them when it checks which runs it holds.
    async fn give_up(&self, worker: WorkerId, unreadable: &[Finish]) {
        for finish in unreadable {
            tracing::error!(job = %finish.run.job, end = ?finish.end, "a job cannot be decoded; it is failed");
        }
        if let Err(error) = self.finish_runs(worker, unreadable).await {
            tracing::warn!(error = error.chain(), "jobs that cannot be decoded could not be failed");
        }
    }

    async fn take(&self, claim: &Claim, probe: &Probe) -> StoreResult<Vec<PgRow>> {
        let query = sqlx::query(sql!("claim"))
            .bind(claim.worker.0)
            .bind(claim.claim_id)
            .bind(i64::from(claim.limit))
            .bind(&probe.queues)
            .bind(&probe.kinds)
            .bind(&probe.priorities)
            .bind(&probe.floors);
        self.inner.hot.rows(query).await.map_err(|e| self.fail("claim", e))
    }

    /// Decodes the result of a claim, and remembers where the next claim starts; `None` if the worker is dead.
    fn learn(&self, probe: &Probe, claim: &Claim, rows: &[PgRow]) -> Decoded<Option<Taken>> {
        let Some((look, taken)) = rows.split_last() else { return Ok(None) };
        if !look.try_get::<bool, _>("alive")? {
            return Ok(None);
        }
        let at = look.try_get::<jiff_sqlx::Timestamp, _>("at")?.to_jiff();
        let mut brought = Taken::default();
        let mut last_taken: HashMap<(&str, &str, i16), Timestamp> = HashMap::new();
        for row in taken {
            let ready_at = row.try_get::<jiff_sqlx::Timestamp, _>("ready_at")?.to_jiff();
            let lane = (row.try_get("queue")?, row.try_get("kind")?, row.try_get("priority")?);
            let floor = last_taken.entry(lane).or_insert(ready_at);
            *floor = ready_at.max(*floor);
            brought.add(row, Some(at.duration_since(ready_at).unsigned_abs()))?;
        }
        let taken = u32::try_from(taken.len()).unwrap_or(u32::MAX);
        let took_us: i64 = look.try_get("took_us")?;
        self.inner.floors.spent(probe, Duration::from_micros(took_us.unsigned_abs()), taken);

        let (paused, limited): (Vec<String>, Vec<String>) =
            (look.try_get("paused")?, look.try_get("limited")?);
        // If the claim returned fewer jobs than its limit, every lane that was probed to its end is empty up to the time of
        // the claim.
        let empty_until = (taken < claim.limit).then_some(at);
        for at in 0..probe.queues.len() {
            let lane = (probe.queues[at].as_str(), probe.kinds[at].as_str(), probe.priorities[at]);
            let looked_at = !paused.contains(&probe.queues[at]) && !limited.contains(&probe.kinds[at]);
            let floor = empty_until.filter(|_| looked_at);
            if let Some(floor) = floor.or_else(|| last_taken.get(&lane).copied()) {
                self.inner.floors.learn(probe, at, floor);
            }
        }
        Ok(Some(brought))
    }

    pub(crate) async fn held_jobs(&self, worker: WorkerId) -> StoreResult<Vec<ClaimedJob>> {
        let rows = self.inner.hot.rows(sqlx::query(sql!("held")).bind(worker.0)).await;
        let mut held = Taken::default();
        let read = |rows: Vec<PgRow>| rows.iter().try_for_each(|row| held.add(row, None));
        rows.and_then(read).map_err(|e| self.fail("held", e))?;
        if !held.unreadable.is_empty() {
            self.give_up(worker, &held.unreadable).await;
        }
        Ok(held.jobs)
    }
}

/// Claimed jobs, and the failures of those that cannot be decoded. A job that another program has written must not fail the
/// whole claim.
#[derive(Default)]
struct Taken {
    jobs: Vec<ClaimedJob>,
    unreadable: Vec<Finish>,
}

impl Taken {
    fn add(&mut self, row: &PgRow, waited: Option<Duration>) -> Decoded<()> {
        let run = row::claimed_run(row)?;
        match row::claimed_job(row) {
            Ok(job) => self.jobs.push(ClaimedJob { waited, ..job }),
            Err(error) => self.unreadable.push(unreadable(run, &error)),
        }
        Ok(())
    }
}

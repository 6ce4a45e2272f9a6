//! What the store contains after a run, read over the API.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::api::{Api, Attempt, JobRow};
use crate::evidence::Evidence;

/// The states of jobs that have not ended.
const UNFINISHED: [&str; 4] = ["pending", "running", "retry_wait", "blocked"];
/// How long to wait until every job has ended: far more than leases and backoffs, also on a slow machine.
const SETTLE_MAX: Duration = Duration::from_secs(180);
/// The pause between two queries.
const PAUSE: Duration = Duration::from_millis(200);
/// The error code of an attempt that was lost with its worker.
const LOST: &str = "lease_lost";

/// The content of the store.
#[derive(Clone, Debug, Default)]
pub struct ReadBack {
    /// All jobs.
    pub jobs: Vec<JobRow>,
    /// The attempts of jobs that have more of them than expected.
    pub attempts: HashMap<String, Vec<Attempt>>,
    /// What the doctor found.
    pub findings: Vec<String>,
}

impl ReadBack {
    /// Waits until every job has ended, and reads everything. Reads it also if some jobs do not end.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn read(api: &Api, evidence: &Evidence) -> Result<Self> {
        let began = Instant::now();
        while has_unfinished(api).await? && began.elapsed() < SETTLE_MAX {
            tokio::time::sleep(PAUSE).await;
        }
        let jobs = api.jobs().await?;
        let expected: HashMap<&str, u32> = evidence
            .asked
            .values()
            .flat_map(|asked| asked.ids.iter().map(|id| (id.as_str(), asked.plan.expected().attempts)))
            .collect();
        let mut attempts = HashMap::new();
        for job in
            jobs.iter().filter(|job| expected.get(job.id.as_str()).is_some_and(|count| job.attempt > *count))
        {
            attempts.insert(job.id.clone(), api.attempts(&job.id).await?);
        }
        Ok(Self { jobs, attempts, findings: api.findings().await? })
    }

    /// Returns the numbers of the attempts of a job that were lost with their worker.
    pub fn lost(&self, job: &str) -> impl Iterator<Item = &Attempt> {
        self.attempts.get(job).into_iter().flatten().filter(|attempt| attempt.is_lost())
    }
}

impl Attempt {
    /// Returns whether it was lost with its worker.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.error_code.as_deref() == Some(LOST)
    }
}

async fn has_unfinished(api: &Api) -> Result<bool> {
    for state in UNFINISHED {
        if api.has_job_in(state).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

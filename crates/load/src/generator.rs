//! Clients that create jobs at a constant rate, whether or not the server keeps up.

use std::time::Duration;

use anyhow::Result;
use futures::future::{join_all, try_join_all};
use tokio::time::Instant;

use crate::api::{Answer, Api};
use crate::evidence::{Asked, Call, Evidence, Number};
use crate::hints::Hints;
use crate::phases::Phases;
use crate::plan::Plan;
use crate::scenario::Scenario;

/// The number of clients. Each creates its share of the jobs, one after the other.
const CLIENTS: u64 = 32;
/// The pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(200);
/// How long after the end of the run a client repeats requests.
const REPEAT_MAX: Duration = Duration::from_secs(60);

/// The load of a run.
#[derive(Clone, Debug)]
pub struct Load {
    /// The scenario.
    pub scenario: Scenario,
    /// Its phases.
    pub phases: Phases,
    /// The number of jobs per second.
    pub rate: u64,
    /// When the run began.
    pub began: Instant,
    /// The server.
    pub api: Api,
    /// Where new jobs are announced, if the processes use Redis.
    pub hints: Option<Hints>,
}

/// A create of one client, with all repetitions.
struct Attempted {
    answer: Answer,
    answered_at: Duration,
    failed_at: Vec<Duration>,
}

impl Load {
    /// Creates all jobs. Returns what the clients know.
    ///
    /// # Errors
    /// When a client panics.
    pub async fn generate(self) -> Result<Evidence> {
        let jobs = self.rate * self.phases.length.as_secs();
        let clients = (0..CLIENTS.min(jobs)).map(|client| tokio::spawn(self.clone().client(client, jobs)));
        let mut evidence = Evidence::default();
        for known in try_join_all(clients).await? {
            evidence.add(known);
        }
        Ok(evidence)
    }

    /// Creates every job whose turn it is. The latency of a create counts from the time at which it was due, so a server that is too slow cannot
    /// hide that by delaying the next request.
    async fn client(self, client: u64, jobs: Number) -> Evidence {
        let mut evidence = Evidence::default();
        let mut number = client;
        while number < jobs {
            let due = Duration::from_secs_f64(number as f64 / self.rate as f64);
            tokio::time::sleep_until(self.began + due).await;
            let phase = self.phases.at(due);
            let mut asked = Asked::new(self.scenario.plan(number, phase));
            let plan = asked.plan;
            let callers = (0..self.scenario.callers(phase)).map(|_| self.create(number, &plan));
            for attempted in join_all(callers).await {
                asked.add(&attempted.answer);
                evidence.errors.extend(attempted.failed_at);
                if matches!(attempted.answer, Answer::Created { .. }) {
                    evidence.calls.push(Call { due, took: attempted.answered_at.saturating_sub(due) });
                }
            }
            if let Some(hints) = &self.hints {
                hints.announce();
            }
            evidence.asked.insert(number, asked);
            number += CLIENTS;
        }
        evidence
    }

    /// Creates a job. Repeats the request until it is answered.
    async fn create(&self, number: Number, plan: &Plan) -> Attempted {
        let (key, key_in_header) = (format!("load-{number}"), self.scenario.key_in_header(number));
        let mut failed_at = Vec::new();
        loop {
            let answer = self.api.create(plan, &key, key_in_header).await;
            let answered_at = self.began.elapsed();
            if answer != Answer::Failed || answered_at > self.phases.length + REPEAT_MAX {
                return Attempted { answer, answered_at, failed_at };
            }
            failed_at.push(answered_at);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

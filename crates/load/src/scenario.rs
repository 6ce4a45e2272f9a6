//! The scenarios.

use std::time::Duration;

use clap::ValueEnum;

use crate::phases::Phase;
use crate::plan::Plan;
use crate::store_kind::StoreKind;

/// How long a worker may be silent before its jobs are taken back.
pub const LEASE: Duration = Duration::from_secs(3);
/// The time between two kills of workers.
pub const KILL_EVERY: Duration = Duration::from_secs(2);
/// How much later PostgreSQL answers if it is slow.
pub const DELAY: Duration = Duration::from_millis(20);
/// How long an attempt takes.
const HOLD: Duration = Duration::from_millis(20);
/// How long it takes if workers are killed: long enough that a worker always has some in progress.
const HOLD_OF_KILLED: Duration = Duration::from_millis(300);
/// The number of clients that create the same job at the same time.
const CALLERS: u64 = 8;

/// What happens to the server under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Many clients create a job with the same key at the same time
    SameKey,
    /// Successes, failures and retries
    Mixed,
    /// Workers are killed (SIGKILL) and replaced
    WorkerKilled,
    /// Redis is killed and restarted
    RedisDown,
    /// PostgreSQL answers late
    SlowDatabase,
}

impl Scenario {
    /// Returns its title in reports.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::SameKey => "Same key",
            Self::Mixed => "Mixed ends",
            Self::WorkerKilled => "Workers killed",
            Self::RedisDown => "Redis down",
            Self::SlowDatabase => "Slow database",
        }
    }

    /// Returns what the disturbance is.
    #[must_use]
    pub fn disturbance(self) -> String {
        match self {
            Self::SameKey => format!(
                "{CALLERS} clients create each job at the same time, with the same key. Every second job has its key in the header Idempotency-Key."
            ),
            Self::Mixed => "Of ten jobs, five succeed, two succeed after one failure and one after two, one fails without another attempt, \
                            and one uses up its attempts."
                .to_owned(),
            Self::WorkerKilled => format!(
                "One of two workers is killed with SIGKILL and replaced, every {} s. The lease of a worker is {} s.",
                KILL_EVERY.as_secs(),
                LEASE.as_secs()
            ),
            Self::RedisDown => {
                "Redis is killed at the beginning of the phase and started at its end. Clients announce new jobs in Redis.".to_owned()
            }
            Self::SlowDatabase => format!("Each answer of PostgreSQL arrives {} ms later.", DELAY.as_millis()),
        }
    }

    /// Returns why the scenario cannot run on a store.
    #[must_use]
    pub fn refusal(self, store: StoreKind) -> Option<&'static str> {
        let refused = self == Self::SlowDatabase && store == StoreKind::Sqlite;
        refused.then_some(
            "the scenario slow-database needs --store postgres: a SQLite file is not reached over a network",
        )
    }

    /// Returns whether the processes use Redis.
    #[must_use]
    pub fn uses_redis(self) -> bool {
        self == Self::RedisDown
    }

    /// Returns what the handler does with a job.
    #[must_use]
    pub fn plan(self, number: u64, phase: Phase) -> Plan {
        match (self, phase) {
            (Self::Mixed, Phase::During) => Plan::mixed(number, HOLD),
            (Self::WorkerKilled, _) => Plan::succeeding(0, HOLD_OF_KILLED),
            _ => Plan::succeeding(0, HOLD),
        }
    }

    /// Returns the number of clients that create each job.
    #[must_use]
    pub fn callers(self, phase: Phase) -> u64 {
        if self == Self::SameKey && phase == Phase::During { CALLERS } else { 1 }
    }

    /// Returns whether the key of a job is in the header `Idempotency-Key` instead of the job.
    #[must_use]
    pub fn key_in_header(self, number: u64) -> bool {
        self == Self::SameKey && number % 2 == 1
    }
}

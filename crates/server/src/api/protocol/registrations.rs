//! Bound on the names of queues and kinds that the workers of this server serve: lists of workers and queues contain them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use milepost_core::ident::WorkerId;
use tokio::time::Instant;

use crate::problem::{Code, Problem};

/// The maximum number of names of all workers that have a lease.
const NAMES_MAX: usize = 20_000;

/// The workers that registered through this server, until their leases end.
#[derive(Default)]
pub(crate) struct Registrations(Mutex<HashMap<WorkerId, Registration>>);

struct Registration {
    names: usize,
    lease: Duration,
    until: Instant,
}

impl Registrations {
    /// Refuses a worker whose names exceed the bound.
    pub(super) fn check(&self, names: usize) -> Result<(), Problem> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        known.retain(|_, worker| worker.until > now);
        let all: usize = known.values().map(|worker| worker.names).sum();
        if all + names <= NAMES_MAX {
            return Ok(());
        }
        let words = format!(
            "the workers of this server serve {all} queues and kinds in total, and this one {names}; the maximum is {NAMES_MAX}: let workers \
             serve fewer, or wait until the leases of stopped workers end"
        );
        Err(Problem::new(Code::TooManyWorkers, words).retry_after_s(30))
    }

    pub(super) fn add(&self, id: WorkerId, names: usize, lease: Duration) {
        let registration = Registration { names, lease, until: Instant::now() + lease };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, registration);
    }

    pub(super) fn renew(&self, id: WorkerId) {
        if let Some(worker) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&id) {
            worker.until = Instant::now() + worker.lease;
        }
    }

    pub(super) fn remove(&self, id: WorkerId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn names_count_until_a_worker_leaves_or_its_lease_ends() {
        let registrations = Registrations::default();
        let lease = Duration::from_secs(10);
        registrations.add(WorkerId(1), NAMES_MAX / 2, lease);
        registrations.add(WorkerId(2), NAMES_MAX / 2, lease);
        assert!(registrations.check(1).is_err());
        registrations.remove(WorkerId(1));
        assert!(registrations.check(NAMES_MAX / 2).is_ok());
        assert!(registrations.check(NAMES_MAX / 2 + 1).is_err());
        tokio::time::advance(Duration::from_secs(6)).await;
        registrations.renew(WorkerId(2));
        tokio::time::advance(Duration::from_secs(6)).await;
        assert!(registrations.check(NAMES_MAX / 2 + 1).is_err(), "its lease was renewed");
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(registrations.check(NAMES_MAX).is_ok());
    }
}

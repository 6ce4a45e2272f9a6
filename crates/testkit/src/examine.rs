//! Doctor examinations for tests.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::doctor::{Check, Finding, Look, PATIENCE_DEFAULT};
use milepost_core::port::Store;

/// Returns examination parameters with the default patience.
pub fn look() -> Look {
    Look { now: Timestamp::now(), patience: PATIENCE_DEFAULT, time_limit: Duration::from_secs(60) }
}

/// Returns the finding of one check.
pub async fn examined(store: &Arc<dyn Store>, check: Check) -> Option<Finding> {
    store.examine(check, &look()).await.unwrap_or_else(|error| panic!("{check}: {}", error.chain()))
}

/// Returns the findings of all checks.
pub async fn examine(store: &Arc<dyn Store>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for check in store.checks() {
        findings.extend(examined(store, check).await);
    }
    findings
}

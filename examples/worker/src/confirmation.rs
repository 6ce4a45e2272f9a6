//! A job whose effect is a row in the same database, written exactly once.

use std::time::Duration;

use milepost::{Context, Job, JobError, Outcome, RetryPolicy};
use serde::{Deserialize, Serialize};

use crate::shop::Shop;

/// Confirms an order.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmOrder {
    /// The number of the order.
    pub order: i64,
}

impl Job for ConfirmOrder {
    const KIND: &'static str = "confirm_order";

    fn backoff() -> RetryPolicy {
        RetryPolicy { base: Duration::from_secs(30), ..RetryPolicy::default() }
    }
}

/// Writes the confirmation and completes the job in one transaction.
///
/// # Errors
/// When the database does not respond, or another run has taken over the job; then nothing was written.
pub async fn confirm_order(shop: &Shop, job: ConfirmOrder, context: Context) -> Result<Outcome, JobError> {
    shop.confirm(job.order, context.run()).await?;
    tracing::info!(order = job.order, "confirmed");
    Ok(Outcome::Completed)
}

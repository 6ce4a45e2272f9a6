//! A job whose effect is a row of the same database: it has it exactly once.

use std::time::Duration;

use milepost::{Context, Job, JobError, Outcome, RetryPolicy};
use serde::{Deserialize, Serialize};

use crate::shop::Shop;

/// Confirms an order.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmOrder {
    /// Which order.
    pub order: i64,
}

impl Job for ConfirmOrder {
    const KIND: &'static str = "confirm_order";

    fn backoff() -> RetryPolicy {
        RetryPolicy { base: Duration::from_secs(30), ..RetryPolicy::default() }
    }
}

/// Writes the confirmation and completes the job, as one commit.
///
/// # Errors
/// When the database does not answer, or another run of the job has it now; nothing was written then.
pub async fn confirm_order(shop: &Shop, job: ConfirmOrder, context: Context) -> Result<Outcome, JobError> {
    shop.confirm(job.order, context.run()).await?;
    tracing::info!(order = job.order, "confirmed");
    Ok(Outcome::Completed)
}

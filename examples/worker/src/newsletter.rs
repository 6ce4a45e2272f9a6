//! A long job that reports its progress; the next attempt continues where the previous one stopped.

use std::time::Duration;

use milepost::{Context, Job, JobError, Outcome};
use serde::{Deserialize, Serialize};

/// Sends one mail to many subscribers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Newsletter {
    /// The subject of the mail.
    pub subject: String,
    /// The addresses of the subscribers.
    pub subscribers: Vec<String>,
}

impl Job for Newsletter {
    const KIND: &'static str = "newsletter";
    const MAX_ATTEMPTS: u32 = 5;
}

/// Sends the mail to the subscribers that earlier attempts did not reach.
///
/// # Errors
/// `bad_address`, which is not retried; otherwise the error of the checkpoint.
pub async fn send_newsletter(job: Newsletter, context: Context) -> Result<Outcome, JobError> {
    let total = job.subscribers.len();
    let sent_before: usize = context.last_checkpoint().await?.unwrap_or(0);
    for (index, address) in job.subscribers.iter().enumerate().skip(sent_before) {
        if context.cancellation().is_cancelled() {
            return Ok(Outcome::Stopped);
        }
        deliver(address, &job.subject).await?;
        // A crash between the two calls sends this one mail again, and no other.
        context.checkpoint(&(index + 1)).await?;
        context.progress(index as i64 + 1, total as i64, format!("sent to {address}"));
    }
    Outcome::result(&total)
}

/// Stands in for a mail server.
async fn deliver(address: &str, subject: &str) -> Result<(), JobError> {
    if !address.contains('@') {
        return Err(JobError::fatal("bad_address", format!("{address:?} is not an address")));
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    tracing::debug!(address, subject, "delivered");
    Ok(())
}

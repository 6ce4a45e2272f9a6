//! A mail as a job, and its handler.

use milepost::{Context, Job, JobError, Outcome};
use serde::{Deserialize, Serialize};

/// A mail to be sent.
#[derive(Serialize, Deserialize)]
pub struct Mail {
    /// The address.
    pub to: String,
}

impl Job for Mail {
    const KIND: &'static str = "mail";
}

/// Sends a mail. Stands in for a mail server that is down at the first attempt for Grace.
///
/// # Errors
/// `bad_address`, which is not retried, and `smtp`.
pub async fn send(mail: Mail, context: Context) -> Result<Outcome, JobError> {
    if !mail.to.contains('@') {
        return Err(JobError::fatal("bad_address", format!("{} is not an address", mail.to)));
    }
    if mail.to == "grace@example.org" && context.attempt() == 1 {
        return Err(JobError::retryable("smtp", "the mail server is down"));
    }
    Outcome::result(&format!("sent to {}", mail.to))
}

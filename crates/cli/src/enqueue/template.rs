//! The settings that all jobs of a command share.

use std::time::Duration;

use milepost_core::job::duplicate::OnDuplicate;
use milepost_core::job::error::InvalidJob;
use milepost_core::job::{NewJob, Priority, StartAt};

/// A job without its payload and key.
#[derive(Clone, Debug)]
pub(crate) struct JobTemplate {
    pub(crate) kind: String,
    pub(crate) queue: String,
    pub(crate) priority: Priority,
    pub(crate) start: StartAt,
    pub(crate) max_attempts: u32,
    pub(crate) group: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_duplicate: Option<OnDuplicate>,
}

impl JobTemplate {
    /// Creates a job with this payload, which must be JSON text.
    pub(crate) fn job(&self, payload: String, key: Option<String>) -> Result<NewJob, InvalidJob> {
        let mut job = NewJob::from_json(&self.kind, payload)?
            .queue(&self.queue)
            .priority(self.priority)
            .start(self.start)
            .max_attempts(self.max_attempts);
        job.key = key;
        job.group.clone_from(&self.group);
        job.timeout = self.timeout;
        job.on_duplicate = self.on_duplicate;
        Ok(job)
    }
}

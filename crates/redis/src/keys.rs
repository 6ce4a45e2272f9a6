//! The names of keys and channels.

use milepost_core::ident::{EventId, JobId, WorkerId};

/// All names begin with a prefix, so that stores can share a Redis.
#[derive(Clone, Debug)]
pub(crate) struct Keys(pub(crate) String);

impl Keys {
    /// Returns the key of a worker's heartbeat.
    pub(crate) fn heartbeat(&self, worker: WorkerId) -> String {
        format!("{}hb:worker:{worker}", self.0)
    }

    /// Returns the key with the token of the run that holds a job's lock.
    pub(crate) fn lock(&self, job: JobId) -> String {
        format!("{}lock:job:{job}", self.0)
    }

    /// Returns the key with the verb of a job's stop request.
    pub(crate) fn stop(&self, job: JobId) -> String {
        format!("{}stop:job:{job}", self.0)
    }

    /// Returns the key with a consumer's state of an event.
    pub(crate) fn inbox(&self, consumer: &str, event: EventId) -> String {
        format!("{}inbox:{consumer}:{event}", self.0)
    }

    /// Returns the channel that announces ready jobs.
    pub(crate) fn ready_channel(&self) -> String {
        format!("{}ready", self.0)
    }

    /// Returns the channel that announces stop requests.
    pub(crate) fn stop_channel(&self) -> String {
        format!("{}stop", self.0)
    }
}

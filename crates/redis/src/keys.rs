//! The names of keys and channels.

use milepost_core::ident::{EventId, JobId, WorkerId};

/// All names begin with a prefix, so that stores can share a Redis.
#[derive(Clone, Debug)]
pub(crate) struct Keys(pub(crate) String);

impl Keys {
    /// A worker's word that it lives.
    pub(crate) fn heartbeat(&self, worker: WorkerId) -> String {
        format!("{}hb:worker:{worker}", self.0)
    }

    /// The token of the run that is at a job.
    pub(crate) fn lock(&self, job: JobId) -> String {
        format!("{}lock:job:{job}", self.0)
    }

    /// The verb with which a job was asked to stop.
    pub(crate) fn stop(&self, job: JobId) -> String {
        format!("{}stop:job:{job}", self.0)
    }

    /// How far a consumer is with an event.
    pub(crate) fn inbox(&self, consumer: &str, event: EventId) -> String {
        format!("{}inbox:{consumer}:{event}", self.0)
    }

    /// Where it is said that something may be ready.
    pub(crate) fn ready_channel(&self) -> String {
        format!("{}ready", self.0)
    }

    /// Where it is said that a job was asked to stop.
    pub(crate) fn stop_channel(&self) -> String {
        format!("{}stop", self.0)
    }
}

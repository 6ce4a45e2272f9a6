//! The settings of a worker.

use std::time::Duration;

use milepost_core::job::QUEUE_DEFAULT;
use milepost_core::retention::RetentionPolicy;

/// The settings of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Its display name; by default host and process id.
    pub name: String,
    /// The queues it serves.
    pub queues: Vec<String>,
    /// The maximum number of concurrent jobs.
    pub concurrency: usize,
    /// The most jobs in one claim.
    pub claim_batch: usize,
    /// How long it can fail to renew its lease before it is declared dead and its jobs are recovered.
    pub lease: Duration,
    /// The interval between two checks for work without a notification.
    pub poll_interval: Duration,
    /// How long jobs may continue after a shutdown was requested.
    pub drain: Duration,
    /// How long jobs that have not ended by then may take to stop before they are handed back.
    pub hand_back_grace: Duration,
    /// How long finished jobs and other old data are kept. Workers of one store should have the same setting: the shortest period applies.
    pub retention: RetentionPolicy,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            name: format!("{}:{}", host(), std::process::id()),
            queues: vec![QUEUE_DEFAULT.to_owned()],
            concurrency: 64,
            claim_batch: 500,
            lease: Duration::from_secs(30),
            poll_interval: Duration::from_secs(1),
            drain: Duration::from_secs(20),
            hand_back_grace: Duration::from_secs(2),
            retention: RetentionPolicy::default(),
        }
    }
}

/// Returns the name of this machine.
#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the name of this machine, if the system provides it.
#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "worker".to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

    use super::*;

    #[test]
    fn a_worker_is_named_after_its_machine_and_its_process() {
        let uname = std::process::Command::new("uname").arg("-n").output().unwrap();
        let host = String::from_utf8(uname.stdout).unwrap();
        let expected = format!("{}:{}", host.trim(), std::process::id());
        assert_eq!(WorkerOptions::default().name, expected);
    }
}

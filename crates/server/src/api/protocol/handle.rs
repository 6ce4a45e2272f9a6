//! Run handles: everything that the server needs to know about a run when its worker reports on it.

use std::fmt;
use std::str::FromStr;

use milepost_core::claim::ClaimedJob;
use milepost_core::ident::{JobId, Run, RunToken};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An opaque text for workers. Servers keep no state between requests, and any server can handle the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) run: Run,
    pub(super) attempt: u32,
    pub(super) max_attempts: u32,
    /// Whether the job has a group, whose slot is passed on when the run ends.
    pub(super) grouped: bool,
    /// Whether the job is a task of a batch, which continues when the run ends.
    pub(super) task: bool,
}

impl From<&ClaimedJob> for Handle {
    fn from(job: &ClaimedJob) -> Self {
        Self {
            run: job.run,
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            grouped: job.group.is_some(),
            task: job.batch.is_some(),
        }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, attempt, max_attempts, grouped, task } = self;
        write!(f, "{}.{}.{attempt}.{max_attempts}.", run.job, run.token)?;
        f.write_str(if *grouped { "g" } else { "-" })?;
        f.write_str(if *task { "t" } else { "-" })
    }
}

impl FromStr for Handle {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text).ok_or("it does not identify the run of a claimed job; send the run of a claim unchanged")
    }
}

fn read(text: &str) -> Option<Handle> {
    let mut parts = text.split('.');
    let job: JobId = parts.next()?.parse().ok()?;
    let token = RunToken(parts.next()?.parse().ok()?);
    let (attempt, max_attempts) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let (grouped, task) = match parts.next()? {
        "--" => (false, false),
        "g-" => (true, false),
        "-t" => (false, true),
        "gt" => (true, true),
        _ => return None,
    };
    parts.next().is_none().then_some(Handle { run: Run { job, token }, attempt, max_attempts, grouped, task })
}

impl Serialize for Handle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Handle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

    use super::*;

    #[test]
    fn a_handle_is_read_as_it_was_written() {
        for (grouped, task) in [(false, false), (true, false), (false, true), (true, true)] {
            let run = Run { job: JobId::new(), token: RunToken(7) };
            let handle = Handle { run, attempt: 2, max_attempts: 25, grouped, task };
            assert_eq!(handle.to_string().parse::<Handle>().unwrap(), handle);
        }
    }

    #[test]
    fn what_is_no_handle_is_refused() {
        let whole = format!("{}.1.1.25.--", JobId::new());
        assert!(whole.parse::<Handle>().is_ok());
        for text in ["", "...", "x.1.1.25.--", &whole[1..], &format!("{whole}.1"), &whole.replace("--", "tg")]
        {
            assert!(text.parse::<Handle>().is_err(), "{text}");
        }
    }
}

//! Dry runs: a few real chunks that are rolled back, and their cost. A worker performs each as a job of a separate kind.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::chunk::{FIRST_ROWS, Load};
use super::definition::{Definition, Effects};
use super::error::InvalidBulk;
use super::key::Key;
use super::operation;
use super::parameters::Parameters;
use super::run::{Rehearsal, TargetFailure, Total, Trial};
use crate::format;
use crate::job::NewJob;
use crate::job::error::InvalidJob;

/// How the kinds of its jobs begin; the name of the bulk job follows, so that only workers that run it claim them.
const KINDS: &str = "milepost.dry-run.";

/// The maximum number of rows of a chunk.
pub const ROWS_MAX: u32 = 1_000_000;
/// The default number of chunks.
pub const CHUNKS_DEFAULT: u32 = 3;
/// The maximum number of chunks.
pub const CHUNKS_MAX: u32 = 100;
/// The maximum size of the rows of a file that a job carries, in bytes. The rest of the file is only counted.
pub const SAMPLE_BYTES_MAX: usize = 512 * 1024;
/// The time limit of a job, which has a place among the runs of its worker.
const TIME_MAX: Duration = Duration::from_secs(5 * 60);
/// The maximum number of attempts of a job.
const ATTEMPTS_MAX: u32 = 3;

/// A dry run: the payload of its job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DryRun {
    /// The name of the bulk job.
    pub bulk: String,
    /// The named parameters of its SQL.
    #[serde(default)]
    pub parameters: Parameters,
    /// The number of rows of a chunk, from 1 to the maximum of the bulk job's chunks (or [`FIRST_ROWS`], if that is more).
    #[serde(default = "rows_default")]
    pub rows: u32,
    /// The number of chunks, from 1 to [`CHUNKS_MAX`].
    #[serde(default = "chunks_default")]
    pub chunks: u32,
    /// The beginning of the file that contains the targets, if they come from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileSample>,
}

/// The beginning of a file of targets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSample {
    /// The number of rows of the whole file.
    pub total: u64,
    /// Its first rows, each a JSON object.
    pub first: Vec<Box<RawValue>>,
}

impl DryRun {
    /// Creates a dry run of the default size.
    #[must_use]
    pub fn new(bulk: impl Into<String>, parameters: Parameters) -> Self {
        Self { bulk: bulk.into(), parameters, rows: FIRST_ROWS, chunks: CHUNKS_DEFAULT, file: None }
    }

    /// Returns the largest number of rows that it applies.
    #[must_use]
    pub fn rows_in_all(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.chunks)
    }

    /// Rejects a size outside of the limits, and a bulk job whose effects cannot be rolled back.
    ///
    /// # Errors
    /// [`InvalidBulk::Setting`], [`InvalidBulk::NoDryRun`].
    pub fn check(&self, definition: &Definition) -> Result<(), InvalidBulk> {
        // Its chunks load the database as those of a run may, and not more.
        let rows_max = definition.sizing.rows_max.clamp(FIRST_ROWS, ROWS_MAX);
        for (name, given, max) in [("rows", self.rows, rows_max), ("chunks", self.chunks, CHUNKS_MAX)] {
            if !(1..=max).contains(&given) {
                let range = format!("from 1 to {max}").into();
                return Err(InvalidBulk::Setting { name, given: given.to_string(), range });
            }
        }
        if is_rolled_back(definition) {
            return Ok(());
        }
        Err(InvalidBulk::NoDryRun {
            why: "its effects are outside of the database and cannot be rolled back",
        })
    }

    /// Returns the job that performs it, in the queue of its bulk job.
    ///
    /// # Errors
    /// [`InvalidJob`] if the file's rows are too large.
    pub fn job(&self, definition: &Definition) -> Result<NewJob, InvalidJob> {
        let job = NewJob::new(kind(&self.bulk), self)?
            .queue(definition.queue.clone())
            .priority(definition.priority);
        Ok(job.max_attempts(ATTEMPTS_MAX).timeout(TIME_MAX))
    }

    /// Returns the chunks to try.
    #[must_use]
    pub fn trial(&self) -> Trial {
        let first = self.file.iter().flat_map(|file| &file.first);
        Trial {
            rows: self.rows,
            chunks: self.chunks,
            staged: first.map(|row| row.get().to_owned()).collect(),
        }
    }
}

/// Returns the name of the bulk job of a dry run with this kind; `None` for other kinds.
#[must_use]
pub fn bulk_of(kind: &str) -> Option<&str> {
    kind.strip_prefix(KINDS)
}

/// Returns the dry run that a job performs; `None` if the job is of another kind.
#[must_use]
pub fn of_job(kind: &str, payload: &str) -> Option<DryRun> {
    if kind.starts_with(KINDS) { serde_json::from_str(payload).ok() } else { None }
}

/// Returns the kind of the dry runs of a bulk job.
#[must_use]
pub fn kind(bulk: &str) -> String {
    format!("{KINDS}{bulk}")
}

/// Returns whether dry runs of a bulk job are possible, as far as its definition shows.
#[must_use]
pub fn is_rolled_back(definition: &Definition) -> bool {
    let is_elsewhere = definition.effects == Effects::AtLeastOncePerChunk && definition.place.is_none();
    definition.name != operation::NAME && !is_elsewhere
}

/// The cost of the measured chunks, and an estimate for the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bill {
    /// The number of targets.
    pub targets: Option<Total>,
    /// The measured chunks.
    pub chunks: Vec<ChunkCost>,
    /// The speed without pauses.
    pub rows_per_s: Option<f64>,
    /// The total execution time of all chunks, in seconds.
    pub busy_s: Option<f64>,
    /// The duration with the pauses that rate and duty require, in seconds. Windows and throttles are not included.
    pub takes_s: Option<f64>,
    /// The first target that failed.
    pub failure: Option<FailedTarget>,
}

/// A target that could not be applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedTarget {
    /// Its key.
    pub key: Key,
    /// The error code of the database.
    pub code: String,
    /// The error message of the database.
    pub message: String,
}

/// The cost of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChunkCost {
    /// The number of its rows.
    pub rows: u32,
    /// Its duration, in ms.
    pub ms: f64,
}

impl ChunkCost {
    /// Returns the duration as text, in ms.
    #[must_use]
    pub fn ms_in_words(&self) -> String {
        if self.ms < 10.0 { format!("{:.1}", self.ms) } else { format!("{:.0}", self.ms) }
    }
}

impl Bill {
    /// Estimates the cost of a whole run.
    #[must_use]
    pub fn of(rehearsal: &Rehearsal, load: Load) -> Self {
        let (rows, took) = rehearsal
            .chunks
            .iter()
            .fold((0_u64, Duration::ZERO), |(rows, took), chunk| (rows + u64::from(chunk.0), took + chunk.1));
        let rows_per_s = (rows > 0 && !took.is_zero()).then(|| rows as f64 / took.as_secs_f64());
        let busy_s = rehearsal.total.zip(rows_per_s).map(|(total, rate)| total.rows as f64 / rate);
        let takes_s = busy_s.map(|busy| {
            let total = rehearsal.total.map_or(0.0, |total| total.rows as f64);
            let by_rate = load.rows_per_s.map_or(0.0, |rate| total / rate);
            by_rate.max(busy / load.duty)
        });
        // Rounded to whole microseconds.
        let cost = |&(rows, took): &(u32, Duration)| ChunkCost { rows, ms: took.as_micros() as f64 / 1000.0 };
        Self {
            targets: rehearsal.total,
            chunks: rehearsal.chunks.iter().map(cost).collect(),
            rows_per_s,
            busy_s,
            takes_s,
            failure: rehearsal.failure.clone().map(|TargetFailure { key, code, message, .. }| FailedTarget {
                key,
                code,
                message,
            }),
        }
    }

    /// Describes it for people, each fact with its name.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let seconds =
            |seconds: f64| format::length(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        let targets = self.targets.map(|total| {
            let about = if total.exact { "" } else { "about " };
            format!("{about}{}", format::count(total.rows))
        });
        // Without a rate or a duty, the duration is that of the work.
        let paused = self.takes_s.filter(|takes| self.busy_s.is_none_or(|busy| takes - busy > 0.001));
        let facts = [
            ("targets", targets),
            (
                "speed",
                self.rows_per_s.map(|rate| format!("{} with chunks of this size", format::per_second(rate))),
            ),
            ("work", self.busy_s.map(|busy| format!("{} of the database's time", seconds(busy)))),
            (
                "takes",
                paused.map(|takes| format!("{}, with the pauses of its rate and duty", seconds(takes))),
            ),
            (
                "failure",
                self.failure
                    .as_ref()
                    .map(|failure| format!("target {}: {}: {}", failure.key, failure.code, failure.message)),
            ),
            ("kept", Some("nothing: everything was rolled back".to_owned())),
        ];
        facts.into_iter().filter_map(|(name, fact)| fact.map(|fact| (name, fact))).collect()
    }
}

const fn rows_default() -> u32 {
    FIRST_ROWS
}

const fn chunks_default() -> u32 {
    CHUNKS_DEFAULT
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    #[test]
    fn a_bill_scales_the_measured_chunks_to_all_targets_and_adds_the_pauses() {
        let rehearsal = Rehearsal {
            chunks: vec![(500, Duration::from_millis(60)), (500, Duration::from_millis(40))],
            total: Some(Total { rows: 100_000, exact: true }),
            failure: None,
        };
        let bill = Bill::of(&rehearsal, Load { rows_per_s: None, duty: 0.5 });
        assert_eq!((bill.rows_per_s, bill.busy_s, bill.takes_s), (Some(10_000.0), Some(10.0), Some(20.0)));
        let by_rate = Bill::of(&rehearsal, Load { rows_per_s: Some(1000.0), duty: 1.0 });
        assert_eq!(by_rate.takes_s, Some(100.0));
        let read: Bill = serde_json::from_str(&serde_json::to_string(&bill).unwrap()).unwrap();
        assert_eq!(read, bill);
        let names: Vec<&str> = bill.facts().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["targets", "speed", "work", "takes", "kept"]);
    }

    #[test]
    fn a_dry_run_has_bounds_and_needs_effects_that_can_be_rolled_back() {
        let letter = Definition::new("letter");
        let dry_run = DryRun::new("letter", Parameters::default());
        assert_eq!(dry_run.check(&letter), Ok(()));
        for (rows, chunks) in [(0, 3), (letter.sizing.rows_max + 1, 3), (500, 0), (500, CHUNKS_MAX + 1)] {
            let refused = DryRun { rows, chunks, ..dry_run.clone() }.check(&letter);
            assert!(matches!(refused, Err(InvalidBulk::Setting { .. })), "{refused:?}");
        }
        let push = Definition { effects: Effects::AtLeastOncePerChunk, ..letter.clone() };
        assert!(matches!(dry_run.check(&push), Err(InvalidBulk::NoDryRun { .. })));
        let on_another_database = Definition { place: Some("shop".to_owned()), ..push };
        assert_eq!(dry_run.check(&on_another_database), Ok(()));
    }

    #[test]
    fn the_payload_of_a_job_is_the_dry_run() {
        let read: DryRun = serde_json::from_str(
            r#"{"bulk": "letter", "parameters": {"n": 100000000000000000001}, "file": {"total": 9, "first": [{"id": 1.50}]}}"#,
        )
        .unwrap();
        assert_eq!((read.rows, read.chunks, read.rows_in_all()), (500, 3, 1500));
        assert_eq!(read.trial().staged, [r#"{"id": 1.50}"#]);
        let job = read.job(&Definition::new("letter")).unwrap();
        assert_eq!((job.kind.as_str(), job.queue.as_str()), ("milepost.dry-run.letter", "bulk"));
        assert!(job.payload.get().contains("100000000000000000001"));
    }
}

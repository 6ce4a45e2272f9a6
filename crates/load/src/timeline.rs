//! What happened in each second and in each phase.

use std::time::Duration;

use hdrhistogram::Histogram;
use jiff::Timestamp;

use crate::api::JobRow;
use crate::evidence::Evidence;
use crate::phases::{Phase, Phases};

/// The longest time after the last create that is shown, in seconds.
const TAIL_MAX: usize = 120;

/// Latencies in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latencies {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The longest one.
    pub max: f64,
}

/// A span of the run.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// Its length in seconds.
    pub seconds: f64,
    /// The number of answered creates.
    pub creates: u64,
    /// The number of jobs that ended.
    pub ends: u64,
    /// The number of requests that failed and were repeated.
    pub errors: u64,
    /// The largest number of jobs at the end of a second that had not ended.
    pub backlog: u64,
    /// The time from when a create was due until its answer.
    pub create: Option<Latencies>,
    /// The time from the creation of a job until its first attempt.
    pub start: Option<Latencies>,
}

/// The run in seconds and in phases.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The seconds, from the beginning of the run until the last end.
    pub seconds: Vec<Span>,
    /// The phases.
    pub phases: Vec<Span>,
    /// The time from the end of the creates until the last end.
    pub settled: Duration,
}

/// A job of the store, with times from the beginning of the run.
struct Lifetime {
    created: Duration,
    /// How long it waited for its first attempt, if it had only one.
    waited: Option<Duration>,
    ended: Option<Duration>,
}

impl Timeline {
    /// Computes the timeline of a run that began at this time.
    #[must_use]
    pub fn of(phases: Phases, began: Timestamp, evidence: &Evidence, jobs: &[JobRow]) -> Self {
        let lifetimes: Vec<Lifetime> = jobs.iter().map(|job| Lifetime::of(job, began)).collect();
        let last = lifetimes.iter().filter_map(|job| job.ended).max().unwrap_or_default().max(phases.length);
        let whole = usize::try_from(last.as_secs() + 1).unwrap_or(usize::MAX);
        let shown = whole.min(usize::try_from(phases.length.as_secs()).unwrap_or(usize::MAX) + TAIL_MAX);
        let second = |index: usize| Duration::from_secs(index as u64);
        let mut seconds: Vec<Span> =
            (0..shown).map(|index| span(second(index), second(index + 1), evidence, &lifetimes)).collect();
        let borders = [Duration::ZERO, phases.begin(), phases.end(), phases.length];
        let mut of_phases: Vec<Span> =
            borders.windows(2).map(|border| span(border[0], border[1], evidence, &lifetimes)).collect();
        for (index, shown) in seconds.iter_mut().enumerate() {
            let end = second(index + 1);
            shown.backlog = backlog(&lifetimes, end);
            let phase = &mut of_phases[phase_index(phases.at(second(index)))];
            phase.backlog = phase.backlog.max(shown.backlog);
        }
        Self { seconds, phases: of_phases, settled: last - phases.length }
    }
}

impl Lifetime {
    fn of(job: &JobRow, began: Timestamp) -> Self {
        let since = |time: Timestamp| time.duration_since(began).try_into().unwrap_or(Duration::ZERO);
        let created = since(job.created_at);
        let started = job.started_at.filter(|_| job.attempt == 1).map(since);
        Self {
            created,
            waited: started.map(|started| started.saturating_sub(created)),
            ended: job.ended_at.map(since),
        }
    }
}

fn phase_index(phase: Phase) -> usize {
    match phase {
        Phase::Before => 0,
        Phase::During => 1,
        Phase::After => 2,
    }
}

/// Returns everything but the backlog of the time from `from` until `to`.
fn span(from: Duration, to: Duration, evidence: &Evidence, jobs: &[Lifetime]) -> Span {
    let is_in = |time: Duration| from <= time && time < to;
    let count = |times: &mut dyn Iterator<Item = Duration>| times.filter(|time| is_in(*time)).count() as u64;
    let calls = evidence.calls.iter();
    Span {
        seconds: (to - from).as_secs_f64(),
        creates: count(&mut calls.clone().map(|call| call.due + call.took)),
        ends: count(&mut jobs.iter().filter_map(|job| job.ended)),
        errors: count(&mut evidence.errors.iter().copied()),
        backlog: 0,
        create: latencies(calls.filter(|call| is_in(call.due)).map(|call| call.took)),
        start: latencies(jobs.iter().filter(|job| is_in(job.created)).filter_map(|job| job.waited)),
    }
}

/// Returns the number of jobs that were created before this time and had not ended.
fn backlog(jobs: &[Lifetime], at: Duration) -> u64 {
    let waits = |job: &&Lifetime| job.created < at && job.ended.is_none_or(|ended| ended >= at);
    jobs.iter().filter(waits).count() as u64
}

fn latencies(times: impl Iterator<Item = Duration>) -> Option<Latencies> {
    let mut histogram: Histogram<u64> = Histogram::new(3).ok()?;
    for time in times {
        histogram.record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)).ok()?;
    }
    if histogram.is_empty() {
        return None;
    }
    let ms = |micros: u64| micros as f64 / 1_000.0;
    Some(Latencies {
        p50: ms(histogram.value_at_quantile(0.5)),
        p99: ms(histogram.value_at_quantile(0.99)),
        max: ms(histogram.max()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Call;

    const BEGAN: Timestamp = Timestamp::UNIX_EPOCH;

    fn job(created_ms: i64, started_ms: i64, ended_ms: Option<i64>) -> JobRow {
        let at = |ms: i64| Timestamp::from_millisecond(ms).unwrap();
        JobRow {
            id: created_ms.to_string(),
            state: "succeeded".to_owned(),
            attempt: 1,
            created_at: at(created_ms),
            started_at: Some(at(started_ms)),
            ended_at: ended_ms.map(at),
        }
    }

    #[test]
    fn each_second_has_its_creates_ends_errors_and_backlog() {
        let call = |due_ms, took_ms| Call {
            due: Duration::from_millis(due_ms),
            took: Duration::from_millis(took_ms),
        };
        let evidence = Evidence {
            calls: vec![call(0, 100), call(900, 200), call(2_500, 10)],
            errors: vec![Duration::from_millis(1_500)],
            ..Evidence::default()
        };
        let jobs = [job(50, 60, Some(3_500)), job(1_000, 1_400, Some(1_900)), job(2_510, 2_520, None)];
        let phases = Phases { length: Duration::from_secs(3) };
        let timeline = Timeline::of(phases, BEGAN, &evidence, &jobs);
        let of_seconds: Vec<_> = timeline
            .seconds
            .iter()
            .map(|second| (second.creates, second.ends, second.errors, second.backlog))
            .collect();
        assert_eq!(of_seconds, [(1, 0, 0, 1), (1, 1, 1, 1), (1, 0, 0, 2), (0, 1, 0, 1)]);
        assert_eq!(timeline.settled, Duration::from_millis(500));
        assert_eq!(timeline.phases.iter().map(|phase| phase.backlog).collect::<Vec<_>>(), [1, 1, 2]);
    }

    #[test]
    fn a_create_that_was_repeated_is_slow_from_the_time_it_was_due() {
        let late = Call { due: Duration::from_millis(500), took: Duration::from_secs(4) };
        let evidence = Evidence { calls: vec![late], ..Evidence::default() };
        let timeline = Timeline::of(Phases { length: Duration::from_secs(6) }, BEGAN, &evidence, &[]);
        let slowest = timeline.phases[0].create.unwrap();
        assert!((slowest.max - 4_000.0).abs() < 10.0, "{slowest:?}");
        assert_eq!(timeline.phases[2].creates, 1, "it was answered in the last phase");
    }
}

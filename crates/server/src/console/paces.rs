//! Rates of running bulk jobs, measured between page views.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use milepost_core::bulk::estimate::Pace;
use milepost_core::bulk::listing::BulkView;
use milepost_core::bulk::settings::Settings;
use milepost_core::ident::JobId;
use milepost_core::state::JobState;

use super::format::{between, length};

/// Maximum number of runs whose rate is remembered.
const PACES_MAX: usize = 200;

/// The measurement of a run.
struct Measured {
    at: Instant,
    rows: u64,
    /// The settings under which it was measured: others make it worthless.
    settings: Settings,
    pace: Pace,
}

/// Rates of runs, measured between page views.
#[derive(Default)]
pub(crate) struct Paces {
    known: Mutex<HashMap<JobId, Measured>>,
}

impl Paces {
    fn known(&self) -> MutexGuard<'_, HashMap<JobId, Measured>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the measurement. Returns the current rate in rows/s, and the remaining time: `2 min to 5 min`.
    pub(super) fn learn(&self, view: &BulkView, now: Timestamp) -> (Option<f64>, Option<String>) {
        if view.state != JobState::Running {
            return (None, None);
        }
        let (seen_at, passed) = (Instant::now(), view.passed());
        let mut known = self.known();
        if known.len() >= PACES_MAX && !known.contains_key(&view.id) {
            known.clear();
        }
        let begin = || Measured { at: seen_at, rows: passed, settings: view.settings, pace: Pace::default() };
        let measured = known.entry(view.id).or_insert_with(begin);
        let was_changed = measured.settings != view.settings;
        if was_changed {
            *measured = begin();
        }
        measured.pace.learn(passed.saturating_sub(measured.rows), seen_at - measured.at);
        (measured.at, measured.rows) = (seen_at, passed);
        let pace = &measured.pace;
        let left = view.total.map(|total| total.rows.saturating_sub(passed));
        if let Some(remaining) = left.and_then(|left| pace.remaining(left)) {
            let (soonest, latest) = (length(remaining.soonest), length(remaining.latest));
            let range = if soonest == latest { soonest } else { format!("{soonest} to {latest}") };
            return (pace.rows_per_s(), Some(range));
        }
        // No measurement yet: use the average since the start, but no more than the limit.
        let took = view.started_at.map_or(0.0, |at| between(at, now).as_secs_f64());
        let rate = (took > 1.0 && passed > 0).then(|| passed as f64 / took);
        let rate = rate.map(|rate| view.settings.rows_per_s.map_or(rate, |limit| rate.min(limit)));
        let rest =
            rate.zip(left).and_then(|(rate, left)| Duration::try_from_secs_f64(left as f64 / rate).ok());
        (rate, rest.map(|rest| format!("about {}", length(rest))))
    }
}

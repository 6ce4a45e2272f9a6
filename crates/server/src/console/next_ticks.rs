//! The next ticks of a schedule, for pages.

use jiff::Timestamp;
use milepost_core::schedule::Spec;

/// Number of next ticks.
const TICKS: usize = 10;

/// A tick in the future.
pub(super) struct NextTick {
    pub(super) at: Timestamp,
    /// Its time in the zone of the schedule.
    pub(super) local: String,
}

/// Returns the next ticks.
pub(super) fn next_ticks(spec: &Spec, now: Timestamp) -> Vec<NextTick> {
    let local = |at: Timestamp| at.to_zoned(spec.zone()).strftime("%a %Y-%m-%d %H:%M:%S %:z").to_string();
    spec.ticks_after(now).take(TICKS).map(|at| NextTick { at, local: local(at) }).collect()
}

//! Lanes, in which claims search for jobs, and their floors.
//!
//! A lane is one (queue, kind, priority), which a claim searches with one probe of the index over ready jobs. Claimed jobs
//! leave dead index entries at the low end of a lane until vacuum may remove them, and a long-lived snapshot anywhere in the
//! database prevents that. Therefore each lane has a *floor*: a due time below which the last probe found no job. The next
//! probe starts there. Jobs whose enqueue commits late can be below the floor. Therefore a probe starts a margin below the
//! floor, and from time to time at the bottom of the lane, as often as the cost of doing so allows. If a poll-only process
//! finds nothing above the floors, it is notified when the next probe may start at the bottom.
//!
//! Floors are times of the database's clock; they are never compared with the clock of this machine.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use milepost_core::job::Priority;
use tokio::sync::watch;

/// Distance of a probe's start below the floor, for transactions that commit a little late. Every probe reads all entries
/// within it: at 100,000 jobs a second, a margin of half a second was 50,000 dead entries.
const MARGIN: SignedDuration = SignedDuration::from_millis(20);
/// Probes from the bottom may take one part in this number of the time.
const RESCAN_SHARE: u32 = 20;
/// Upper limit of the wait for the next probe from the bottom, for example after a probe on a stalled machine.
const RESCAN_WAIT_MAX: Duration = Duration::from_secs(30);
/// A probe from the bottom that is faster than this may be repeated every time.
const CHEAP: Duration = Duration::from_millis(3);

/// Maximum number of lanes whose floor is remembered, since claims over HTTP may name any lane.
const LANES_MAX: usize = 50_000;

/// One (queue, kind, priority).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lane {
    queue: String,
    kind: String,
    priority: i16,
}

/// The lanes of a probe as parallel arrays, to be bound.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) queues: Vec<String>,
    pub(crate) kinds: Vec<String>,
    pub(crate) priorities: Vec<i16>,
    /// Start of the probe in each lane; `None`: at the bottom.
    pub(crate) floors: Vec<Option<jiff_sqlx::Timestamp>>,
    /// Whether the probe starts at the bottom of all lanes, not at the floors.
    pub(crate) from_bottom: bool,
}

impl Probe {
    fn lane(&self, at: usize) -> Lane {
        Lane { queue: self.queues[at].clone(), kind: self.kinds[at].clone(), priority: self.priorities[at] }
    }
}

/// The floors of all lanes, as this process has seen them.
#[derive(Debug, Default)]
pub(crate) struct Floors {
    state: Mutex<State>,
    /// Notified when a claim found nothing and did not start at the bottom.
    overlooked: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    floors: HashMap<Lane, Timestamp>,
    rescan_after: Option<Instant>,
}

impl Floors {
    /// Returns the lanes to probe: higher priorities first; within a priority the pairs rotate, by `turn`. A `thorough`
    /// probe starts at the bottom, whatever it costs.
    pub(crate) fn probe(&self, pairs: &[(&str, &str)], turn: usize, thorough: bool) -> Probe {
        let state = self.lock();
        let from_bottom = thorough || state.rescan_after.is_none_or(|after| Instant::now() >= after);
        let lanes = pairs.len() * Priority::ALL.len();
        let mut probe = Probe {
            queues: Vec::with_capacity(lanes),
            kinds: Vec::with_capacity(lanes),
            priorities: Vec::with_capacity(lanes),
            floors: Vec::with_capacity(lanes),
            from_bottom,
        };
        for priority in Priority::ALL {
            for at in 0..pairs.len() {
                let (queue, kind) = pairs[(at + turn) % pairs.len()];
                let lane = Lane { queue: queue.into(), kind: kind.into(), priority: priority.get().into() };
                let floor = state.floors.get(&lane).filter(|_| !from_bottom);
                probe.floors.push(floor.and_then(|floor| floor.checked_sub(MARGIN).ok()).map(Into::into));
                probe.queues.push(lane.queue);
                probe.kinds.push(lane.kind);
                probe.priorities.push(lane.priority);
            }
        }
        probe
    }

    /// Records that the lane at this index of the probe has no jobs before `floor`.
    pub(crate) fn learn(&self, probe: &Probe, at: usize, floor: Timestamp) {
        let floors = &mut self.lock().floors;
        if floors.len() >= LANES_MAX {
            floors.clear();
        }
        floors.insert(probe.lane(at), floor);
    }

    /// Records how long the database took for a probe that returned `rows` jobs, and computes when a probe may start at the
    /// bottom again.
    pub(crate) fn spent(&self, probe: &Probe, took: Duration, rows: u32) {
        if probe.from_bottom {
            let looking = took.saturating_sub(Duration::from_micros(30) * rows);
            let wait = if looking < CHEAP { Duration::ZERO } else { looking * RESCAN_SHARE };
            self.lock().rescan_after = Some(Instant::now() + wait.min(RESCAN_WAIT_MAX));
        } else if rows == 0 {
            self.overlooked.send_replace(());
        }
    }

    /// Subscribes to claims that may have missed a job.
    pub(crate) fn overlooked(&self) -> watch::Receiver<()> {
        self.overlooked.subscribe()
    }

    /// Returns the time until a probe may start at the bottom again.
    pub(crate) fn bottom_in(&self) -> Duration {
        let after = self.lock().rescan_after;
        after.map_or(Duration::ZERO, |after| after.saturating_duration_since(Instant::now()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: &[(&str, &str)] = &[("default", "a"), ("default", "b")];

    #[test]
    fn higher_priorities_come_first_and_kinds_take_turns() {
        let floors = Floors::default();
        let probe = floors.probe(PAIRS, 0, false);
        assert_eq!(probe.priorities, [1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(probe.kinds[..2], ["a", "b"]);
        assert_eq!(floors.probe(PAIRS, 1, false).kinds[..2], ["b", "a"]);
    }

    #[test]
    fn a_probe_starts_at_the_floor_while_the_bottom_is_dear() {
        let floors = Floors::default();
        let probe = floors.probe(PAIRS, 0, false);
        assert!(probe.floors[0].is_none() && probe.from_bottom, "no floor is known yet");
        let noon: Timestamp = "2024-03-31T12:00:00Z".parse().unwrap();
        floors.learn(&probe, 0, noon);
        floors.spent(&probe, Duration::from_secs(3), 0);
        let next = floors.probe(PAIRS, 0, false);
        assert_eq!(next.floors[0].map(jiff_sqlx::Timestamp::to_jiff), Some(noon - MARGIN));
        assert!(next.floors[1].is_none(), "each lane has its own floor");
        assert!(floors.probe(PAIRS, 0, true).floors[0].is_none(), "a thorough probe starts at the bottom");
    }

    #[test]
    fn a_look_that_took_very_long_does_not_put_the_next_one_off_for_ever() {
        let floors = Floors::default();
        let probe = floors.probe(PAIRS, 0, false);
        floors.spent(&probe, Duration::from_secs(3600), 0);
        assert!(floors.bottom_in() <= RESCAN_WAIT_MAX, "{:?}", floors.bottom_in());
    }

    #[test]
    fn only_a_claim_that_looked_above_the_floors_and_found_nothing_may_have_overlooked_something() {
        let floors = Floors::default();
        let told = floors.overlooked();
        let bottom = floors.probe(PAIRS, 0, false);
        floors.spent(&bottom, Duration::from_secs(3), 0);
        let above = floors.probe(PAIRS, 0, false);
        floors.spent(&above, Duration::from_millis(1), 1);
        assert!(!told.has_changed().unwrap());
        floors.spent(&above, Duration::from_millis(1), 0);
        assert!(told.has_changed().unwrap());
    }

    #[test]
    fn a_cheap_bottom_is_looked_at_every_time() {
        let floors = Floors::default();
        let probe = floors.probe(PAIRS, 0, false);
        floors.learn(&probe, 0, Timestamp::UNIX_EPOCH);
        floors.spent(&probe, Duration::from_millis(1), 0);
        assert!(floors.probe(PAIRS, 0, false).floors.iter().all(Option::is_none));
    }
}

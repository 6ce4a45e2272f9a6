//! Lanes: where a claim looks, and how far down each is known to be empty.
//!
//! A lane is one (queue, kind, priority): one probe of the index over ready jobs. Jobs that were claimed
//! leave dead entries at its low end until vacuum may remove them, and a long-lived snapshot anywhere in the
//! database forbids that. So each lane has a *floor*, a due time below which nothing was left when the lane
//! was last looked at, and a probe starts there. Jobs whose enqueue commits late can lie below it: the floor
//! keeps a margin, and every now and then a probe starts from the bottom again, as often as its own cost
//! allows.
//!
//! Floors are kept as ages: the database says how old a job was, a monotonic clock says how long ago that
//! was. No wall clock of this machine is ever compared with the database's.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use milepost_core::job::Priority;

/// How far below the last job seen a floor stays, for transactions that commit a little late. Everything in
/// it is walked by every probe: at 100,000 jobs a second, half a second of margin was 50,000 dead entries.
const MARGIN_MS: i64 = 20;
/// Looking from the bottom may take one part in this many of the time.
const RESCAN_SHARE: u32 = 20;
/// A look from the bottom that is this fast can be had every time.
const CHEAP: Duration = Duration::from_millis(3);

/// One (queue, kind, priority).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lane {
    queue: String,
    kind: String,
    priority: i16,
}

/// The lanes of a probe as aligned arrays, to be bound.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) queues: Vec<String>,
    pub(crate) kinds: Vec<String>,
    pub(crate) priorities: Vec<i16>,
    /// How many ms before now nothing is left; `None`: unknown.
    pub(crate) ages_ms: Vec<Option<i64>>,
    /// Whether it looks at all there is, not only above the floors.
    pub(crate) from_bottom: bool,
    asked_at: Instant,
}

impl Probe {
    fn lane(&self, at: usize) -> Lane {
        Lane { queue: self.queues[at].clone(), kind: self.kinds[at].clone(), priority: self.priorities[at] }
    }
}

/// How far down each lane is known to be empty, as this process has seen it.
#[derive(Debug)]
pub(crate) struct Floors {
    epoch: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In ms since the epoch; may lie before it.
    floors_ms: HashMap<Lane, i64>,
    rescan_after: Option<Instant>,
}

impl Default for Floors {
    fn default() -> Self {
        Self { epoch: Instant::now(), state: Mutex::default() }
    }
}

impl Floors {
    /// Where to look: higher priorities first; within one the pairs take turns, by `turn`.
    pub(crate) fn probe(&self, pairs: &[(&str, &str)], turn: usize) -> Probe {
        let state = self.lock();
        let asked_at = Instant::now();
        let now_ms = self.ms(asked_at);
        let from_bottom = state.rescan_after.is_none_or(|after| asked_at >= after);
        let lanes = pairs.len() * Priority::ALL.len();
        let mut probe = Probe {
            queues: Vec::with_capacity(lanes),
            kinds: Vec::with_capacity(lanes),
            priorities: Vec::with_capacity(lanes),
            ages_ms: Vec::with_capacity(lanes),
            from_bottom,
            asked_at,
        };
        for priority in Priority::ALL {
            for at in 0..pairs.len() {
                let (queue, kind) = pairs[(at + turn) % pairs.len()];
                let lane = Lane { queue: queue.into(), kind: kind.into(), priority: priority.get().into() };
                let floor_ms = state.floors_ms.get(&lane).filter(|_| !from_bottom);
                probe.ages_ms.push(floor_ms.map(|floor_ms| now_ms - floor_ms + MARGIN_MS));
                probe.queues.push(lane.queue);
                probe.kinds.push(lane.kind);
                probe.priorities.push(lane.priority);
            }
        }
        probe
    }

    /// Remembers that the lane at this place of the probe has nothing left that is older than `age_ms`, as
    /// the database counted it.
    pub(crate) fn learn(&self, probe: &Probe, at: usize, age_ms: i64) {
        let floor_ms = self.ms(probe.asked_at) - age_ms.max(0);
        self.lock().floors_ms.insert(probe.lane(at), floor_ms);
    }

    /// Remembers that no lane of the probe had anything left that was due.
    pub(crate) fn learn_empty(&self, probe: &Probe) {
        for at in 0..probe.queues.len() {
            self.learn(probe, at, 0);
        }
    }

    /// Remembers what a probe cost that took `rows` jobs; decides when one may start from the bottom again.
    pub(crate) fn spent(&self, probe: &Probe, rows: u32) {
        if probe.from_bottom {
            let for_rows = Duration::from_micros(30) * rows;
            let took = probe.asked_at.elapsed().saturating_sub(for_rows);
            let wait = if took < CHEAP { Duration::ZERO } else { took * RESCAN_SHARE };
            self.lock().rescan_after = Some(Instant::now() + wait);
        }
    }

    /// How long until a probe may start from the bottom again.
    pub(crate) fn bottom_in(&self) -> Duration {
        let after = self.lock().rescan_after;
        after.map_or(Duration::ZERO, |after| after.saturating_duration_since(Instant::now()))
    }

    fn ms(&self, at: Instant) -> i64 {
        i64::try_from(at.saturating_duration_since(self.epoch).as_millis()).unwrap_or(i64::MAX)
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
        let probe = floors.probe(PAIRS, 0);
        assert_eq!(probe.priorities, [1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(probe.kinds[..2], ["a", "b"]);
        assert_eq!(floors.probe(PAIRS, 1).kinds[..2], ["b", "a"]);
    }

    #[test]
    fn a_probe_starts_at_the_floor_while_the_bottom_is_dear() {
        let floors = Floors::default();
        let probe = floors.probe(PAIRS, 0);
        assert_eq!(probe.ages_ms[0], None, "nothing is known yet");
        floors.learn(&probe, 0, 40);
        floors.lock().rescan_after = Some(Instant::now() + Duration::from_secs(60));
        let next = floors.probe(PAIRS, 0);
        assert!(next.ages_ms[0].is_some_and(|age_ms| age_ms >= 40 + MARGIN_MS), "{:?}", next.ages_ms);
        assert_eq!(next.ages_ms[1], None, "each lane has its own floor");
    }

    #[test]
    fn a_cheap_bottom_is_looked_at_every_time() {
        let floors = Floors::default();
        let probe = floors.probe(PAIRS, 0);
        floors.learn_empty(&probe);
        floors.spent(&probe, 0);
        assert!(floors.probe(PAIRS, 0).ages_ms.iter().all(Option::is_none));
    }
}

//! Adaptive chunk sizes of bulk jobs, and the pauses between chunks.

use std::collections::VecDeque;
use std::time::Duration;

/// The default number of rows of a run's first chunk, and of the chunks of a dry run.
pub const FIRST_ROWS: u32 = 500;
/// The number of rows of a run's first chunk on a store whose chunks must be short: the cost of a row is unknown then.
pub const FIRST_ROWS_SHORT: u32 = 10;
/// The number of recent chunks that are considered.
const REMEMBERED: usize = 10;
/// The maximum growth factor from one chunk to the next. A chunk may always grow by one row.
const GROWTH_MAX: f64 = 1.5;
/// A chunk with less than 1/4 of its planned rows is not used to measure the time per row, unless it took longer than
/// the target: it was the last one, or few targets were left.
const TELLING_SHARE: u32 = 4;

/// The target duration and the size limits of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// The target duration of a chunk's transaction.
    pub target: Duration,
    /// The minimum number of rows of a chunk.
    pub rows_min: u32,
    /// The maximum number of rows of a chunk.
    pub rows_max: u32,
}

impl Default for Sizing {
    /// 350 ms, between 50 and 50,000 rows.
    fn default() -> Self {
        Self { target: Duration::from_millis(350), rows_min: 50, rows_max: 50_000 }
    }
}

impl Sizing {
    /// Returns these settings for a store whose chunks must take at most this long. The default minimum number of rows does not apply,
    /// because rows can be expensive.
    #[must_use]
    pub fn within(self, max: Duration) -> Self {
        let is_default = self.rows_min == Self::default().rows_min;
        Self {
            target: self.target.min(max),
            rows_min: if is_default { 1 } else { self.rows_min },
            rows_max: self.rows_max,
        }
    }
}

/// Finds the chunk size at which chunks take their target duration. It grows slowly and shrinks immediately.
#[derive(Clone, Debug)]
pub struct ChunkSizer {
    sizing: Sizing,
    rows: u32,
    /// Seconds per row in each of the recent chunks, oldest first.
    row_seconds: VecDeque<f64>,
}

impl ChunkSizer {
    /// Creates a sizer that starts with this number of rows, such as the size of the previous worker's last chunk.
    #[must_use]
    pub fn new(sizing: Sizing, rows: u32) -> Self {
        let rows = rows.clamp(sizing.rows_min, sizing.rows_max);
        Self { sizing, rows, row_seconds: VecDeque::with_capacity(REMEMBERED) }
    }

    /// Returns the number of rows of the next chunk.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Changes the target duration and the limits, from the next chunk on.
    pub fn resize(&mut self, sizing: Sizing) {
        self.sizing = sizing;
        self.rows = self.rows.clamp(sizing.rows_min, sizing.rows_max);
    }

    /// Records how long a chunk of this number of rows took.
    pub fn learn(&mut self, rows: u32, took: Duration) {
        let late = took > self.sizing.target;
        if rows == 0 || (rows < self.rows / TELLING_SHARE && !late) {
            return;
        }
        if self.row_seconds.len() == REMEMBERED {
            self.row_seconds.pop_front();
        }
        let last = took.as_secs_f64() / f64::from(rows);
        self.row_seconds.push_back(last);
        // Recent slow chunks still count, and a slow last chunk counts immediately.
        let row = self.slow_row_seconds().max(last);
        let fitting = if row > 0.0 { self.sizing.target.as_secs_f64() / row } else { f64::INFINITY };
        // Growth by at least one row: half of one row rounds to zero.
        let most = (f64::from(self.rows) * GROWTH_MAX).max(f64::from(self.rows) + 1.0);
        // A float cast saturates.
        self.rows = (fitting.min(most) as u32).clamp(self.sizing.rows_min, self.sizing.rows_max);
    }

    /// Returns the 90th percentile of the recent chunks' seconds per row.
    fn slow_row_seconds(&self) -> f64 {
        let mut sorted: Vec<f64> = self.row_seconds.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let at = (sorted.len() * 9).div_ceil(10).saturating_sub(1);
        sorted.get(at).copied().unwrap_or_default()
    }
}

/// The share of the database's time that the bulk jobs of a group may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The maximum number of rows per second; `None`: unlimited.
    pub rows_per_s: Option<f64>,
    /// The fraction of the time that chunks may use: greater than 0 and at most 1.
    pub duty: f64,
}

impl Default for Load {
    /// No rate limit and no pauses.
    fn default() -> Self {
        Self { rows_per_s: None, duty: 1.0 }
    }
}

/// The lowest rate, in rows per second, and the lowest share of the time: with less, a run would seem to make no progress.
pub const LOAD_MIN: f64 = 0.001;
/// The highest rate, in rows per second.
pub const RATE_MAX: f64 = 1e8;

impl Load {
    /// Returns how long to pause after a chunk of `rows` rows that took `took`, counted from the end of the chunk.
    #[must_use]
    pub fn rest(&self, rows: u32, took: Duration) -> Duration {
        let by_rate = self.rows_per_s.map_or(0.0, |rate| f64::from(rows) / rate - took.as_secs_f64());
        let by_duty = took.as_secs_f64() * (1.0 / self.duty - 1.0);
        Duration::try_from_secs_f64(by_rate.max(by_duty).max(0.0)).unwrap_or(Duration::MAX)
    }

    /// Returns the maximum number of rows of a chunk, so that a low rate is reached with small chunks rather than with long pauses.
    #[must_use]
    pub fn rows_max(&self, every: Duration) -> u32 {
        self.rows_per_s.map_or(u32::MAX, |rate| ((rate * every.as_secs_f64()) as u32).max(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sizer(rows: u32) -> ChunkSizer {
        ChunkSizer::new(Sizing::default(), rows)
    }

    /// Processes chunks on a store where each row takes this long.
    fn run(sizer: &mut ChunkSizer, row: Duration, chunks: usize) {
        for _ in 0..chunks {
            sizer.learn(sizer.rows(), row * sizer.rows());
        }
    }

    #[test]
    fn chunks_grow_to_their_target_by_half_at_a_time() {
        let mut sizer = sizer(100);
        run(&mut sizer, Duration::from_micros(100), 1);
        assert_eq!(sizer.rows(), 150);
        run(&mut sizer, Duration::from_micros(100), 20);
        assert!((3_400..=3_500).contains(&sizer.rows()), "{}", sizer.rows());
    }

    #[test]
    fn chunks_of_one_row_grow_as_well() {
        let sizing = Sizing { rows_min: 1, ..Sizing::default() };
        let mut sizer = ChunkSizer::new(sizing, 1);
        run(&mut sizer, Duration::from_micros(100), 1);
        assert_eq!(sizer.rows(), 2);
        run(&mut sizer, Duration::from_micros(100), 30);
        assert!((3_400..=3_500).contains(&sizer.rows()), "{}", sizer.rows());
    }

    #[test]
    fn a_slow_chunk_shrinks_the_next_one_at_once() {
        let mut sizer = sizer(3_500);
        run(&mut sizer, Duration::from_micros(100), 10);
        run(&mut sizer, Duration::from_millis(1), 1);
        assert!((345..=350).contains(&sizer.rows()), "{}", sizer.rows());
    }

    #[test]
    fn one_slow_chunk_among_ten_is_forgotten_when_the_others_are_fast() {
        let mut sizer = sizer(3_500);
        run(&mut sizer, Duration::from_millis(1), 1);
        run(&mut sizer, Duration::from_micros(100), 30);
        assert!(sizer.rows() > 3_300, "{}", sizer.rows());
    }

    #[test]
    fn a_chunk_that_was_not_filled_tells_nothing_unless_it_was_late() {
        let mut sizer = sizer(1_000);
        sizer.learn(3, Duration::from_millis(30));
        assert_eq!(sizer.rows(), 1_000);
        sizer.learn(3, Duration::from_secs(1));
        assert_eq!(sizer.rows(), 50, "the minimum");
    }

    #[test]
    fn a_rate_and_a_duty_cycle_make_it_rest() {
        let took = Duration::from_millis(300);
        let rested = |rows_per_s, duty| Load { rows_per_s, duty }.rest(1_000, took);
        assert_eq!(rested(None, 1.0), Duration::ZERO);
        assert_eq!(rested(Some(2_000.0), 1.0), Duration::from_millis(200));
        assert_eq!(rested(Some(10_000.0), 1.0), Duration::ZERO, "it is already slower than its rate");
        assert_eq!(rested(None, 0.25), Duration::from_millis(900));
        assert_eq!(rested(Some(2_000.0), 0.25), Duration::from_millis(900), "the longer of the two");
    }

    proptest! {
        #[test]
        fn sizes_stay_within_their_bounds(took_ms in proptest::collection::vec((0u64..100_000, 0u32..80_000), 1..50)) {
            let mut sizer = sizer(500);
            for (ms, rows) in took_ms {
                let before = sizer.rows();
                sizer.learn(rows.min(before), Duration::from_millis(ms));
                let now = sizer.rows();
                prop_assert!((50..=50_000).contains(&now));
                prop_assert!(f64::from(now) <= f64::from(before) * GROWTH_MAX);
            }
        }
    }
}

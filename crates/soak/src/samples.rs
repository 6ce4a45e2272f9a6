//! Measurements at regular times, and the bounds of their growth.

use std::collections::BTreeMap;

use anyhow::Result;
use tokio::sync::Mutex;

use crate::place::Place;
use crate::processes::Processes;
use crate::receiver::Receiver;
use crate::trend::{Bound, Series, Trend};

/// Growth of memory, tables and indexes, in MiB: a tenth, or what single pages and allocations explain.
const SIZE: Bound = Bound { share: 0.1, slack: 4.0 };
/// Growth of numbers of threads, files and sessions.
const NUMBER: Bound = Bound { share: 0.1, slack: 6.0 };
/// Growth of numbers of dead rows, as a share. They swing between two vacuums, see [`DEAD_ROWS_OF_JOB`].
const DEAD_SHARE: f64 = 0.25;
/// The dead rows of a table for each job, at most: its states.
const DEAD_ROWS_OF_JOB: f64 = 3.0;
/// The time between two vacuums of a table, at most: the pause of autovacuum is a minute.
const VACUUM_EVERY_S: f64 = 120.0;
/// Growth of latencies, in milliseconds. Faults cause single large ones.
const LATENCY: Bound = Bound { share: 0.25, slack: 25.0 };

/// All series, by their name.
#[derive(Debug)]
pub(crate) struct Samples {
    /// What dead rows may do, in thousands.
    dead: Bound,
    series: BTreeMap<String, (Series, Bound)>,
}

impl Samples {
    /// Creates samples of a load with this rate of jobs.
    pub(crate) const fn new(jobs_per_s: f64) -> Self {
        let slack = jobs_per_s * DEAD_ROWS_OF_JOB * VACUUM_EVERY_S / 1_000.0;
        Self { dead: Bound { share: DEAD_SHARE, slack }, series: BTreeMap::new() }
    }

    /// Measures everything. `at_s`: the time from the begin.
    pub(crate) async fn take(
        &mut self,
        at_s: f64,
        place: &Place,
        processes: &Mutex<Processes>,
        receiver: &Receiver,
    ) -> Result<()> {
        for process in &processes.lock().await.steady {
            let Some(usage) = process.usage() else { continue };
            self.push(at_s, format!("{}: memory (MiB)", process.name()), usage.memory_mib, SIZE);
            self.push(at_s, format!("{}: threads", process.name()), usage.threads, NUMBER);
            self.push(at_s, format!("{}: files and connections", process.name()), usage.files, NUMBER);
        }
        if let Some([p50, p99]) = receiver.take_latency([0.5, 0.99]) {
            self.push(at_s, "latency p50 (ms)".to_owned(), p50, LATENCY);
            self.push(at_s, "latency p99 (ms)".to_owned(), p99, LATENCY);
        }
        for (name, value) in place.sizes().await? {
            let (unit, bound) = match &*name {
                "sessions" => ("", NUMBER),
                name if name.starts_with("dead rows") => (" (thousands)", self.dead),
                _ => (" (MiB)", SIZE),
            };
            self.push(at_s, format!("{name}{unit}"), value, bound);
        }
        Ok(())
    }

    fn push(&mut self, at_s: f64, name: String, value: f64, bound: Bound) {
        self.series.entry(name).or_insert_with(|| (Series::default(), bound)).0.push(at_s, value);
    }

    /// Returns the trend of each series after this time.
    pub(crate) fn trends(&self, after_s: f64) -> Vec<(String, Trend)> {
        let trend = |(name, (series, bound)): (&String, &(Series, Bound))| {
            series.trend(after_s, *bound).map(|trend| (name.clone(), trend))
        };
        self.series.iter().filter_map(trend).collect()
    }

    /// Returns all points, by the name of their series.
    pub(crate) fn points(&self) -> BTreeMap<&str, &Series> {
        self.series.iter().map(|(name, (series, _))| (&**name, series)).collect()
    }
}

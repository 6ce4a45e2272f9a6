//! Promise 10: ticks of schedules.

use std::collections::HashMap;

use super::verdict::Findings;
use crate::record::{Record, Row};

/// A tick makes at most one job, and a due tick makes one.
pub(super) fn one_job_per_tick(record: &Record, findings: &mut Findings) {
    let mut made: HashMap<&str, u32> = HashMap::new();
    for tick in record.jobs().filter_map(|job| job.tick.as_deref()) {
        *made.entry(tick).or_default() += 1;
    }
    for (tick, jobs) in &made {
        findings.check(*jobs == 1, || format!("the tick {tick} made {jobs} jobs"));
    }
    for row in &record.rows {
        let Row::Schedule { name, due } = row else { continue };
        for time in due {
            findings.check(made.contains_key(&*format!("{name} {time}")), || {
                format!("the tick of {time} of schedule {name} made no job")
            });
        }
    }
}

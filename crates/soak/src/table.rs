//! The report: what happened, and the trend of each quantity.

use std::collections::BTreeMap;
use std::fmt;

use crate::faults::Fault;
use crate::place::StoreKind;
use crate::receiver::Counts;
use crate::trend::Trend;

/// The smallest value in MiB, thousands or a number that is shown although it is flat.
const SHOWN_FROM: f64 = 0.5;

/// What happened.
#[derive(Debug)]
pub struct Outcome {
    pub(crate) store: StoreKind,
    /// The jobs a second, and the largest rate that was measured.
    pub(crate) rate: f64,
    pub(crate) rate_max: Option<f64>,
    pub(crate) faults: BTreeMap<Fault, u32>,
    /// The jobs and events that were created.
    pub(crate) jobs: u64,
    pub(crate) events: u64,
    pub(crate) arrived: Counts,
    pub(crate) trends: Vec<(String, Trend)>,
    /// Seconds after which the trends begin, and end.
    pub(crate) judged: (f64, f64),
    /// What `milepost doctor` found, and processes that failed.
    pub(crate) failed: Vec<String>,
}

impl Outcome {
    /// Returns why it failed.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let mut failures = self.failed.clone();
        let Counts { jobs, events, events_early, .. } = self.arrived;
        if jobs != self.jobs {
            failures.push(format!("{} jobs never ran", self.jobs - jobs));
        }
        if events != self.events || events_early > 0 {
            failures.push(format!("of {} events, {events} arrived, {events_early} too early", self.events));
        }
        if self.faults.is_empty() {
            failures.push("no fault happened".to_owned());
        }
        if self.trends.is_empty() {
            failures.push("nothing was measured: the time after the begin is too short".to_owned());
        }
        let growing = self.trends.iter().filter(|(_, trend)| !trend.is_flat());
        failures.extend(growing.map(|(name, trend)| {
            format!("{name} grew by {:.1}, at most {:.1} are allowed", trend.growth, trend.allowed)
        }));
        failures
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { jobs_again, events_again, .. } = self.arrived;
        write!(f, "store {:?}, {:.0} jobs a second", self.store, self.rate)?;
        match self.rate_max {
            Some(most) => writeln!(f, " (half of {most:.0}, measured at the begin)")?,
            None => writeln!(f)?,
        }
        for (fault, count) in &self.faults {
            writeln!(f, "{count:>8}  {}", fault.as_str())?;
        }
        writeln!(f, "{:>8}  jobs, {jobs_again} of them called again", self.jobs)?;
        writeln!(f, "{:>8}  events, {events_again} deliveries repeated", self.events)?;
        let (from, to) = self.judged;
        writeln!(f, "from {from:.0} s to {to:.0} s:")?;
        writeln!(f, "{:<46} {:>9} {:>9} {:>9} {:>9}", "", "begin", "end", "growth", "allowed")?;
        let shown = |trend: &Trend| trend.end.max(trend.begin) >= SHOWN_FROM || !trend.is_flat();
        for (name, trend) in self.trends.iter().filter(|(_, trend)| shown(trend)) {
            let Trend { begin, end, growth, allowed } = trend;
            let verdict = if trend.is_flat() { "" } else { "  GROWS" };
            writeln!(f, "{name:<46} {begin:>9.1} {end:>9.1} {growth:>9.1} {allowed:>9.1}{verdict}")?;
        }
        for failure in self.failures() {
            writeln!(f, "FAILED: {failure}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        let flat = Trend { begin: 10.0, end: 10.0, growth: 0.0, allowed: 1.0 };
        Outcome {
            store: StoreKind::Sqlite,
            rate: 100.0,
            rate_max: None,
            faults: BTreeMap::from([(Fault::KillProcess, 3)]),
            jobs: 50,
            events: 10,
            arrived: Counts { jobs: 50, events: 10, ..Counts::default() },
            trends: vec![("the file (MiB)".to_owned(), flat)],
            judged: (10.0, 60.0),
            failed: Vec::new(),
        }
    }

    #[test]
    fn a_run_in_which_everything_arrived_and_nothing_grew_has_not_failed() {
        assert_eq!(outcome().failures(), [] as [String; 0]);
    }

    #[test]
    fn a_lost_job_and_a_lost_event_are_failures() {
        let lost = Outcome { jobs: 51, ..outcome() };
        assert_eq!(lost.failures(), ["1 jobs never ran"]);
        let lost = Outcome { events: 11, ..outcome() };
        assert_eq!(lost.failures(), ["of 11 events, 10 arrived, 0 too early"]);
    }

    #[test]
    fn an_event_before_an_earlier_one_is_a_failure() {
        let early = Counts { events_early: 1, ..outcome().arrived };
        assert_eq!(Outcome { arrived: early, ..outcome() }.failures().len(), 1);
    }

    #[test]
    fn growth_is_a_failure_and_is_shown() {
        let grows = Trend { begin: 10.0, end: 15.0, growth: 5.0, allowed: 1.0 };
        let grown = Outcome { trends: vec![("the file (MiB)".to_owned(), grows)], ..outcome() };
        assert_eq!(grown.failures(), ["the file (MiB) grew by 5.0, at most 1.0 are allowed"]);
        assert!(grown.to_string().contains("GROWS"));
    }

    #[test]
    fn a_run_without_faults_or_measurements_proves_nothing() {
        assert_eq!(Outcome { faults: BTreeMap::new(), ..outcome() }.failures(), ["no fault happened"]);
        assert_eq!(Outcome { trends: Vec::new(), ..outcome() }.failures().len(), 1);
    }
}

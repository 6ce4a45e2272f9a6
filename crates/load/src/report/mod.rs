//! The report of a run: a text for the terminal, and a page.

mod chart;

use std::fmt;

use anyhow::Result;
use askama::Template;
use jiff::Timestamp;

use crate::args::Arguments;
use crate::phases::{Phase, Phases};
use crate::recovery::Recovery;
use crate::scenario::LEASE;
use crate::timeline::{Latencies, Span, Timeline};
use crate::verdict::Check;
use chart::{Chart, Line};

/// The number of cases of a broken rule that are shown.
const SHOWN: usize = 5;

/// A finished run.
#[derive(Debug)]
pub struct Report {
    /// The options.
    pub arguments: Arguments,
    /// When it began.
    pub began_at: Timestamp,
    /// Its phases.
    pub phases: Phases,
    /// The number of jobs in the store.
    pub jobs: usize,
    /// The rules.
    pub checks: Vec<Check>,
    /// The times after kills of workers.
    pub recovery: Recovery,
    /// What happened when.
    pub timeline: Timeline,
    /// The times of kills, in seconds from the beginning.
    pub kills: Vec<f64>,
}

/// The page.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'report> {
    report: &'report Report,
    command: String,
    facts: Vec<(&'static str, String)>,
    phases: Vec<Row>,
    charts: Vec<Chart>,
    seconds: Vec<Row>,
}

/// A row of a table.
struct Row {
    title: String,
    values: Vec<String>,
}

/// The values of a phase or a second: their names in wide tables, and in the table of phases.
const VALUES: [(&str, &str); 10] = [
    ("Creates/s", "Answered creates per second"),
    ("Ends/s", "Ended jobs per second"),
    ("Create p50", "Latency of creates, p50 (ms)"),
    ("Create p99", "Latency of creates, p99 (ms)"),
    ("Create max", "Latency of creates, maximum (ms)"),
    ("Start p50", "Wait for the first attempt, p50 (ms)"),
    ("Start p99", "Wait for the first attempt, p99 (ms)"),
    ("Start max", "Wait for the first attempt, maximum (ms)"),
    ("Backlog", "Largest backlog (jobs)"),
    ("Errors", "Failed requests, which were repeated"),
];

impl Report {
    /// Returns whether every rule was kept.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.checks.iter().all(Check::is_kept)
    }

    /// Returns the table of phases: a row for each value, so that it is narrow enough for a phone.
    fn phases(&self) -> Vec<Row> {
        let phases = self.rows();
        let row = |(index, (_, name)): (usize, &(&str, &str))| Row {
            title: (*name).to_owned(),
            values: phases.iter().map(|phase| phase.values[index].clone()).collect(),
        };
        VALUES.iter().enumerate().map(row).collect()
    }

    /// Returns the page: one HTML file without scripts.
    ///
    /// # Errors
    /// When the template fails.
    pub fn page(&self) -> Result<String> {
        let spans = self.timeline.seconds.iter().enumerate();
        let page = Page {
            report: self,
            command: self.command(),
            facts: self.facts(),
            phases: self.phases(),
            charts: self.charts(),
            seconds: spans.map(|(second, span)| Row::of(second.to_string(), span)).collect(),
        };
        Ok(page.render()?)
    }

    fn verdict(&self) -> &'static str {
        if self.has_passed() { "Passed" } else { "Failed" }
    }

    fn command(&self) -> String {
        let Arguments { scenario, store, seconds, rate, .. } = &self.arguments;
        let name =
            |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_owned());
        let scenario = name(clap::ValueEnum::to_possible_value(scenario)).unwrap_or_default();
        let store = name(clap::ValueEnum::to_possible_value(store)).unwrap_or_default();
        format!("scripts/load --scenario {scenario} --store {store} --seconds {seconds} --rate {rate}")
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let settled = self.timeline.settled.as_secs_f64();
        let mut facts = vec![
            ("Store", self.arguments.store.title().to_owned()),
            ("Jobs", self.jobs.to_string()),
            ("Load", format!("{} jobs per second for {} s", self.arguments.rate, self.arguments.seconds)),
            ("Last end", format!("{settled:.1} s after the last create was due")),
            ("Began", format!("{:.0}", self.began_at)),
        ];
        let recovery = [("p50", 0.5), ("p99", 0.99), ("maximum", 1.0)];
        let recovery: Vec<String> = recovery
            .iter()
            .filter_map(|(name, share)| Some((name, self.recovery.beyond_lease(*share, LEASE)?)))
            .map(|(name, beyond)| {
                format!("{name} lease {} {:.2} s", if beyond < 0.0 { '−' } else { '+' }, beyond.abs())
            })
            .collect();
        if !recovery.is_empty() {
            let (lost, lease_s) = (self.recovery.seconds.len(), LEASE.as_secs());
            let words = format!(
                "{} ({lost} attempts lost with {} workers; lease {lease_s} s)",
                recovery.join(", "),
                self.kills.len()
            );
            facts.push(("From a kill to the next attempt", words));
        }
        facts
    }

    fn rows(&self) -> Vec<Row> {
        let phases = Phase::ALL.iter().zip(&self.timeline.phases);
        phases.map(|(phase, span)| Row::of(phase.title().to_owned(), span)).collect()
    }

    fn charts(&self) -> Vec<Chart> {
        let seconds = &self.timeline.seconds;
        let line = |name, class, value: &dyn Fn(&Span) -> Option<f64>| Line {
            name,
            class,
            values: seconds.iter().map(value).collect(),
        };
        let percentiles = |of: fn(&Span) -> Option<Latencies>| {
            vec![
                line("p50", "first", &|span| of(span).map(|latencies| latencies.p50)),
                line("p99", "second", &|span| of(span).map(|latencies| latencies.p99)),
            ]
        };
        let rates = vec![
            line("Creates", "first", &|span| Some(span.creates as f64)),
            line("Ends", "second", &|span| Some(span.ends as f64)),
        ];
        let chart = |title, unit, lines| Chart::new(title, unit, lines, self.phases, &self.kills);
        vec![
            chart("Creates and ends", "per second", rates),
            chart("Latency of creates", "ms", percentiles(|span| span.create)),
            chart("Wait for the first attempt", "ms", percentiles(|span| span.start)),
            chart(
                "Backlog",
                "jobs that have not ended",
                vec![line("Backlog", "first", &|span| Some(span.backlog as f64))],
            ),
            chart(
                "Errors",
                "per second",
                vec![line("Failed requests", "bad", &|span| Some(span.errors as f64))],
            ),
        ]
    }
}

impl Row {
    fn of(title: String, span: &Span) -> Self {
        let rate = |count: u64| format!("{:.1}", count as f64 / span.seconds.max(f64::EPSILON));
        let ms = |of: Option<Latencies>, value: fn(Latencies) -> f64| {
            of.map_or_else(|| "–".to_owned(), |latencies| format!("{:.1}", value(latencies)))
        };
        let values = vec![
            rate(span.creates),
            rate(span.ends),
            ms(span.create, |of| of.p50),
            ms(span.create, |of| of.p99),
            ms(span.create, |of| of.max),
            ms(span.start, |of| of.p50),
            ms(span.start, |of| of.p99),
            ms(span.start, |of| of.max),
            span.backlog.to_string(),
            span.errors.to_string(),
        ];
        Self { title, values }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.command())?;
        for (name, value) in self.facts() {
            writeln!(f, "{name}: {value}")?;
        }
        writeln!(f, "{:8} {}", "", VALUES.map(|(name, _)| format!("{name:>10}")).join(" "))?;
        for row in self.rows() {
            let values: Vec<String> = row.values.iter().map(|value| format!("{value:>10}")).collect();
            writeln!(f, "{:8} {}", row.title, values.join(" "))?;
        }
        for check in &self.checks {
            let sign = if check.is_kept() { "kept  " } else { "BROKEN" };
            writeln!(f, "{sign} {} ({} checked)", check.rule, check.checked)?;
            for words in check.broken.iter().take(SHOWN) {
                writeln!(f, "         {words}")?;
            }
        }
        writeln!(f, "{}", self.verdict())
    }
}

#[cfg(test)]
mod tests;

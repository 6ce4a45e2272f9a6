//! The report of a move, as text and as JSON.

use anyhow::Result;
use indicatif::HumanCount;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::relocation::{MoveId, Part};
use serde::Serialize;
use serde_json::json;

use super::copy::{Carried, per_s};
use super::stores::Ends;
use super::verify::Check;

/// The number of copied rows and the results of the checks.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(rename = "move")]
    id: MoveId,
    from: String,
    to: String,
    resumed: bool,
    jobs: u64,
    /// Rows copied by this run.
    rows: u64,
    seconds: f64,
    rows_per_s: u64,
    parts: Vec<PartReport>,
    checks: Vec<Check>,
    pub(super) complete: bool,
}

#[derive(Serialize)]
struct PartReport {
    table: &'static str,
    rows: u64,
    carried: u64,
    rows_per_s: u64,
}

impl Report {
    pub(super) fn of(
        ends: &Ends,
        id: MoveId,
        resumed: bool,
        carried: Vec<Carried>,
        seconds: f64,
        checks: Vec<Check>,
        complete: bool,
    ) -> Self {
        let rows = carried.iter().map(|part| part.rows).sum();
        let jobs = carried.iter().find(|part| part.part == Part::Jobs).map_or(0, |part| part.all);
        let parts = carried.iter().map(PartReport::of).collect();
        Self {
            id,
            from: ends.from.to_string(),
            to: ends.to.to_string(),
            resumed,
            jobs,
            rows,
            seconds: (seconds * 1000.0).round() / 1000.0,
            rows_per_s: per_s(rows, seconds),
            parts,
            checks,
            complete,
        }
    }
}

impl PartReport {
    fn of(carried: &Carried) -> Self {
        let Carried { part, rows, all, seconds } = *carried;
        Self { table: part.as_str(), rows: all, carried: rows, rows_per_s: per_s(rows, seconds) }
    }
}

/// Prints the checks and the copy rates.
pub(super) fn print(report: &Report, json: bool) -> Result<()> {
    if json {
        return output::heard_or_not(output::json(report));
    }
    output::heard_or_not(table(report))
}

fn table(report: &Report) -> Result<()> {
    let mut listing = Listing::new([
        Column::unbroken(""),
        Column::unbroken("COMPARED"),
        Column::new("OLD STORE"),
        Column::new("NEW STORE"),
    ]);
    for check in &report.checks {
        listing.row([
            Field::mark(check.passed),
            Field::text(&check.what),
            Field::text(&check.source),
            Field::text(&check.target),
        ]);
    }
    listing.print()?;
    let Report { from, to, seconds, .. } = report;
    let [jobs, rows, rate] = [report.jobs, report.rows, report.rows_per_s].map(HumanCount);
    output::line(format_args!("\n{rows} rows of {jobs} jobs in {seconds:.1} s: {rate} rows per second."))?;
    match report.checks.iter().filter(|check| !check.passed).count() {
        0 => output::line(format_args!(
            "Every check passed. The jobs continue at {to}; {from} remains readable."
        ))?,
        failed => output::line(format_args!(
            "Checks FAILED: {failed}. The move is not complete and neither store can be used; --give-up abandons it."
        ))?,
    }
    Ok(())
}

/// Reports that the move was complete already.
pub(super) fn moved_already(ends: &Ends, id: MoveId, json: bool) -> Result<Outcome> {
    let told = if json {
        output::json(&json!({ "move": id, "from": ends.from.to_string(), "to": ends.to.to_string(),
                              "resumed": true, "rows": 0, "complete": true }))
    } else {
        output::change(format_args!("{} was moved to {} already (move {id})", ends.from, ends.to))
    };
    output::heard_or_not(told)?;
    Ok(Outcome::Done)
}

/// Reports that a move was abandoned.
pub(super) fn given_up(ends: &Ends, id: MoveId, json: bool) -> Result<()> {
    output::heard_or_not(if json {
        output::json(&json!({ "move": id, "from": ends.from.to_string(), "to": ends.to.to_string(),
                              "given_up": true }))
    } else {
        output::change(format_args!(
            "abandoned move {id}: {} can be used as before, {} has no rows of it",
            ends.from, ends.to
        ))
    })
}

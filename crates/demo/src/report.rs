//! The table of results at the end of the demo.

use std::time::Duration;

use anyhow::Result;
use indicatif::HumanCount;
use milepost_cli_support::output;
use milepost_cli_support::table::{Column, Field, Listing};

use super::plan::Plan;
use super::show::{Seen, per_s};
use super::verify::Check;

/// Prints the checks of the jobs, and their rates.
pub(super) fn print(plan: Plan, checks: &[Check], seen: &Seen) -> Result<()> {
    print_checks("IN THE DATABASE", checks)?;
    let speed = |what, duration: Duration| {
        let rate = HumanCount(per_s(plan.places.into(), duration));
        format!("{what} in {:.1} s: {rate} jobs per second", duration.as_secs_f64())
    };
    output::line(format_args!("\n{}.", speed("Enqueued", seen.enqueue)))?;
    output::line(format_args!("{}, including the wait for the lease.", speed("Run", seen.run)))?;
    print_sum(checks)
}

/// Prints the checks of the bulk jobs.
pub(super) fn print_notices(checks: &[Check]) -> Result<()> {
    print_more("IN THE DATABASE", checks)
}

/// Prints the checks of the batch.
pub(super) fn print_settlement(checks: &[Check]) -> Result<()> {
    print_more("IN DATABASE AND REPORT", checks)
}

fn print_more(where_found: &'static str, checks: &[Check]) -> Result<()> {
    output::line("")?;
    print_checks(where_found, checks)?;
    output::line("")?;
    print_sum(checks)
}

fn print_checks(where_found: &'static str, checks: &[Check]) -> Result<()> {
    let mut listing = Listing::new([
        Column::unbroken(""),
        Column::unbroken(where_found),
        Column::unbroken("FOUND"),
        Column::new("EXPECTED"),
    ]);
    for check in checks {
        listing.row([
            Field::mark(check.passed),
            Field::text(check.what),
            Field::text(HumanCount(check.found).to_string()),
            Field::text(&check.expected),
        ]);
    }
    Ok(listing.print()?)
}

fn print_sum(checks: &[Check]) -> Result<()> {
    match checks.iter().filter(|check| !check.passed).count() {
        0 => output::line("Every check passed.")?,
        1 => output::line("One check FAILED.")?,
        failed => output::line(format_args!("{failed} checks FAILED."))?,
    }
    Ok(())
}

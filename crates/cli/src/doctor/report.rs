//! The report of an examination, as text and as JSON.

use anyhow::Result;
use milepost_cli_support::output::{self, printable};
use milepost_cli_support::table::{Column, Field, Listing, WIDE, terminal_columns};
use milepost_core::doctor::{Check, Cost, Example, Finding, Severity, Stores};
use serde::Serialize;

use super::examination::Examination;

/// An examination in the JSON output.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    answered: usize,
    left_out: usize,
    findings: Vec<FindingDocument<'a>>,
    unanswered: Vec<Failed<'a>>,
    repaired: Vec<Repaired>,
    unrepaired: Vec<Failed<'a>>,
}

#[derive(Serialize)]
struct FindingDocument<'a> {
    check: Check,
    severity: Severity,
    promise: u8,
    count: u64,
    examples: &'a [Example],
    means: &'static str,
    mend: &'static str,
    repair: Option<&'static str>,
}

#[derive(Serialize)]
struct Failed<'a> {
    check: Check,
    error: &'a str,
}

#[derive(Serialize)]
struct Repaired {
    check: Check,
    count: u64,
}

impl<'a> Document<'a> {
    pub(super) fn of(examination: &'a Examination) -> Self {
        let failed = |failures: &'a [(Check, String)]| {
            failures.iter().map(|(check, error)| Failed { check: *check, error }).collect()
        };
        Self {
            answered: examination.answered,
            left_out: examination.left_out,
            findings: examination.findings.iter().map(FindingDocument::of).collect(),
            unanswered: failed(&examination.unanswered),
            repaired: examination.repaired.iter().map(|&(check, count)| Repaired { check, count }).collect(),
            unrepaired: failed(&examination.unrepaired),
        }
    }
}

impl<'a> FindingDocument<'a> {
    fn of(finding: &'a Finding) -> Self {
        let check = finding.check;
        Self {
            check,
            severity: finding.severity,
            promise: check.promise(),
            count: finding.count,
            examples: &finding.examples,
            means: check.means(),
            mend: check.remedy(),
            repair: check.repair(),
        }
    }
}

pub(super) fn print(examination: &Examination) -> Result<()> {
    for (check, count) in &examination.repaired {
        output::line(format_args!("repaired {check}: {count}"))?;
    }
    for (check, error) in &examination.unrepaired {
        output::note(format_args!("could not repair {check}: {error}"));
    }
    for (severity, heading) in [(Severity::Error, "Errors"), (Severity::Warning, "Warnings")] {
        let mut findings = examination.findings.iter().filter(|f| f.severity == severity).peekable();
        if findings.peek().is_some() {
            output::line(format_args!("{heading}\n"))?;
        }
        for finding in findings {
            print_finding(finding, examination.dry_run)?;
        }
    }
    for (check, error) in &examination.unanswered {
        output::note(format_args!("{check} could not be completed: {error}"));
    }
    Ok(output::line(summary(examination))?)
}

fn print_finding(finding: &Finding, dry_run: bool) -> Result<()> {
    let Finding { check, count, examples, .. } = finding;
    output::line(format_args!("  {check}: {count} (promise {})", check.promise()))?;
    output::line(format_args!("    {}", check.means()))?;
    for Example { what, detail } in examples {
        output::line(format_args!("      {}  {}", printable(what), printable(detail)))?;
    }
    let more = count.saturating_sub(examples.len() as u64);
    if more > 0 {
        output::line(format_args!("      and {more} more"))?;
    }
    output::line(format_args!("    What to do: {}", check.remedy()))?;
    match check.repair() {
        Some(repair) if dry_run => output::line(format_args!("    --repair would do: {repair}"))?,
        Some(repair) => output::line(format_args!("    --repair: {repair}"))?,
        None if dry_run => output::line("    --repair would do nothing")?,
        None => {}
    }
    Ok(output::line("")?)
}

fn summary(examination: &Examination) -> String {
    let of = |severity| examination.findings.iter().filter(|f| f.severity == severity).count();
    let found = match (of(Severity::Error), of(Severity::Warning)) {
        (0, 0) => "nothing found".to_owned(),
        (errors, 0) => format!("errors: {errors}"),
        (0, warnings) => format!("no errors; warnings: {warnings}"),
        (errors, warnings) => format!("errors: {errors}, warnings: {warnings}"),
    };
    let left_out = match examination.left_out {
        0 => String::new(),
        left_out => format!(", skipped by --quick: {left_out}"),
    };
    let unanswered = match examination.unanswered.len() {
        0 => String::new(),
        unanswered => format!(", not completed: {unanswered}"),
    };
    format!("{found} (checks completed: {}{left_out}{unanswered})", examination.answered)
}

/// A check in the JSON output.
#[derive(Serialize)]
struct CheckDocument {
    check: Check,
    severity: Severity,
    stores: Stores,
    cost: Cost,
    promise: u8,
    means: &'static str,
    mend: &'static str,
    repair: Option<&'static str>,
}

/// Prints all checks, including those for other stores.
pub(super) fn list(json: bool) -> Result<()> {
    if json {
        let document = |&check: &Check| CheckDocument {
            check,
            severity: check.severity(),
            stores: check.stores(),
            cost: check.cost(),
            promise: check.promise(),
            means: check.means(),
            mend: check.remedy(),
            repair: check.repair(),
        };
        return output::json(&Check::ALL.iter().map(document).collect::<Vec<_>>());
    }
    let wide = terminal_columns().is_none_or(|columns| columns >= WIDE);
    let columns = [
        Some(Column::unbroken("CODE")),
        Some(Column::unbroken("SEVERITY")),
        Some(Column::unbroken("STORES")),
        Some(Column::unbroken("COST")),
        Some(Column::unbroken("REPAIR")),
        wide.then_some(Column::new("A FINDING MEANS")),
    ];
    let mut listing = Listing::new(columns.into_iter().flatten());
    for check in Check::ALL {
        let severity = check.severity().as_str();
        let error = check.severity() == Severity::Error;
        let fields = [
            Some(Field::text(check.as_str())),
            Some(if error { Field::warning(severity) } else { Field::text(severity) }),
            Some(Field::text(check.stores().as_str())),
            Some(Field::text(check.cost().as_str())),
            Some(Field::text(if check.repair().is_some() { "yes" } else { "no" })),
            wide.then(|| Field::text(check.means())),
        ];
        listing.fit(wide, fields);
    }
    Ok(listing.print_fit(wide, Check::ALL.iter().map(|check| check.means()))?)
}

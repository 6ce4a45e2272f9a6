//! `milepost doctor`: checks the store's invariants and repairs what can be repaired safely.

mod examination;
mod report;

use std::time::Duration;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers::{duration, positive_duration};
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_core::doctor::{Check, Cost, Severity};
use milepost_core::port::Store;

use self::examination::{Examination, Plan};

const EXAMPLES: &str = "\
Runs one query per promise (docs/GUARANTEES.md), each on one snapshot; jobs in
flight are never a finding. --quick skips checks that read all jobs and their
history.

--repair applies only safe repairs, in transactions that `milepost audit` shows
with user and host, then checks again and reports the remaining findings.
--dry-run shows what it would do.

Exit status: 0 no errors found (there may be warnings), 1 errors found, 2 wrong
usage, 3 no errors found, but some checks could not be completed.

Examples:
  milepost doctor
  milepost doctor --quick --json | jq -r '.findings[].check'
  milepost doctor --repair --dry-run
  milepost doctor --check token_differs --check two_ends --time-limit 10m
  milepost doctor list";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct DoctorArgs {
    #[command(subcommand)]
    command: Option<DoctorCommand>,
    /// Run only checks that are fast on a store of any size
    #[arg(long)]
    quick: bool,
    /// Apply safe repairs
    #[arg(long)]
    repair: bool,
    /// Show what --repair would do, without changes
    #[arg(long, requires = "repair")]
    dry_run: bool,
    /// Run only this check, by its code in `milepost doctor list`; can be given several times
    #[arg(long, value_name = "CODE", hide_possible_values = true, value_parser = check())]
    check: Vec<Check>,
    /// The delay from which something counts as overdue; ten times that for snapshots and transactions
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = positive_duration)]
    patience: Duration,
    /// The time limit of a check; 0s for no limit
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    time_limit: Duration,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl DoctorArgs {
    /// Returns whether the command only lists the checks.
    pub(crate) const fn only_lists(&self) -> bool {
        self.command.is_some()
    }
}

#[derive(Debug, Subcommand)]
enum DoctorCommand {
    /// List all checks
    #[command(after_help = "Examples:\n  milepost doctor list\n  milepost doctor list --json")]
    List {
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
}

/// Parses the code of a check.
fn check() -> impl TypedValueParser<Value = Check> {
    PossibleValuesParser::new(Check::ALL.iter().map(|check| check.as_str()))
        .try_map(|code| code.parse::<Check>())
}

pub(crate) async fn run(args: DoctorArgs, address: &StoreAddress) -> Result<Outcome> {
    if let Some(DoctorCommand::List { json }) = args.command {
        report::list(json)?;
        return Ok(Outcome::Done);
    }
    let opened = store::open(address, Schema::MustFit).await;
    let store = match opened.and_then(|store| args.reason.acting(store.as_ref())) {
        Ok(store) => store,
        Err(error) => {
            output::error(&error);
            return Ok(Outcome::Undecided);
        }
    };
    let plan = match Plan::of(&args, store.checks()) {
        Ok(plan) => plan,
        Err(error) => {
            output::error(&error);
            return Ok(Outcome::WrongUsage);
        }
    };
    let examination = if plan.repairs() {
        let examination = plan.repair(store.as_ref()).await?;
        // What it did not find was perhaps repaired by a commit that no standby has yet.
        store.confirm_seen().await?;
        examination
    } else {
        plan.examine(store.as_ref()).await
    };
    // The exit status is a result, also if the report is not read to its end.
    output::heard_or_not(if args.json {
        output::json(&report::Document::of(&examination))
    } else {
        report::print(&examination)
    })?;
    Ok(verdict(&examination))
}

/// Returns the errors of a store without running workers, and the checks that could not be answered. Overdue maintenance is not an error in
/// such a store.
pub(crate) async fn errors_at_rest(store: &dyn Store, costs: &[Cost]) -> Vec<String> {
    let checks = store.checks().into_iter();
    let checks = checks.filter(|check| check.severity() == Severity::Error && costs.contains(&check.cost()));
    let examination = Plan::at_rest(checks.collect()).examine(store).await;
    let found = examination.findings.iter().map(|finding| {
        let examples: Vec<&str> = finding.examples.iter().map(|example| example.what.as_str()).collect();
        format!("{}: {} ({})", finding.check, finding.count, examples.join(", "))
    });
    let open = examination
        .unanswered
        .iter()
        .map(|(check, error)| format!("{check} could not be completed: {error}"));
    found.chain(open).collect()
}

fn verdict(examination: &Examination) -> Outcome {
    let is_error = |severity| severity == Severity::Error;
    if examination.findings.iter().any(|finding| is_error(finding.severity)) {
        Outcome::SomeFailed
    } else if examination.unanswered.is_empty() {
        Outcome::Done
    } else {
        Outcome::Undecided
    }
}

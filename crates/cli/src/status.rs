//! `milepost status`: the current problems, each with the command that shows more.

use anyhow::Result;
use clap::Args;
use milepost_cli_support::output::{self, Outcome, printable};
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_server::{StatusEntry, Urgency};

const EXAMPLES: &str = "\
Shows what the overview page of the console shows: jobs without a worker, jobs
that fail, paused queues, batches and bulk runs that stand, events that are held
back, and what is in progress. milepost doctor looks for other things: damaged
rows, and settings of the database.

Examples:
  milepost status
  milepost status --json | jq -r '.[] | select(.urgency == \"error\").title'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: &StatusArgs, address: &StoreAddress) -> Result<Outcome> {
    let store = store::open(address, Schema::MustFit).await?;
    let entries = milepost_server::status(&store).await?;
    if args.json {
        output::json(&entries)?;
        return Ok(Outcome::Done);
    }
    for entry in &entries {
        print(entry)?;
    }
    if entries.iter().all(|entry| entry.urgency == Urgency::Running) {
        output::note("no problems");
    }
    Ok(Outcome::Done)
}

fn print(entry: &StatusEntry) -> Result<()> {
    let urgency = match entry.urgency {
        Urgency::Error => "error",
        Urgency::Warning => "warning",
        Urgency::Running => "running",
    };
    // Messages of jobs can have lines that look like entries.
    let indented = |text: &str| printable(text).replace('\n', "\n           ");
    output::line(format_args!("{urgency:<8} {}", indented(&entry.title)))?;
    output::line(format_args!("         {}", indented(&entry.words)))?;
    output::line(format_args!("         {}", indented(&entry.command)))?;
    Ok(())
}

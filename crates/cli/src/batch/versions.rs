//! `milepost batch versions`.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::port::BatchStore;

use super::{find, words};
use crate::time::relative;

const EXAMPLES: &str = "\
Examples:
  milepost batch versions settlement
  milepost batch versions settlement --json | jq -r '.[0].version'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VersionsArgs {
    /// The DAG's name
    dag: String,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &VersionsArgs, store: &dyn BatchStore) -> Result<Outcome> {
    find::dag(&args.dag, store).await?;
    let versions = store.dag_versions(&args.dag).await?;
    if args.json {
        output::json(&versions)?;
        return Ok(Outcome::Done);
    }
    let headings = ["NUMBER", "VERSION", "TASKS", "EDGES", "DEPTH", "STORED", "LATEST"];
    let mut listing = Listing::new(headings.map(Column::unbroken));
    let now = Timestamp::now();
    for version in &versions {
        listing.line([
            Field::text(version.number.to_string()),
            Field::text(words::short(version.version)),
            Field::text(words::count(version.tasks)),
            Field::text(words::count(version.edges)),
            Field::text(version.depth.to_string()),
            Field::text(relative(version.created_at, now)),
            Field::text(if version.latest { "yes" } else { "" }),
        ]);
    }
    listing.print()?;
    Ok(Outcome::Done)
}

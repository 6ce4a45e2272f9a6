//! `milepost retention`: retention periods that operators set.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use milepost_cli_support::operator::{ReasonArgs, help};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers;
use milepost_cli_support::store::{self, Schema};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::actions::Action as _;
use milepost_core::actions::retention::RetentionAction;
use milepost_core::port::Store;
use milepost_core::retention::{Keep, Retained, RetentionPeriod, RetentionPolicy};
use serde::Serialize;

use crate::selection::Selection;

#[derive(Debug, Subcommand)]
pub(crate) enum RetentionCommand {
    /// List retention periods, and who set them
    #[command(after_help = LIST_EXAMPLES)]
    List {
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    #[command(about = RetentionAction::Set.description().summary, after_help = help(RetentionAction::Set, SET_EXAMPLES))]
    Set(SetArgs),
    #[command(about = RetentionAction::Remove.description().summary, after_help = help(RetentionAction::Remove, REMOVE_EXAMPLES))]
    Remove(NameArgs),
}

impl RetentionCommand {
    /// Returns whether the command is read-only.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self, Self::List { .. })
    }
}

const LIST_EXAMPLES: &str = "\
A period that no operator has set is the one of the configuration in this
folder, or the default; workers with another configuration use theirs.

Examples:
  milepost retention list
  milepost retention list --json";

const SET_EXAMPLES: &str = "\
Examples:
  milepost retention set succeeded 1d --reason 'the disk is filling'
  milepost retention set failed forever";

const REMOVE_EXAMPLES: &str = "\
Examples:
  milepost retention remove succeeded";

#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// What is kept
    #[arg(value_parser = PossibleValuesParser::new(Retained::ALL.iter().map(|of| of.as_str())))]
    name: String,
    #[command(flatten)]
    reason: ReasonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    name: NameArgs,
    /// A duration such as 7d, or forever
    #[arg(value_parser = parsers::keep)]
    period: Keep,
}

impl NameArgs {
    fn retained(&self) -> Result<Retained> {
        Ok(self.name.parse()?)
    }
}

pub(crate) async fn run(command: RetentionCommand, selection: &Selection) -> Result<Outcome> {
    match command {
        RetentionCommand::List { json } => {
            let configured = selection.configured_retention()?;
            let store = store::open(&selection.store()?, Schema::MustFit).await?;
            list(store.as_ref(), &configured, json).await?;
        }
        RetentionCommand::Set(args) => {
            let period = RetentionPeriod { of: args.name.retained()?, keep: args.period };
            // Checked before the store is opened, because opening may create it.
            period.check()?;
            let store = store::open(&selection.store()?, Schema::MadeWhenEmpty).await?;
            args.name.reason.acting(store.as_ref())?.put_retention(period).await?;
            output::change(format_args!("{} are kept: {}", period.of.in_words(), period.keep))?;
        }
        RetentionCommand::Remove(args) => {
            let of = args.retained()?;
            let store = store::open(&selection.store()?, Schema::MustFit).await?;
            let removed = args.reason.acting(store.as_ref())?.remove_retention(of).await?;
            let was = if removed { "again" } else { "already" };
            output::change(format_args!("{} are kept as the configuration says, {was}", of.in_words()))?;
        }
    }
    Ok(Outcome::Done)
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    period: String,
    set_by: &'static str,
}

async fn list(store: &dyn Store, configured: &RetentionPolicy, json: bool) -> Result<()> {
    let stored = store.stored_retention().await?;
    let policy = configured.with(stored.iter().copied());
    let default = RetentionPolicy::default();
    let listed = |of: &Retained| Listed {
        name: of.as_str(),
        period: policy.of(*of).to_string(),
        set_by: if stored.iter().any(|its| its.of == *of) {
            "operator"
        } else if configured.of(*of) == default.of(*of) {
            "default"
        } else {
            "configuration"
        },
    };
    let rows: Vec<Listed> = Retained::ALL.iter().map(listed).collect();
    if json {
        return output::json(&rows);
    }
    let mut listing = Listing::new([
        Column::unbroken("NAME"),
        Column::unbroken("PERIOD"),
        Column::unbroken("SET BY"),
        Column::new("WHAT"),
    ]);
    for (row, of) in rows.into_iter().zip(Retained::ALL) {
        listing.row([
            Field::text(row.name),
            Field::text(row.period),
            Field::text(row.set_by),
            Field::text(of.in_words()),
        ]);
    }
    Ok(listing.print()?)
}

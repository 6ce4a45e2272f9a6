//! `milepost batch list`.

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::table::{Column, Field, Listing, WIDE, terminal_columns};
use milepost_core::batch::listing::{BatchFilter, BatchView, VersionView};
use milepost_core::dag::state::BatchState;
use milepost_core::port::BatchStore;

use super::{find, words};
use crate::time::relative;

const EXAMPLES: &str = "\
Examples:
  milepost batch list
  milepost batch list --state failed
  milepost batch list --dag settlement --json | jq -r '.[].id'
  milepost batch list --dags";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// Only batches of this DAG
    #[arg(long)]
    dag: Option<String>,
    /// Only batches in this state
    #[arg(long, value_parser = batch_state())]
    state: Option<BatchState>,
    /// Only the batch with this key
    #[arg(long)]
    key: Option<String>,
    /// Include batches that are tasks of other batches
    #[arg(long)]
    inner: bool,
    /// The maximum number of listed batches
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// List DAGs with their latest versions instead
    #[arg(long, conflicts_with_all = ["dag", "state", "key", "inner", "limit"])]
    dags: bool,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

fn batch_state() -> impl TypedValueParser<Value = BatchState> {
    PossibleValuesParser::new(BatchState::ALL.iter().map(|state| state.as_str()))
        .try_map(|name| name.parse::<BatchState>())
}

pub(super) async fn run(args: ListArgs, store: &dyn BatchStore) -> Result<Outcome> {
    if args.dags {
        list_dags(&store.dags().await?, args.json)?;
        return Ok(Outcome::Done);
    }
    if let Some(name) = &args.dag {
        find::dag(name, store).await?;
    }
    let limit = args.limit as usize;
    let filter = BatchFilter {
        dag: args.dag,
        state: args.state,
        key: args.key,
        inner: args.inner,
        before: None,
        limit: args.limit + 1,
    };
    let mut batches = store.batches(&filter).await?;
    let cut = batches.len() > limit;
    batches.truncate(limit);
    if args.json {
        output::json(&batches)?;
    } else if !batches.is_empty() {
        print(&batches)?;
    }
    if cut {
        output::note(format_args!("only the newest {limit} are listed; --limit lists more"));
    } else if batches.is_empty() && !args.json {
        output::note("no batches");
    }
    Ok(Outcome::Done)
}

/// Prints the batches. Empty columns are omitted. On a narrow terminal, the complete DAG name and key are printed below each batch, and
/// start times are omitted.
fn print(batches: &[BatchView]) -> Result<()> {
    let now = Timestamp::now();
    let keys = batches.iter().any(|row| row.key.is_some());
    let wide = terminal_columns().is_none_or(|columns| columns >= WIDE);
    let columns = [
        Some(Column::unbroken("ID")),
        wide.then_some(Column::new("DAG")),
        (wide && keys).then_some(Column::new("KEY")),
        Some(Column::unbroken("STATE")),
        Some(Column::unbroken("ENDED")),
        wide.then_some(Column::unbroken("STARTED")),
    ];
    let mut listing = Listing::new(columns.into_iter().flatten());
    for row in batches {
        let counts = &row.counts;
        let ended = format!("{}/{}", words::count(counts.ended()), words::count(counts.total()));
        let ended = match counts.failed {
            0 => Field::text(ended),
            failed => Field::warning(format!("{ended}, {} ✗", words::count(failed))),
        };
        let fields = [
            Some(Field::text(row.id.to_string())),
            wide.then(|| Field::text(name(row))),
            (wide && keys).then(|| Field::maybe(row.key.as_deref())),
            Some(Field::batch_state(row.state)),
            Some(ended),
            wide.then(|| Field::text(relative(row.created_at, now))),
        ];
        listing.line(fields.into_iter().flatten());
    }
    let names = batches.iter().map(|row| match &row.key {
        Some(key) => format!("{}, {key}", name(row)),
        None => name(row),
    });
    Ok(listing.print_fit(wide, names)?)
}

/// Returns the name of the DAG; for an inner batch, also the task.
fn name(row: &BatchView) -> String {
    match &row.parent {
        None => row.dag.clone(),
        Some(parent) => format!("{} ({})", row.dag, parent.key.as_deref().unwrap_or(words::GONE)),
    }
}

fn list_dags(dags: &[VersionView], json: bool) -> Result<()> {
    if json {
        return output::json(&dags);
    }
    if dags.is_empty() {
        output::note("no DAGs; `milepost batch define FILE` stores one");
        return Ok(());
    }
    let headings = ["DAG", "VERSIONS", "LATEST", "TASKS", "EDGES", "DEPTH", "STORED"];
    let mut listing = Listing::new(headings.map(Column::unbroken));
    let now = Timestamp::now();
    for dag in dags {
        listing.line([
            Field::text(&dag.dag),
            Field::text(dag.number.to_string()),
            Field::text(words::short(dag.version)),
            Field::text(words::count(dag.tasks)),
            Field::text(words::count(dag.edges)),
            Field::text(dag.depth.to_string()),
            Field::text(relative(dag.created_at, now)),
        ]);
    }
    Ok(listing.print()?)
}

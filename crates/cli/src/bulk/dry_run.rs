//! `milepost bulk dry-run`.

use anyhow::{Result, bail};
use clap::Args;
use milepost::bulk::{Order, Total, Trial};
use milepost::{JobId, Run, RunToken};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::Database;
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::bulk::chunk::FIRST_ROWS;
use milepost_core::bulk::dry_run::{Bill, CHUNKS_DEFAULT, CHUNKS_MAX, ROWS_MAX};

use super::assemble::{Effect, Site};
use super::parameters::ParametersArgs;
use super::sources::Scene;
use super::staged::FileArgs;
use super::words;
use crate::config::Doing;

const EXAMPLES: &str = "\
The chunks are executed and rolled back. While they run, they lock their rows,
and on SQLite they block other writers. Effects of triggers and functions
outside of the database are not rolled back. Needs the configuration.

Exit status: 0, or 1 if a target failed.

Examples:
  milepost bulk dry-run popular --param topic=4
  milepost bulk dry-run letter --from members.csv --param text='Dear all'
  milepost bulk dry-run by-place --payload '{\"place\": 4711, \"km\": 20}' --rows 5000";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DryRunArgs {
    /// The bulk job of the configuration
    name: String,
    #[command(flatten)]
    parameters: ParametersArgs,
    #[command(flatten)]
    file: FileArgs,
    /// The number of rows of a chunk
    #[arg(long, value_name = "N", default_value_t = FIRST_ROWS, value_parser = clap::value_parser!(u32).range(1..=i64::from(ROWS_MAX)))]
    rows: u32,
    /// The number of chunks
    #[arg(long, value_name = "N", default_value_t = CHUNKS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=i64::from(CHUNKS_MAX)))]
    chunks: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: DryRunArgs, scene: Scene, database: &Database) -> Result<Outcome> {
    let name = &args.name;
    let dialect = scene.address.dialect();
    if scene.entry(name).is_none() {
        if database.store().bulk_definition(name).await?.is_some() {
            bail!(
                "{name} is not a bulk job of the configuration, which must contain its SQL; give the file with --config"
            );
        }
        return scene.refuse(name, []);
    }
    let other = scene.other(name)?;
    let Some(entry) = scene.into_entry(name) else { bail!("{name} no longer exists") };
    let parameters = args.parameters.read()?;
    entry.check_parameters(&parameters, entry.dialect(dialect))?;
    let definition = entry.definition(name)?;
    let file = args.file.open(&definition)?;
    let (source, key) = entry.targets(entry.dialect(dialect))?;
    let effect = match entry.doing()? {
        Doing::Sql(sql) => Effect::Sql(sql),
        Doing::Enqueue(_) | Doing::Emit(_) if other.is_some() => {
            bail!("{name} has no dry run: it writes to the store, and its targets are on another database")
        }
        Doing::Enqueue(template) => Effect::Enqueue(*template),
        Doing::Emit(template) => Effect::Emit(template),
        Doing::Http(_) | Doing::Exec(_) => {
            bail!("{name} has no dry run: its effects are outside of the database and cannot be rolled back")
        }
    };
    let (other, source, key) = (other.as_ref(), source.as_str(), key.as_slice());
    let work = Site { database, other, definition: &definition, source, key }.work(effect)?;
    work.check().await?;
    let run = Run { job: JobId::new(), token: RunToken(0) };
    let order = Order { run, payload: serde_json::to_string(&parameters)?, nominal_at: None };
    let (staged, rows) = match &file {
        Some(file) => file
            .first(u64::from(args.rows) * u64::from(args.chunks))
            .map(|(first, all)| (first, Some(all)))?,
        None => (Vec::new(), None),
    };
    let trial = Trial { rows: args.rows, chunks: args.chunks, staged };
    let mut rehearsal = work.rehearse(&order, &trial).await?;
    // Only the first rows were staged.
    rehearsal.total = rows.map(|rows| Total { rows, exact: true }).or(rehearsal.total);
    let bill = Bill::of(&rehearsal, definition.load);
    if args.json {
        output::json(&bill)?;
    } else {
        print(&bill)?;
    }
    Ok(if rehearsal.failure.is_some() { Outcome::SomeFailed } else { Outcome::Done })
}

fn print(bill: &Bill) -> Result<()> {
    let mut listing =
        Listing::new([Column::unbroken("CHUNK"), Column::unbroken("ROWS"), Column::unbroken("MS")]);
    for (at, chunk) in bill.chunks.iter().enumerate() {
        let number = (at + 1).to_string();
        listing.row([number, words::count(chunk.rows), chunk.ms_in_words()].map(Field::text));
    }
    if !bill.chunks.is_empty() {
        listing.print()?;
        output::line("")?;
    }
    for (name, fact) in bill.facts() {
        output::line(format_args!("{name:<9} {}", output::printable(&fact)))?;
    }
    Ok(())
}

//! `milepost bulk dry-run`.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use milepost::bulk::{Definition, Order, Rehearsal, Total, Trial};
use milepost::{JobId, Run, RunToken};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::Database;
use milepost_cli_support::table::{Column, Field, Listing};
use serde::Serialize;

use super::assemble::{Effect, Site};
use super::parameters::ParametersArgs;
use super::sources::Scene;
use super::staged::FileArgs;
use super::words;
use crate::config::Doing;
use crate::time::length;

/// The default number of rows in a chunk, which is that of a run's first chunk.
const ROWS: u32 = 500;

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
    #[arg(long, value_name = "N", default_value_t = ROWS, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rows: u32,
    /// The number of chunks
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    chunks: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The cost of the measured chunks, and an estimate for the whole run.
#[derive(Serialize)]
struct Bill<'a> {
    targets: Option<Total>,
    chunks: Vec<ChunkCost>,
    rows_per_s: Option<f64>,
    /// The total execution time of all chunks, in seconds.
    busy_s: Option<f64>,
    /// The duration with the pauses that rate and duty require, in seconds. Windows and throttles are not included.
    takes_s: Option<f64>,
    failure: Option<&'a milepost::bulk::TargetFailure>,
}

#[derive(Serialize)]
struct ChunkCost {
    rows: u32,
    ms: f64,
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
    let bill = bill(&rehearsal, &definition);
    if args.json {
        output::json(&bill)?;
    } else {
        print(&bill, &definition)?;
    }
    Ok(if rehearsal.failure.is_some() { Outcome::SomeFailed } else { Outcome::Done })
}

fn bill<'a>(rehearsal: &'a Rehearsal, definition: &Definition) -> Bill<'a> {
    let (rows, took) = rehearsal
        .chunks
        .iter()
        .fold((0_u64, Duration::ZERO), |(rows, took), chunk| (rows + u64::from(chunk.0), took + chunk.1));
    let rows_per_s = (rows > 0 && !took.is_zero()).then(|| rows as f64 / took.as_secs_f64());
    let busy_s = rehearsal.total.zip(rows_per_s).map(|(total, rate)| total.rows as f64 / rate);
    let takes_s = busy_s.map(|busy| {
        let total = rehearsal.total.map_or(0.0, |total| total.rows as f64);
        let by_rate = definition.load.rows_per_s.map_or(0.0, |rate| total / rate);
        by_rate.max(busy / definition.load.duty)
    });
    let cost = |(rows, took): &(u32, Duration)| ChunkCost {
        rows: *rows,
        // Rounded to whole microseconds.
        ms: took.as_micros() as f64 / 1000.0,
    };
    Bill {
        targets: rehearsal.total,
        chunks: rehearsal.chunks.iter().map(cost).collect(),
        rows_per_s,
        busy_s,
        takes_s,
        failure: rehearsal.failure.as_ref(),
    }
}

fn print(bill: &Bill<'_>, definition: &Definition) -> Result<()> {
    let mut listing =
        Listing::new([Column::unbroken("CHUNK"), Column::unbroken("ROWS"), Column::unbroken("MS")]);
    for (at, chunk) in bill.chunks.iter().enumerate() {
        let number = (at + 1).to_string();
        let ms = if chunk.ms < 10.0 { format!("{:.1}", chunk.ms) } else { format!("{:.0}", chunk.ms) };
        listing.row([number, words::count(chunk.rows), ms].map(Field::text));
    }
    if !bill.chunks.is_empty() {
        listing.print()?;
        output::line("")?;
    }
    let seconds = |seconds: f64| length(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    let targets = bill.targets.map(|total| {
        let about = if total.exact { "" } else { "about " };
        format!("{about}{}", words::count(total.rows))
    });
    let load = definition.load;
    let limits = load.rows_per_s.is_some() || load.duty < 1.0;
    let facts = [
        ("targets", targets),
        ("speed", bill.rows_per_s.map(|rate| format!("{} with chunks of this size", words::rate(rate)))),
        ("work", bill.busy_s.map(|busy| format!("{} of the database's time", seconds(busy)))),
        (
            "takes",
            bill.takes_s
                .filter(|_| limits)
                .map(|takes| format!("{}, with the pauses of its rate and duty", seconds(takes))),
        ),
        (
            "failure",
            bill.failure
                .map(|failure| format!("target {}: {}: {}", failure.key, failure.code, failure.message)),
        ),
        ("kept", Some("nothing: everything was rolled back".to_owned())),
    ];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            output::line(format_args!("{name:<9} {}", output::printable(&fact)))?;
        }
    }
    Ok(())
}

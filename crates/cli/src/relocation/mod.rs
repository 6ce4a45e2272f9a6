//! `milepost move`: migrates a complete store from SQLite to PostgreSQL, and resumes after an interruption.

mod copy;
mod report;
mod route;
mod stores;
mod verify;

use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use milepost_cli_support::operator;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::StoreAddress;
use milepost_core::bulk::listing::BulkFilter;
use milepost_core::doctor::Cost;
use milepost_core::error::StoreError;
use milepost_core::port::BulkStore;
use milepost_core::relocation::{MoveError, MoveId, PAGE_ROWS_MAX};

use self::report::Report;
use self::route::Route;
use self::stores::Ends;
use crate::doctor;

const EXAMPLES: &str = "\
Stop all workers, relays and servers first. Enqueuing fails as soon as the move
begins. The database must be empty; its tables are created. Ids, keys, tokens,
attempts, times and history are not changed. To continue an interrupted move,
run the same command again.

At the end, both stores are compared and the new one is checked; only then can
it be used. The old store remains readable and accepts no changes.

Exit status: 0 moved, 1 a check or the move failed, 2 wrong usage.

Examples:
  milepost move --from sqlite:milepost.db --to postgres://app@db.internal/app
  milepost move --from sqlite:milepost.db --to postgres://app@db.internal/app --give-up";

/// What to move.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MoveArgs {
    /// The source: sqlite:PATH
    #[arg(long, value_name = "ADDRESS")]
    from: String,
    /// The target, an empty database: postgres://USER:PASSWORD@HOST/DATABASE
    // Debug output omits the value, because it may contain a password.
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// Abandon an incomplete move: empty the database again, and make the old store usable
    #[arg(long)]
    give_up: bool,
    /// The maximum number of rows per transaction
    #[arg(long, value_name = "COUNT", default_value_t = PAGE_ROWS_MAX,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(PAGE_ROWS_MAX)))]
    page_rows: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: MoveArgs) -> Result<Outcome> {
    let (from, to) = match addresses(&args) {
        Ok(addresses) => addresses,
        Err(error) => {
            output::error(&error);
            return Ok(Outcome::WrongUsage);
        }
    };
    let ends = Ends::open(from, to).await?;
    if args.give_up { give_up(&ends, args.json).await } else { relocate(&ends, &args).await }
}

/// Parses source and target, which must be of different types.
fn addresses(args: &MoveArgs) -> Result<(StoreAddress, StoreAddress)> {
    let parse = |text: &str| text.parse::<StoreAddress>().map_err(anyhow::Error::msg);
    let (from, to) = (parse(&args.from)?, parse(&args.to)?);
    if from == to {
        bail!("--from and --to are the same store, {from}");
    }
    match (&from, &to) {
        (StoreAddress::Sqlite(_), StoreAddress::Postgres(_)) => Ok((from, to)),
        (StoreAddress::Sqlite(_), _) => bail!("--to {to} is not PostgreSQL; give postgres://…"),
        _ => bail!("--from {from} is not a SQLite store; give sqlite:PATH"),
    }
}

async fn relocate(ends: &Ends, args: &MoveArgs) -> Result<Outcome> {
    let (departure, arrival) = ends.marks().await?;
    let route = route::of(departure.as_ref(), arrival.as_ref(), &ends.to.to_string())?;
    let (id, resumed) = match route {
        Route::Begin => (begin(ends).await?, false),
        Route::BeginToFill(id) => {
            ends.begin_to_fill(id).await?;
            (id, true)
        }
        Route::GoOn(id) => (id, true),
        Route::Close(id) => {
            ends.source.depart_for_good(id).await.with_context(|| ends.of_source())?;
            return report::moved_already(ends, id, args.json);
        }
    };
    let moved = finish(ends, id, resumed, args).await.with_context(|| stopped(id))?;
    report::print(&moved, args.json)?;
    Ok(if moved.complete { Outcome::Done } else { Outcome::SomeFailed })
}

fn stopped(id: MoveId) -> String {
    format!("move {id} stopped; run the same command to continue, or with --give-up to abandon it")
}

/// Marks both stores, unless running workers or doctor findings forbid the move.
async fn begin(ends: &Ends) -> Result<MoveId> {
    let workers = ends.source.living_workers().await.with_context(|| ends.of_source())?;
    if !workers.is_empty() {
        return Err(MoveError::WorkersLive { workers }).with_context(|| ends.of_source());
    }
    let errors = doctor::errors_at_rest(&ends.source, &[Cost::Quick, Cost::Full]).await;
    refuse_errors(&ends.from, &errors)?;
    refuse_errors(&ends.to, &doctor::errors_at_rest(&ends.target, &[Cost::Quick]).await)?;
    let id = MoveId::new();
    // Before the old store is closed: it would stay closed if this process were killed before the refusal is undone.
    ends.target.check_move(id, &ends.from.to_string()).await.with_context(|| ends.of_target())?;
    ends.source.depart(id, &ends.to.to_string()).await.with_context(|| ends.of_source())?;
    if let Err(error) = ends.begin_to_fill(id).await {
        // After any other error it is unknown whether the target is marked; running the same command again resumes the move.
        if let Some(StoreError::Move(_)) = error.downcast_ref() {
            ends.source.stay(id).await.with_context(|| ends.of_source())?;
            return Err(error);
        }
        return Err(error).with_context(|| stopped(id));
    }
    Ok(id)
}

fn refuse_errors(address: &StoreAddress, errors: &[String]) -> Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    bail!(
        "the store {address} violates invariants and is not moved; nothing was changed\n  {}\n  see `milepost --store {address} doctor`, repair it with --repair, then move",
        errors.join("\n  ")
    )
}

/// Copies the missing rows, compares the stores, and marks the move as complete if all checks pass.
async fn finish(ends: &Ends, id: MoveId, resumed: bool, args: &MoveArgs) -> Result<Report> {
    output::note(format_args!(
        "{} {} to {} (move {id})",
        if resumed { "continuing to move" } else { "moving" },
        ends.from,
        ends.to
    ));
    let began = Instant::now();
    let carried = copy::carry(ends, id, args.page_rows).await?;
    let seconds = began.elapsed().as_secs_f64();
    output::note("comparing both stores");
    ends.target.analyze().await.with_context(|| ends.of_target())?;
    let checks = verify::verify(ends).await?;
    let complete = checks.iter().all(|check| check.passed);
    if complete {
        let marks = ends.source.marks().await.with_context(|| ends.of_source())?;
        let who = operator::operator()?;
        ends.target.complete_move(id, &marks, &who).await.with_context(|| ends.of_target())?;
        ends.source.depart_for_good(id).await.with_context(|| ends.of_source())?;
        remind_of_bulks(ends).await?;
    }
    Ok(Report::of(ends, id, resumed, carried, seconds, checks, complete))
}

/// Prints a reminder about unfinished bulk jobs: they read tables that this command does not move.
async fn remind_of_bulks(ends: &Ends) -> Result<()> {
    let first = BulkFilter { limit: 1000, ..BulkFilter::default() };
    let runs = ends.source.bulks(&first).await.with_context(|| ends.of_source())?;
    let half_done = runs.iter().filter(|run| run.cursor.is_some() && !run.state.is_ended()).count();
    if half_done > 0 {
        output::note(format_args!(
            "unfinished bulk jobs: {half_done}. They continue behind their cursors: move the tables that they read before workers start"
        ));
    }
    Ok(())
}

async fn give_up(ends: &Ends, json: bool) -> Result<Outcome> {
    let (departure, arrival) = ends.marks().await?;
    let id = route::to_give_up(departure.as_ref(), arrival.as_ref(), &ends.to.to_string())?;
    ends.target.give_up_move(id).await.with_context(|| ends.of_target())?;
    ends.source.stay(id).await.with_context(|| ends.of_source())?;
    report::given_up(ends, id, json)?;
    Ok(Outcome::Done)
}

//! `milepost workers`: lists worker processes.

use anyhow::Result;
use clap::Subcommand;
use jiff::Timestamp;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::worker::WorkerView;

use crate::time::relative;

#[derive(Debug, Subcommand)]
pub(crate) enum WorkersCommand {
    /// List active workers, and those that stopped within the last day
    #[command(after_help = "A worker is one run of one process; a restarted process is another worker.\n\n\
        Examples:\n  milepost workers list\n  milepost workers list --json")]
    List {
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(command: WorkersCommand, address: &StoreAddress) -> Result<Outcome> {
    let store = store::open(address, Schema::MustFit).await?;
    match command {
        WorkersCommand::List { json } => list(&store.workers().await?, json)?,
    }
    Ok(Outcome::Done)
}

fn list(workers: &[WorkerView], json: bool) -> Result<()> {
    if json {
        return output::json(&workers);
    }
    if workers.is_empty() {
        output::note("no active workers, and none stopped within the last day");
        return Ok(());
    }
    let now = Timestamp::now();
    let mut listing = Listing::new([
        Column::unbroken("ID"),
        Column::new("NAME"),
        Column::unbroken("STATUS"),
        Column::unbroken("RUNNING"),
        Column::unbroken("HEARTBEAT"),
        Column::unbroken("STARTED"),
        Column::new("QUEUES"),
        Column::new("KINDS"),
    ]);
    for worker in workers {
        listing.row([
            Field::text(worker.id.to_string()),
            Field::text(&worker.name),
            status(worker, now),
            Field::text(worker.load()),
            Field::text(relative(worker.heartbeat_at, now)),
            Field::text(relative(worker.started_at, now)),
            Field::text(worker.queues.join(", ")),
            Field::text(worker.kinds.join(", ")),
        ]);
    }
    Ok(listing.print()?)
}

fn status(worker: &WorkerView, now: Timestamp) -> Field {
    match worker.ended_at {
        None if worker.lease_expired => Field::warning("no heartbeat"),
        None => Field::text("active"),
        Some(at) if worker.died => Field::warning(format!("died {}", relative(at, now))),
        Some(at) => Field::text(format!("left {}", relative(at, now))),
    }
}

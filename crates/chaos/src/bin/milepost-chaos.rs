//! `milepost-chaos`: experiments with faults, and verdicts about the promises.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use milepost_chaos::checker::{check, lost_calls};
use milepost_chaos::experiment::{self, ExperimentArgs};
use milepost_chaos::load::{ProcessArgs, client, reader, setup, worker};
use milepost_chaos::record::Record;
use milepost_chaos::replay::replay_jobs;
use tokio::signal::unix::{SignalKind, signal};

/// Finds out whether the promises of Milepost hold
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put load on a store, inject faults, and decide whether each promise was kept
    Run(ExperimentArgs),
    /// Decide from a record whether each promise was kept, and whether the model allows the history of each job
    Check {
        /// The record that `run --record` has written
        file: PathBuf,
    },
    #[command(hide = true)]
    Prepare(ProcessArgs),
    #[command(hide = true)]
    Worker(ProcessArgs),
    #[command(hide = true)]
    Client(ProcessArgs),
    #[command(hide = true)]
    Reader(ProcessArgs),
}

fn main() -> Result<()> {
    let Arguments { command } = Arguments::parse();
    if matches!(command, Command::Run(_)) {
        experiment::keep_mounts_private();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run(command))
}

/// Waits until the program is asked to stop.
async fn stopped() -> Result<&'static str> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => Ok("SIGTERM"),
        _ = interrupt.recv() => Ok("SIGINT"),
    }
}

async fn run(command: Command) -> Result<()> {
    match command {
        Command::Run(args) => {
            // Dropped when it is stopped, so that no server is left behind.
            let summary = tokio::select! {
                summary = experiment::run(&args) => summary.inspect_err(|error| println!("FAILED: {error:#}"))?,
                signal = stopped() => bail!("it was stopped by {}", signal?),
            };
            println!("{summary}");
            if !summary.failures().is_empty() {
                bail!("the experiment failed");
            }
        }
        Command::Check { file } => {
            let open = File::open(&file).with_context(|| format!("cannot open {}", file.display()))?;
            let record = Record::read(BufReader::new(open))?;
            let verdicts = check(&record);
            for verdict in &verdicts {
                println!("{verdict}");
            }
            if record.losses().next().is_some() {
                println!(
                    "{} acknowledged calls were lost with the last commits of a server",
                    lost_calls(&record)
                );
            }
            let replay = replay_jobs(&record);
            println!("{replay}");
            if !replay.refused.is_empty() {
                bail!("a job has a history that the model does not allow");
            }
            if verdicts.iter().any(|verdict| verdict.violated > 0) {
                bail!("a promise is broken");
            }
        }
        Command::Prepare(args) => setup::run(args).await?,
        Command::Worker(args) => worker::run(args).await?,
        Command::Client(args) => client::run(args).await?,
        Command::Reader(args) => reader::run(args).await?,
    }
    Ok(())
}

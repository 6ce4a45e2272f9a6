//! The `milepost` command: the one place where stores and tools are put together.

mod args;
mod bench;
mod demo;
mod enqueue;
mod jobs;
mod migrate;
mod output;
mod queues;
mod store;
mod table;
mod time;
mod workers;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tracing_subscriber::EnvFilter;

use crate::args::{Cli, Command};
use crate::output::Outcome;
use crate::store::StoreAddress;

fn main() -> ExitCode {
    let cli = Cli::parse();
    start_logging();
    let address = match cli.store.map(|store| store.parse::<StoreAddress>()).transpose() {
        Ok(address) => address,
        Err(why) => Cli::command().error(clap::error::ErrorKind::InvalidValue, why).exit(),
    };
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(cli.command, address)));
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::SomeFailed) => ExitCode::FAILURE,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command, named: Option<StoreAddress>) -> anyhow::Result<Outcome> {
    let address = &named.clone().unwrap_or_default();
    match command {
        Command::Demo(args) => demo::run(&args, named.as_ref()).await,
        Command::DemoWorker(args) => demo::work(args, address).await,
        Command::Migrate => migrate::run(address).await,
        Command::Enqueue(args) => enqueue::run(*args, address).await,
        Command::Jobs(command) => jobs::run(command, address).await,
        Command::Queues(command) => queues::run(command, address).await,
        Command::Workers(command) => workers::run(command, address).await,
        Command::Bench(command) => bench::run(command, address).await,
    }
}

fn start_logging() {
    let filter =
        EnvFilter::try_from_env("MILEPOST_LOG").unwrap_or_else(|_| EnvFilter::new("warn,sqlx=error"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::colours_on(&std::io::stderr()))
        .init();
}

/// Whether the reader of our output has gone, as `head` does: no failure of ours.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

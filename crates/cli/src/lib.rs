//! The `milepost` command: the one place where stores and tools are put together. The program calls [`main`], and nothing else is
//! public: what other programs use is the crate `milepost`.

mod args;
mod audit;
mod batch;
mod bench;
mod bulk;
mod config;
mod demo;
mod doctor;
mod enqueue;
mod events;
mod inbox;
mod jobs;
mod limits;
mod log;
mod migrate;
mod moving;
mod nearest;
mod operator;
mod output;
mod prune;
mod queues;
mod records;
mod redis;
mod relay;
mod schedules;
mod serve;
mod signals;
#[cfg(test)]
mod started;
mod store;
mod table;
mod time;
mod tokens;
mod traces;
mod work;
mod workers;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command};
use crate::config::Faulty;
use crate::log::LogFormat;
use crate::output::Outcome;
use crate::store::StoreAddress;
use crate::traces::Traces;

/// The exit status of an examination that could not be made.
const UNDECIDED: u8 = 3;
/// The exit status of wrong usage, a faulty configuration among it.
const USAGE: u8 = 2;

/// Does what the arguments of the process say; answers the exit status.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    log::start(&cli.command);
    let address = match cli.store.map(|store| store.parse::<StoreAddress>()).transpose() {
        Ok(address) => address,
        Err(why) => return wrong_usage(why),
    };
    let only_looks = cli.command.only_looks();
    let traces = match Traces::start(&cli.command) {
        Ok(traces) => traces,
        Err(error) => {
            output::error(&error);
            return ExitCode::from(USAGE);
        }
    };
    let _caller = traces::of_caller();
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(cli.command, address)));
    traces.end();
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::SomeFailed) => ExitCode::FAILURE,
        Ok(Outcome::Undecided) => ExitCode::from(UNDECIDED),
        Ok(Outcome::WrongUsage) => ExitCode::from(USAGE),
        Ok(Outcome::Interrupted(signal)) => ExitCode::from(128 + signal),
        // Who has seen enough of a listing may leave.
        Err(error) if only_looks && output::is_unheard(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            if error.is::<Faulty>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}

fn wrong_usage(why: String) -> ExitCode {
    let error = Cli::command().error(clap::error::ErrorKind::InvalidValue, why);
    match log::format() {
        LogFormat::Text => error.exit(),
        LogFormat::Json => output::fault(error),
    }
    ExitCode::from(USAGE)
}

async fn run(command: Command, named: Option<StoreAddress>) -> anyhow::Result<Outcome> {
    let address = &named.clone().unwrap_or_default();
    match command {
        Command::Demo(args) => demo::run(&args, named.as_ref()).await,
        Command::DemoWorker(args) => demo::work(args, address).await,
        Command::Doctor(args) => doctor::run(*args, address).await,
        Command::Migrate => migrate::run(address).await,
        Command::Move(args) => moving::run(*args).await,
        Command::Enqueue(args) => enqueue::run(*args, address).await,
        Command::Jobs(command) => jobs::run(command, address).await,
        Command::Bulk(args) => bulk::run(*args, named).await,
        Command::Batch(command) => batch::run(*command, address).await,
        Command::Events(command) => events::run(*command, address).await,
        Command::Inbox(command) => inbox::run(command, address).await,
        Command::Queues(command) => queues::run(command, address).await,
        Command::Schedules(command) => schedules::run(command, address).await,
        Command::Limits(command) => limits::run(command, address).await,
        Command::Workers(command) => workers::run(command, address).await,
        Command::Tokens(command) => tokens::run(command, address).await,
        Command::Work(args) => work::run(*args, named).await,
        Command::Relay(args) => relay::run(*args, named).await,
        Command::Serve(args) => serve::run(*args, named).await,
        Command::Config(command) => config::command::run(command, named.as_ref()),
        Command::Audit(args) => audit::run(&args, address).await,
        Command::Prune(args) => prune::run(&args, address).await,
        Command::Bench(command) => bench::run(command, address).await,
    }
}

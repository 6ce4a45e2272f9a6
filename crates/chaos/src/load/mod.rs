//! The processes that put load on a store: workers, which also publish events, clients, and readers. Each runs until its standard input is closed.

mod batches;
mod bulk;
pub mod client;
pub mod reader;
pub mod setup;
mod witnessed_bulk;
pub mod worker;

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use milepost_postgres::{PostgresOptions, WakeMode};
use tokio_util::sync::CancellationToken;

/// How long a process waits for an answer of PostgreSQL. A silent network must not take longer than the experiment waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The arguments of every process.
#[derive(Clone, Debug, Args)]
pub struct ProcessArgs {
    /// The address of the store
    #[arg(long)]
    pub store: String,
    /// The folder of the witness
    #[arg(long)]
    pub folder: PathBuf,
    /// The name of the process, which no other one has had
    #[arg(long)]
    pub name: String,
    /// The seed of its choices
    #[arg(long)]
    pub seed: u64,
}

/// Returns the options of a store on PostgreSQL: the time limit for an answer is shorter than the default.
fn patience(wake: WakeMode) -> PostgresOptions {
    PostgresOptions { wake, answer_timeout: ANSWER_TIMEOUT, ..PostgresOptions::default() }
}

/// Returns a token that is canceled when standard input is closed: by the parent, or because it has ended.
fn until_parent_ends() -> CancellationToken {
    let stop = CancellationToken::new();
    let closed = stop.clone();
    std::thread::spawn(move || {
        let mut byte = [0];
        while std::io::stdin().read(&mut byte).is_ok_and(|bytes| bytes > 0) {}
        closed.cancel();
    });
    stop
}

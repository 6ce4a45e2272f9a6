//! The processes that put load on a store: workers, which also publish events, clients, and readers. Each runs until its standard input is closed.

mod batches;
mod bulk;
pub mod client;
pub mod reader;
pub mod setup;
mod witnessed_bulk;
pub mod worker;

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use milepost_postgres::{PostgresOptions, WakeMode};
use milepost_testkit::home::{self, Home};
use tokio_util::sync::CancellationToken;

use crate::witness::Witness;
use setup::LEASE;

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
    /// The name of the store in the record, if there are two
    #[arg(long)]
    pub store_name: Option<String>,
    /// A Redis that helps workers
    #[arg(long)]
    pub redis: Option<String>,
    /// A broker to which workers publish events, too
    #[arg(long)]
    pub broker: Option<String>,
    /// When the machine was started, in nanoseconds since 1970, if the clock that the process sees is wrong
    #[arg(long)]
    pub boot_ns: Option<u64>,
}

impl ProcessArgs {
    /// Creates the witness of the process.
    fn witness(&self) -> io::Result<Witness> {
        let witness = Witness::create(&self.folder, &self.name)?.of_store(self.store_name.clone());
        Ok(match self.boot_ns {
            Some(boot_ns) => witness.with_time_since(Duration::from_nanos(boot_ns)),
            None => witness,
        })
    }
}

/// How fast everything happens.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The lease of workers and publishers.
    pub lease: Duration,
    /// The interval in which workers and publishers look for work without a notification.
    pub poll_interval: Duration,
    /// The longest pause of a caller between two calls, in milliseconds.
    pub call_pause_ms_max: u64,
    /// The longest duration of a handler, in milliseconds.
    pub handler_ms_max: u64,
    /// The longest duration of some repeated attempts, in milliseconds: a worker that continues after it had lost its runs must find the next
    /// runs of these jobs at work.
    pub repeated_ms_max: u64,
    /// The time limit of an attempt: a handler that uses its own connection waits for ever if that becomes silent.
    pub attempt_max: Duration,
    /// The pause of a bulk job after each chunk, so that faults and operators find runs in their middle.
    pub chunk_pause: Duration,
    /// The interval of the schedule.
    pub tick_every: Duration,
    /// The pause between two pages of the stream.
    pub stream_pause: Duration,
}

impl Pace {
    /// The pace of real processes, for which a minute must be enough.
    pub const REAL: Self = Self {
        lease: LEASE,
        poll_interval: Duration::from_millis(200),
        call_pause_ms_max: 60,
        handler_ms_max: 40,
        repeated_ms_max: 2_000,
        attempt_max: Duration::from_secs(10),
        chunk_pause: Duration::from_millis(20),
        tick_every: Duration::from_secs(1),
        stream_pause: Duration::from_millis(50),
    };
}

/// The pause before a process that a fault hit at its begin tries again, as a supervisor would let it.
const BEGIN_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// The time after which a process gives up to open the store.
const OPEN_MAX: Duration = Duration::from_secs(60);

/// Opens the store, as soon as its server answers. The time limit for an answer is shorter than the default.
async fn open(address: &str, wake: WakeMode) -> Arc<dyn Home> {
    let options = PostgresOptions { wake, answer_timeout: ANSWER_TIMEOUT, ..PostgresOptions::default() };
    let began = Instant::now();
    loop {
        match home::try_open(address, options.clone()).await {
            Ok(home) => return home,
            Err(error) => {
                assert!(began.elapsed() < OPEN_MAX, "the store cannot be opened: {}", error.chain())
            }
        }
        tokio::time::sleep(BEGIN_AGAIN_AFTER).await;
    }
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

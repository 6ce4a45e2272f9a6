//! The processes that put load on a store: workers, which also publish events, and clients. Each runs until its standard input is closed.

pub mod client;
pub mod worker;

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

/// The lease of workers and publishers.
pub const LEASE: Duration = Duration::from_secs(2);
/// The queue of all jobs.
pub const QUEUE: &str = "chaos";
/// Jobs whose handlers commit an effect with their success.
pub const EFFECT: &str = "chaos.effect";
/// Jobs that succeed.
pub const PLAIN: &str = "chaos.plain";
/// Jobs that fail often.
pub const FLAKY: &str = "chaos.flaky";
/// Jobs with a limited rate.
pub const RATED: &str = "chaos.rated";
/// The rate of [`RATED`]: starts per second, and at once.
pub const RATE: (f64, u32) = (50.0, 10);
/// The groups, with the number of their slots.
pub const GROUPS: [(&str, u32); 3] = [("one", 1), ("two", 2), ("three", 3)];
/// The subscription that all workers publish.
pub const SUBSCRIPTION: &str = "chaos";

/// What every process is told.
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

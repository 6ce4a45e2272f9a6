//! Worker process for tests, which can kill, pause and stop it.
//!
//! Prints its counters on standard output, one line of JSON for each change. Shuts down gracefully on SIGTERM, and exits immediately when its standard
//! input closes, because then its supervisor has ended.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use milepost::{Context, JobError, Outcome, RetryPolicy, Worker, WorkerBuilder, WorkerOptions};
use milepost_core::error::StoreError;
use milepost_postgres::{PostgresOptions, WakeMode};
use milepost_redis::{Redis, RedisOptions};
use milepost_testkit::home::{self, Home};
use milepost_testkit::process::{REDIS, SHOP, STORE, Words};
use milepost_testkit::{notes, wait};
use nix::sys::resource::{Resource, setrlimit};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// How often the counters are checked for changes.
const SAY_EVERY: Duration = Duration::from_millis(10);
/// Time limit of a Redis call: long, so that a machine that is busy with tests does not make Redis appear unavailable.
const REDIS_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than any test runs.
const TEST_MAX: Duration = Duration::from_secs(3600);

/// Payload of jobs of kind `test.sleep`, `test.effect` and `test.plain`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Task {
    /// Duration of the job, in milliseconds.
    ms: u64,
    /// The first attempt hangs forever.
    hang_first: bool,
    /// The first attempt ends only after an effect was recorded at this place.
    first_waits_for: Option<String>,
    /// Later attempts end only after an effect was recorded at this place.
    wait_for: Option<String>,
    /// The handler stops when a stop is requested.
    heed: bool,
    /// The place that is recorded with the effect.
    place: String,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off")))
        .with_writer(std::io::stderr)
        .init();
    std::thread::spawn(leave_with_supervisor);
    let address = std::env::var(STORE).unwrap_or_else(|_| panic!("{STORE} is not set"));
    let wake = if option("--polls-only").is_some() { WakeMode::Poll } else { WakeMode::Listen };
    let home = home::open(&address, PostgresOptions { wake, ..PostgresOptions::default() }).await;
    let fenced = Arc::new(AtomicU64::new(0));
    let mut builder = Worker::builder(home.store()).options(configure);
    if let Some(rows_max) = option("--bulk-rows") {
        let rows_max = u32::try_from(rows_max).expect("the number is too large");
        builder = builder.bulk(match std::env::var(SHOP) {
            Ok(url) => notes::notify_at(&notes::shop(&url), home.store(), rows_max),
            Err(_) => notes::notify(home.as_ref(), rows_max),
        });
        builder = builder.bulk(notes::letter(home.as_ref(), rows_max));
    }
    if let Ok(url) = std::env::var(REDIS) {
        let options = RedisOptions { timeout: REDIS_TIMEOUT, ..RedisOptions::default() };
        let redis = Redis::start(&url, options).expect("invalid Redis URL");
        builder = builder.coordination(Arc::new(redis));
    }
    let worker = kinds(builder, &home, &fenced).start().await.expect("the worker cannot register");

    let mut terminate = signal(SignalKind::terminate()).expect("cannot install a signal handler");
    tokio::select! {
        () = speak(&worker, &fenced) => {}
        _ = terminate.recv() => worker.shutdown().await,
    }
}

/// Returns the command line options.
fn options() -> impl Iterator<Item = (String, u64)> {
    let mut arguments = std::env::args().skip(1);
    std::iter::from_fn(move || {
        let name = arguments.next()?;
        let value = arguments.next().unwrap_or_else(|| panic!("{name} needs a value"));
        let value = value.parse().unwrap_or_else(|_| panic!("{name} {value}: not a number"));
        Some((name, value))
    })
}

fn option(name: &str) -> Option<u64> {
    options().find(|(its, _)| its == name).map(|(_, value)| value)
}

fn configure(options: &mut WorkerOptions) {
    options.hand_back_grace = Duration::from_millis(300);
    for (name, value) in self::options() {
        match name.as_str() {
            "--concurrency" => options.concurrency = usize::try_from(value).expect("the number is too large"),
            "--lease-ms" => options.lease = Duration::from_millis(value),
            "--drain-ms" => options.drain = Duration::from_millis(value),
            "--poll-ms" => options.poll_interval = Duration::from_millis(value),
            "--bulk-rows" | "--polls-only" => {}
            "--file-bytes-max" => {
                setrlimit(Resource::RLIMIT_FSIZE, value, value).expect("cannot lower the limit");
            }
            _ => panic!("unknown option {name}"),
        }
    }
}

fn kinds(builder: WorkerBuilder, home: &Arc<dyn Home>, fenced: &Arc<AtomicU64>) -> WorkerBuilder {
    let soon = RetryPolicy::fixed(Duration::from_millis(20));
    let (of_sleep, of_effect, of_plain) = (home.clone(), home.clone(), home.clone());
    let fenced = fenced.clone();
    builder
        .handle_kind("test.sleep", soon, move |context| {
            let home = of_sleep.clone();
            async move { take_time(&context, &task(&context)?, home.as_ref()).await }
        })
        .handle_kind("test.effect", soon, move |context| {
            let (home, fenced) = (of_effect.clone(), fenced.clone());
            async move { have_effect_with_success(&context, home.as_ref(), &fenced).await }
        })
        .handle_kind("test.plain", soon, move |context| {
            let home = of_plain.clone();
            async move {
                let task = task::<Task>(&context)?;
                home.record(context.run(), &task.place).await?;
                take_time(&context, &task, home.as_ref()).await
            }
        })
        .handle_kind("test.panic", soon, |_| async { panic!("the handler panics on purpose") })
}

fn task<T: DeserializeOwned>(context: &Context) -> Result<T, JobError> {
    serde_json::from_str(&context.job().payload).map_err(|e| JobError::fatal("payload", e.to_string()))
}

async fn take_time(context: &Context, task: &Task, home: &dyn Home) -> Result<Outcome, JobError> {
    let time = async {
        if task.hang_first && context.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        let waits_for = if context.attempt() > 1 { &task.wait_for } else { &task.first_waits_for };
        if let Some(place) = waits_for {
            wait::until_within(TEST_MAX, "the test records the effect", || async {
                home.effects().await.iter().any(|effect| effect.place == *place)
            })
            .await;
        }
        tokio::time::sleep(Duration::from_millis(task.ms)).await;
    };
    tokio::select! {
        () = time => Ok(Outcome::Done),
        () = context.cancellation().cancelled(), if task.heed => Ok(Outcome::Stopped),
    }
}

/// Records the effect and completes the run in one commit.
async fn have_effect_with_success(
    context: &Context,
    home: &dyn Home,
    fenced: &AtomicU64,
) -> Result<Outcome, JobError> {
    let task = task::<Task>(context)?;
    take_time(context, &task, home).await?;
    let completed = home.record_with_success(context.run(), &task.place).await;
    if matches!(completed, Err(StoreError::Fenced(_))) {
        fenced.fetch_add(1, Ordering::Relaxed);
    }
    completed?;
    Ok(Outcome::Completed)
}

/// Prints the counters whenever they have changed.
async fn speak(worker: &Worker, fenced: &AtomicU64) {
    let mut said = None;
    loop {
        let words = Words { stats: worker.stats(), handlers_fenced: fenced.load(Ordering::Relaxed) };
        if said != Some(words) {
            let line = serde_json::to_string(&words).expect("JSON");
            writeln!(std::io::stdout(), "{line}").expect("cannot write to standard output");
            said = Some(words);
        }
        tokio::time::sleep(SAY_EVERY).await;
    }
}

/// Runs on a separate thread: a read that blocks forever would delay the shutdown of the runtime.
fn leave_with_supervisor() {
    let mut byte = [0];
    while std::io::stdin().read(&mut byte).is_ok_and(|bytes| bytes > 0) {}
    std::process::exit(1);
}

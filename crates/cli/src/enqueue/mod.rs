//! `milepost enqueue`: enqueues one job, or a job for every record of a file.

mod bulk;
mod duplicates;
mod template;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers;
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_core::job::duplicate::EnqueueOutcome;
use milepost_core::job::{MAX_ATTEMPTS_DEFAULT, PAYLOAD_BYTES_MAX, Priority, QUEUE_DEFAULT, StartAt};

use self::duplicates::DuplicateArgs;
use self::template::JobTemplate;
use crate::records::Format;
use crate::redis::RedisArgs;

const HELP: &str = "\
One job:
  Prints the job's id and whether it was enqueued or a duplicate. If a job of
  the same kind and the same --key exists already, that job is returned and
  nothing is changed, unless --on-duplicate decides otherwise.

A file (--from):
  .csv     The header row names the members of a JSON object, and each further
           row is a job. All values are strings; with --infer, numbers and
           true/false become JSON numbers and booleans (007 stays a string).
  .jsonl   Each line is a JSON value and a job. The same applies to .ndjson.
  -        Standard input, as JSON Lines unless --format csv is given. It is
           buffered in a temporary file.

  The whole file is checked first. If a line is bad (not JSON, a wrong number
  of fields, no key, a payload over 1 MiB, ...), its file, line and column are
  reported and nothing is enqueued. With --skip-bad, bad lines are written to
  a new file and the others are enqueued.

  With --key-column, running the same command again enqueues nothing twice. Use
  it for important files: after an interruption, run the same command again.

Examples:
  milepost enqueue mail --payload '{\"to\": \"ada@example.org\"}'
  milepost enqueue report --payload '{\"month\": 5}' --key report-2026-05
  milepost enqueue index --key doc-17 --on-duplicate replace
  milepost enqueue index --key doc-17 --on-duplicate debounce --delay 5s --max-delay 1m
  milepost enqueue digest --key user-9 --on-duplicate throttle --period 1h
  milepost enqueue report --at 'in 10m' --queue slow --priority 4
  milepost enqueue invoice --from orders.csv --key-column order_id
  milepost enqueue invoice --from orders.jsonl --skip-bad bad.jsonl
  zcat orders.csv.gz | milepost enqueue invoice --from - --format csv --infer";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct EnqueueArgs {
    /// Which handler runs the jobs
    kind: String,

    /// The payload of one job, as JSON; null if it is not given
    #[arg(long, value_name = "JSON", conflicts_with = "from", allow_hyphen_values = true)]
    payload: Option<String>,
    /// A key that at most one job of the kind has
    #[arg(long, conflicts_with = "from")]
    key: Option<String>,

    #[command(flatten)]
    duplicates: DuplicateArgs,

    /// A file with one job per line; - is standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// The format of the file, if its name does not show it
    #[arg(long, requires = "from")]
    format: Option<Format>,
    /// Convert CSV values that look like JSON numbers, true or false
    #[arg(long, requires = "from")]
    infer: bool,
    /// Take each job's key from this CSV column or top-level JSON member
    #[arg(long, value_name = "COLUMN", requires = "from")]
    key_column: Option<String>,
    /// Write bad lines to this new file, and enqueue the others
    #[arg(long, value_name = "BADFILE", requires = "from")]
    skip_bad: Option<PathBuf>,

    /// The queue of the jobs
    #[arg(long, default_value = QUEUE_DEFAULT)]
    queue: String,
    /// The priority within the queue, from 1 (first) to 4 (last)
    #[arg(long, default_value = "2", value_parser = parsers::priority)]
    priority: Priority,
    /// The earliest start: a time such as 2026-05-01T09:00:00Z, or a delay such as 'in 10m'
    #[arg(long, value_name = "TIME", value_parser = parsers::start_at)]
    at: Option<StartAt>,
    /// The maximum number of attempts of each job; a crash of its worker uses one
    #[arg(long, value_name = "N", default_value_t = MAX_ATTEMPTS_DEFAULT)]
    max_attempts: u32,
    /// The group of the jobs; jobs of a group run one at a time, unless a limit allows more
    #[arg(long)]
    group: Option<String>,
    /// The time limit of one attempt
    #[arg(long, value_name = "DURATION", value_parser = parsers::positive_duration)]
    timeout: Option<Duration>,

    #[command(flatten)]
    reason: ReasonArgs,
    #[command(flatten)]
    redis: RedisArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: EnqueueArgs, address: &StoreAddress) -> Result<Outcome> {
    let template = JobTemplate {
        kind: args.kind.clone(),
        queue: args.queue.clone(),
        priority: args.priority,
        start: args.at.unwrap_or_default(),
        max_attempts: args.max_attempts,
        group: args.group.clone(),
        timeout: args.timeout,
        on_duplicate: args.duplicates.rule(),
    };
    // The settings that all jobs share are checked once, so that an error in them is not reported as a fault of the first line.
    let any_key = args.duplicates.rule().map(|_| "any".to_owned());
    template.job("null".to_owned(), any_key)?.check(PAYLOAD_BYTES_MAX)?;
    match &args.from {
        Some(from) => bulk::run(&args, from, template, address).await,
        None => one(args, &template, address).await,
    }
}

async fn one(args: EnqueueArgs, template: &JobTemplate, address: &StoreAddress) -> Result<Outcome> {
    let payload = args.payload.unwrap_or_else(|| "null".to_owned());
    let job = template.job(payload, args.key)?;
    job.check(PAYLOAD_BYTES_MAX)?;
    let teller = args.redis.teller();
    let store = store::open(address, Schema::MadeWhenEmpty).await?;
    let store = args.reason.acting(store.as_ref())?;
    let answer = store.enqueue(&job).await?;
    if answer.changed() {
        teller.ready().await;
    }
    if args.json {
        output::heard_or_not(output::json(&answer))?;
    } else {
        output::change(format_args!("{}  {}", answer.job, words(answer.outcome)))?;
    }
    Ok(Outcome::Done)
}

/// Describes the result for a user.
const fn words(outcome: EnqueueOutcome) -> &'static str {
    match outcome {
        EnqueueOutcome::Created => "enqueued",
        EnqueueOutcome::Kept => "duplicate: this key existed before; nothing was changed",
        EnqueueOutcome::Replaced => {
            "replaced: the job with this key has not started, and has the new payload and options"
        }
        EnqueueOutcome::Moved => {
            "moved: the job with this key has the new payload and options, and starts later"
        }
        EnqueueOutcome::Dropped => {
            "dropped: a job with this key was created within the period; nothing was changed"
        }
    }
}

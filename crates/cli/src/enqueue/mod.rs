//! `milepost enqueue`: enqueues one job, or a job for every record of a file.

mod bulk;
mod template;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use milepost_core::job::{MAX_ATTEMPTS_DEFAULT, PAYLOAD_BYTES_MAX, Priority, QUEUE_DEFAULT, StartAt};

use self::template::JobTemplate;
use crate::args;
use crate::output::{self, Outcome};
use crate::records::Format;
use crate::redis::RedisArgs;
use crate::store::{self, Schema, StoreAddress};

const HELP: &str = "\
One job:
  Prints the job's id and whether it was enqueued or a duplicate. When a job of
  the same kind was enqueued with the same --key before, it stands for this one
  and nothing is changed.

A file (--from):
  .csv     The header row names the members of a JSON object, and each further
           row is a job. All values are strings; with --infer, numbers and
           true/false become JSON numbers and booleans (007 stays a string).
  .jsonl   Each line is a JSON value and a job. So is it in .ndjson.
  -        Standard input, as JSON Lines unless --format csv is given. It is
           kept in a temporary file meanwhile.

  The file is checked as a whole first. When a line is bad (not JSON, a wrong
  number of fields, no key, a payload over 1 MiB, ...), the file, line and
  column are told and nothing at all is enqueued. With --skip-bad, bad lines
  are written to a file of their own and the others are enqueued.

  With --key-column, running the same command again enqueues nothing twice. Use
  it for any file that matters: a run that was cut short is simply repeated.

Examples:
  milepost enqueue mail --payload '{\"to\": \"ada@example.org\"}'
  milepost enqueue report --payload '{\"month\": 5}' --key report-2026-05
  milepost enqueue report --at 'in 10m' --queue slow --priority 4
  milepost enqueue invoice --from orders.csv --key-column order_id
  milepost enqueue invoice --from orders.jsonl --skip-bad bad.jsonl
  zcat orders.csv.gz | milepost enqueue invoice --from - --format csv --infer";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct EnqueueArgs {
    /// Which handler runs the jobs
    kind: String,

    /// The input of one job, as JSON; null when it is not given
    #[arg(long, value_name = "JSON", conflicts_with = "from")]
    payload: Option<String>,
    /// At most one job of the kind ever has this key
    #[arg(long, conflicts_with = "from")]
    key: Option<String>,

    /// A file with a job a line; - is standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// What the file holds, when its name does not tell
    #[arg(long, requires = "from")]
    format: Option<Format>,
    /// Turn CSV values that look like JSON numbers, true or false into such
    #[arg(long, requires = "from")]
    infer: bool,
    /// Take each job's key from this CSV column or top-level JSON member
    #[arg(long, value_name = "COLUMN", requires = "from")]
    key_column: Option<String>,
    /// Write bad lines to this file, replacing it, and enqueue the others
    #[arg(long, value_name = "BADFILE", requires = "from")]
    skip_bad: Option<PathBuf>,

    /// Where the jobs wait
    #[arg(long, default_value = QUEUE_DEFAULT)]
    queue: String,
    /// Which jobs of the queue go first: from 1 (first) to 4 (last)
    #[arg(long, default_value = "2", value_parser = args::priority)]
    priority: Priority,
    /// Start no earlier: a time such as 2026-05-01T09:00:00Z, or a wait such as 'in 10m'
    #[arg(long, value_name = "TIME", value_parser = args::start_at)]
    at: Option<StartAt>,
    /// How many attempts each job gets; a crash of its worker spends one
    #[arg(long, value_name = "N", default_value_t = MAX_ATTEMPTS_DEFAULT)]
    max_attempts: u32,
    /// Jobs of a group run one at a time
    #[arg(long)]
    group: Option<String>,
    /// How long one attempt may take
    #[arg(long, value_name = "DURATION", value_parser = args::positive_duration)]
    timeout: Option<Duration>,

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
    };
    // The settings that all jobs share are checked once, so that an error in them is not reported as a fault of the first line.
    template.job("null".to_owned(), None)?.check(PAYLOAD_BYTES_MAX)?;
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
    let answer = store.enqueue(&job).await?;
    if !answer.duplicate {
        teller.ready().await;
    }
    if args.json {
        output::heard_or_not(output::json(&answer))?;
    } else if answer.duplicate {
        output::deed(format_args!(
            "{}  duplicate: this key was there before; nothing was changed",
            answer.job
        ))?;
    } else {
        output::deed(format_args!("{}  enqueued", answer.job))?;
    }
    Ok(Outcome::Done)
}

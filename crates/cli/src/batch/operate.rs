//! `milepost batch abort`, `resume`, `cancel` and `mark`.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use humantime::format_duration;
use milepost_cli_support::operator::{GraceArgs, ReasonArgs};
use milepost_cli_support::output::{self, Outcome};
use milepost_core::batch::operation::{BatchOperated, BatchOperation, BatchVerb};
use milepost_core::batch::subject::Subject;
use milepost_core::dag::state::TaskState;
use milepost_core::port::Store;

use super::find::{self, WhichArgs};
use super::words;
use crate::redis::RedisArgs;

pub(super) const ABORT_EXAMPLES: &str = "\
`milepost batch resume` continues from the completed work.

Examples:
  milepost batch abort 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --reason 'wrong prices'
  milepost batch abort settlement --key 2026-11-01 --grace 1m";

pub(super) const RESUME_EXAMPLES: &str = "\
`milepost batch rerun` reruns failed tasks.

Examples:
  milepost batch resume 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";

pub(super) const CANCEL_EXAMPLES: &str = "\
Examples:
  milepost batch cancel 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost batch cancel settlement --key 2026-11-01 --subtree report --reason 'not today'";

pub(super) const MARK_EXAMPLES: &str = "\
The successors continue after `success` as if the task had succeeded without a
result, after `skip` as if its condition were false, after `failed` as after a
failure. A task whose state does not allow this is left unchanged and reported.

Examples:
  milepost batch mark 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c load success
  milepost batch mark settlement --key 2026-11-01 report skip --reason 'sent by hand'";

#[derive(Debug, Args)]
pub(super) struct WhyArgs {
    #[command(flatten)]
    pub(super) reason: ReasonArgs,
    #[command(flatten)]
    pub(super) redis: RedisArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    which: WhichArgs,
    #[command(flatten)]
    grace: GraceArgs,
    #[command(flatten)]
    why: WhyArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    which: WhichArgs,
    #[command(flatten)]
    why: WhyArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// Only this task and its successors
    #[arg(long, value_name = "TASK")]
    subtree: Option<String>,
    #[command(flatten)]
    grace: GraceArgs,
    #[command(flatten)]
    why: WhyArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MarkArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// The task's key; for an item of a list, its index from 0
    task: String,
    /// The outcome
    #[arg(value_name = "END")]
    end: End,
    #[command(flatten)]
    why: WhyArgs,
}

/// The outcome of a task, in the words of the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum End {
    /// Done manually
    Success,
    /// Not needed
    Skip,
    /// Cannot be done
    Failed,
}

impl From<End> for TaskState {
    fn from(end: End) -> Self {
        match end {
            End::Success => Self::Succeeded,
            End::Skip => Self::Skipped,
            End::Failed => Self::Failed,
        }
    }
}

pub(super) async fn abort(args: StopArgs, store: &dyn Store) -> Result<Outcome> {
    let subject = args.which.subject(store).await?;
    let operated = operate(&subject, BatchVerb::Abort, &args.why, args.grace.grace, store).await?;
    tell(&subject, "aborted; nothing starts until it is resumed", &operated, args.grace.grace)
}

pub(super) async fn resume(args: ResumeArgs, store: &dyn Store) -> Result<Outcome> {
    let subject = args.which.subject(store).await?;
    let operated = operate(&subject, BatchVerb::Resume, &args.why, Duration::ZERO, store).await?;
    tell(&subject, "resumed", &operated, Duration::ZERO)
}

pub(super) async fn cancel(args: CancelArgs, store: &dyn Store) -> Result<Outcome> {
    let subject = args.which.subject(store).await?;
    let subtree = args.subtree.iter().map(|key| find::task(&subject, key)).collect::<Result<Vec<_>>>()?;
    let tasks = subject.cancel_set(&subtree);
    let operated = operate(&subject, BatchVerb::Cancel { tasks }, &args.why, args.grace.grace, store).await?;
    if operated.changed + operated.stopping == 0 {
        bail!("there is nothing to cancel: all tasks have ended");
    }
    tell(&subject, "canceled", &operated, args.grace.grace)
}

pub(super) async fn mark(args: MarkArgs, store: &dyn Store) -> Result<Outcome> {
    let subject = args.which.subject(store).await?;
    let task = find::task(&subject, &args.task)?;
    let state = TaskState::from(args.end);
    operate(&subject, BatchVerb::Mark { task, state }, &args.why, Duration::ZERO, store).await?;
    output::change(format_args!("{}  task {} is {state}", subject.row.id, args.task))?;
    Ok(Outcome::Done)
}

/// Applies the operation to the batch, provided that its generation is still that of `subject`.
pub(super) async fn operate(
    subject: &Subject,
    what: BatchVerb,
    why: &WhyArgs,
    grace: Duration,
    store: &dyn Store,
) -> Result<BatchOperated> {
    let row = &subject.row;
    let (generation, note) = (Some(row.generation), why.reason.reason.clone());
    let teller = why.redis.teller();
    let operation = BatchOperation { batch: row.id, generation, grace, note, what };
    let operated = why.reason.acting(store)?.operate_batch(&operation).await?;
    teller.ready().await;
    Ok(operated)
}

fn tell(subject: &Subject, what: &str, operated: &BatchOperated, grace: Duration) -> Result<Outcome> {
    let stopping = match operated.stopping {
        0 => String::new(),
        running => format!(
            "; {} running were asked to stop, and their workers lose them after {}",
            words::count(running),
            format_duration(grace)
        ),
    };
    let changed = words::tasks(operated.changed);
    output::change(format_args!("{}  {what}: {changed} changed{stopping}", subject.row.id))?;
    Ok(Outcome::Done)
}

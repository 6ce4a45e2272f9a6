//! `milepost batch abort`, `resume`, `cancel` and `mark`.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use humantime::format_duration;
use milepost_core::batch::operation::{BatchOperated, BatchOperation, BatchVerb};
use milepost_core::batch::subject::Subject;
use milepost_core::dag::state::TaskState;
use milepost_core::port::Store;

use super::find::{self, WhichArgs};
use super::words;
use crate::args;
use crate::operator;
use crate::output::{self, Outcome};
use crate::redis::RedisArgs;

pub(super) const ABORT_HELP: &str = "\
No further task starts. Jobs that wait are aborted; those that run are asked to
stop, and when they have not stopped after the grace time their workers lose
them. Nothing of what is done is lost: `milepost batch resume` goes on with it.

Examples:
  milepost batch abort 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --note 'wrong prices'
  milepost batch abort settlement --key 2026-11-01 --grace 1m";

pub(super) const RESUME_HELP: &str = "\
What was aborted goes on from where it was, and what waits starts as its turn
comes. Tasks that have failed stay so: `milepost batch rerun` is for them.

Examples:
  milepost batch resume 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";

pub(super) const CANCEL_HELP: &str = "\
What has ended stays as it is; what runs is asked to stop. With --subtree only
that task and all that comes after it. Tasks with the rule `always`, which are
there for clearing up, still run, and so does what only they lead to.

Examples:
  milepost batch cancel 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost batch cancel settlement --key 2026-11-01 --subtree report --note 'not today'";

pub(super) const MARK_HELP: &str = "\
What comes after the task goes on from there: after `success` as if it had
succeeded, without a result; after `skip` as after a condition that is false;
after `failed` as after a failure. A task whose state does not allow it is left
as it is, and that is told.

Examples:
  milepost batch mark 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c load success
  milepost batch mark settlement --key 2026-11-01 report skip --note 'sent by hand'";

#[derive(Debug, Args)]
pub(super) struct WhyArgs {
    /// Why; it stands in the history and in the audit
    #[arg(long, alias = "reason", value_name = "TEXT")]
    pub(super) note: Option<String>,
    #[command(flatten)]
    pub(super) redis: RedisArgs,
}

#[derive(Debug, Args)]
pub(super) struct GraceArgs {
    /// How long running jobs get to stop by themselves
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = args::duration)]
    grace: Duration,
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
    /// Only this task and all that comes after it
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
    /// The task's key; of an item of a list its place, from 0
    task: String,
    /// How it ended
    #[arg(value_name = "END")]
    end: End,
    #[command(flatten)]
    why: WhyArgs,
}

/// How a task ended, as people say it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum End {
    /// It was done by hand
    Success,
    /// It is not needed
    Skip,
    /// It cannot be done
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
    tell(&subject, "goes on", &operated, Duration::ZERO)
}

pub(super) async fn cancel(args: CancelArgs, store: &dyn Store) -> Result<Outcome> {
    let subject = args.which.subject(store).await?;
    let subtree = args.subtree.iter().map(|key| find::task(&subject, key)).collect::<Result<Vec<_>>>()?;
    let tasks = subject.cancel_set(&subtree);
    let operated = operate(&subject, BatchVerb::Cancel { tasks }, &args.why, args.grace.grace, store).await?;
    if operated.changed + operated.stopping == 0 {
        bail!("there is nothing to cancel: all of it has ended");
    }
    tell(&subject, "canceled", &operated, args.grace.grace)
}

pub(super) async fn mark(args: MarkArgs, store: &dyn Store) -> Result<Outcome> {
    let subject = args.which.subject(store).await?;
    let task = find::task(&subject, &args.task)?;
    let state = TaskState::from(args.end);
    operate(&subject, BatchVerb::Mark { task, state }, &args.why, Duration::ZERO, store).await?;
    output::deed(format_args!("{}  task {} is {state}", subject.row.id, args.task))?;
    Ok(Outcome::Done)
}

/// Does it to the batch as it was looked at.
pub(super) async fn operate(
    subject: &Subject,
    what: BatchVerb,
    why: &WhyArgs,
    grace: Duration,
    store: &dyn Store,
) -> Result<BatchOperated> {
    let row = &subject.row;
    let (generation, note) = (Some(row.generation), why.note.clone());
    let teller = why.redis.teller();
    let operation = BatchOperation { batch: row.id, generation, grace, note, what };
    let store = operator::acting_because(store, operation.note.as_deref())?;
    let operated = store.operate_batch(&operation).await?;
    teller.ready().await;
    Ok(operated)
}

fn tell(subject: &Subject, what: &str, operated: &BatchOperated, grace: Duration) -> Result<Outcome> {
    let stopping = match operated.stopping {
        0 => String::new(),
        running => format!(
            "; {} that run were asked to stop, and are lost to their workers after {}",
            words::count(running),
            format_duration(grace)
        ),
    };
    let changed = words::tasks(operated.changed);
    output::deed(format_args!("{}  {what}: {changed} changed{stopping}", subject.row.id))?;
    Ok(Outcome::Done)
}

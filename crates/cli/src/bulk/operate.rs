//! `milepost bulk abort`, `resume` and `cancel`.

use anyhow::{Result, bail};
use clap::Args;
use humantime::format_duration;
use milepost::bulk::{BulkView, InvalidBulk};
use milepost_cli_support::operator::{ReasonArgs, help};
use milepost_cli_support::output::Outcome;
use milepost_cli_support::parsers;
use milepost_cli_support::store::Database;
use milepost_core::actions::GRACE_DEFAULT;
use milepost_core::actions::bulk_run::RunAction;
use milepost_core::actions::job::Inputs;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::port::{Operated, Store};
use milepost_core::state::JobState;

use super::sources::Scene;
use crate::jobs::{Reports, operate};
use crate::redis::{RedisArgs, RedisNotifier};

pub(super) fn abort_help() -> String {
    let grace = format_duration(GRACE_DEFAULT);
    help(
        RunAction::Abort,
        &format!(
            "\
When this command returns, no further chunk starts. The current chunk may still
commit within {grace}; with --hard, its statement is canceled and the chunk is
rolled back. Completed work is kept: `milepost bulk resume` continues after it.

Examples:
  milepost bulk abort 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --reason 'wrong text'
  milepost bulk abort 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --hard"
        ),
    )
}

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  milepost bulk resume 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost bulk resume 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --reason 'the text is corrected'";

pub(super) const CANCEL_EXAMPLES: &str = "\
The next run of the group starts.

Examples:
  milepost bulk cancel 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --reason 'sent by mistake'";

#[derive(Debug, Args)]
pub(super) struct ChangeArgs {
    /// The full ids of the runs
    #[arg(required = true, value_name = "ID", value_parser = parsers::job_id)]
    ids: Vec<JobId>,
    #[command(flatten)]
    reason: ReasonArgs,
    #[command(flatten)]
    redis: RedisArgs,
}

#[derive(Debug, Args)]
pub(super) struct AbortArgs {
    #[command(flatten)]
    targets: ChangeArgs,
    /// Cancel the statement of the current chunk
    #[arg(long)]
    hard: bool,
}

pub(super) async fn abort(
    args: AbortArgs,
    scene: &Scene,
    database: &Database,
    store: &dyn Store,
) -> Result<Outcome> {
    let store = args.targets.reason.acting(store)?;
    let (store, teller) = (store.as_ref(), args.targets.redis.teller());
    let mut reports = Reports::default();
    for &id in &args.targets.ids {
        let words = perform(id, RunAction::Abort, &args.targets, &teller, store).await;
        // The statement is interrupted only after the stop was requested; otherwise the run could begin another chunk.
        let words = match words {
            Ok(Operated::StopRequested) if args.hard => hard(id, scene, database, store).await,
            Ok(operated) => Ok(RunAction::Abort.result(operated)),
            Err(error) => Err(error),
        };
        reports.add(id, words);
    }
    reports.outcome()
}

/// Interrupts the current statement of a run, which starts no further chunk.
async fn hard(id: JobId, scene: &Scene, database: &Database, store: &dyn Store) -> Result<String> {
    let view = super::view(id, store).await?;
    let stopped = match (scene.other(&view.name)?, &view.place) {
        (Some(other), _) => other.interrupt(id).await?,
        (None, Some(place)) => {
            return Ok(format!(
                "no further chunk starts; the current one is on the {place}, which this configuration does not \
                 contain: it ends, or is abandoned after {}",
                format_duration(GRACE_DEFAULT)
            ));
        }
        (None, None) => store.interrupt_bulk(id).await?,
    };
    let chunk = match (stopped, database) {
        (true, _) => "the current one is canceled and rolled back",
        (false, Database::Sqlite(_)) if view.place.is_none() => {
            "on SQLite a chunk takes milliseconds and cannot be canceled"
        }
        (false, _) => "no chunk was executing a statement",
    };
    Ok(format!("no further chunk starts; {chunk}"))
}

pub(super) async fn cancel(args: ChangeArgs, store: &dyn Store) -> Result<Outcome> {
    let store = args.reason.acting(store)?;
    let teller = args.redis.teller();
    let mut reports = Reports::default();
    for &id in &args.ids {
        let operated = perform(id, RunAction::Cancel, &args, &teller, store.as_ref()).await;
        reports.add(id, operated.map(|operated| RunAction::Cancel.result(operated)));
    }
    reports.outcome()
}

/// Performs the action on the job of the run.
async fn perform(
    id: JobId,
    action: RunAction,
    args: &ChangeArgs,
    teller: &RedisNotifier,
    store: &dyn Store,
) -> Result<Operated> {
    super::view(id, store).await?;
    let inputs = Inputs { reason: args.reason.reason.clone(), ..Inputs::default() };
    operate(action.of_job(), id, &inputs, teller, store).await
}

pub(super) async fn resume(args: ChangeArgs, store: &dyn Store) -> Result<Outcome> {
    let store = args.reason.acting(store)?;
    let teller = args.redis.teller();
    let mut reports = Reports::default();
    for &id in &args.ids {
        let resumed = resume_one(id, &args, &teller, store.as_ref()).await;
        if resumed.is_err() {
            // The report is printed before the command ends.
            store.confirm_seen().await?;
        }
        reports.add(id, resumed);
    }
    reports.outcome()
}

async fn resume_one(
    id: JobId,
    args: &ChangeArgs,
    teller: &RedisNotifier,
    store: &dyn Store,
) -> Result<String> {
    let view = super::view(id, store).await?;
    match view.state {
        JobState::Aborted | JobState::Failed => {}
        JobState::Succeeded => return Err(StoreError::from(InvalidBulk::Done { job: id }).into()),
        JobState::Canceled | JobState::Skipped => {
            bail!("job {id} is {} and cannot be resumed; start a new run", view.state)
        }
        JobState::Running if view.stopping.is_some() => {
            bail!("job {id} is about to stop; resume it when `milepost bulk list` shows it as aborted")
        }
        state => bail!("job {id} is {state}: there is nothing to resume"),
    }
    perform(id, RunAction::Resume, args, teller, store).await?;
    let now = super::view(id, store).await?;
    Ok(format!("{}; continues {}", now.state, after(&view)))
}

fn after(view: &BulkView) -> String {
    match &view.cursor {
        Some(cursor) => format!("after {cursor}"),
        None => "from the beginning".to_owned(),
    }
}

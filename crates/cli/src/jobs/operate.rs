//! `milepost jobs cancel`, `retry` and similar: change each of the named jobs.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use humantime::format_duration;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::port::{Operated, Operation, Store};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use crate::args;
use crate::operator;
use crate::output::{self, Outcome};
use crate::redis::{RedisArgs, Teller};

pub(super) const CANCEL_HELP: &str = "\
A waiting job is canceled immediately. A running job is asked to stop; if it
has not stopped after the grace time, its worker loses it, and later reports of
the worker about it are refused.

Examples:
  milepost jobs cancel 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --reason twice
  milepost jobs list --kind mail --state pending --limit 10000 --json \\
    | jq -r '.[].id' | xargs milepost jobs cancel";

pub(super) const ABORT_HELP: &str = "\
A waiting job is aborted immediately. A running job is asked to stop; if it has
not stopped after the grace time, its worker loses it, and later reports of the
worker about it are refused. An aborted job stays until it is resumed or
canceled.

Examples:
  milepost jobs abort 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --reason 'too slow'
  milepost jobs list --state running --limit 10000 --json | jq -r '.[].id' \\
    | xargs milepost jobs abort --grace 1m";

pub(super) const RESUME_HELP: &str = "\
An aborted job runs as soon as a worker is free, from its last checkpoint.

Examples:
  milepost jobs resume 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost jobs list --state aborted --limit 10000 --json | jq -r '.[].id' \\
    | xargs milepost jobs resume --reason 'the disk was replaced'";

pub(super) const RETRY_HELP: &str = "\
A failed job, or one that waits for its retry, runs as soon as a worker is
free. An aborted job continues from its last checkpoint. A job in any other
state is not changed and is reported.

Examples:
  milepost jobs retry 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost jobs list --state failed --limit 10000 --json | jq -r '.[].id' \\
    | xargs milepost jobs retry --reason 'the API is back'";

pub(super) const RERUN_HELP: &str = "\
A job that succeeded, was canceled or was skipped runs again from the start,
with all its attempts and without its old checkpoint. Its history continues.

Examples:
  milepost jobs rerun 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost jobs list --state canceled --limit 10000 --json | jq -r '.[].id' \\
    | xargs milepost jobs rerun --reason 'canceled by mistake'";

pub(super) const SNOOZE_HELP: &str = "\
Examples:
  milepost jobs snooze 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --for 10m
  milepost jobs snooze 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --for '1h 30m'";

pub(super) const SKIP_HELP: &str = "\
A job that waits, for its time or for others, ends as skipped without running.

Examples:
  milepost jobs skip 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost jobs skip 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --reason 'not this month'";

pub(super) const MARK_HELP: &str = "\
A job that waits or has failed ends as succeeded without running.

Examples:
  milepost jobs mark 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost jobs mark 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --reason 'sent by hand'";

pub(super) const RELEASE_HELP: &str = "\
A blocked job runs when it is due and a worker is free. A job whose group is
taken is not changed and is reported: a group runs one job at a time.

Examples:
  milepost jobs release 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost jobs release 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --reason 'go ahead'";

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    targets: ChangeArgs,
    /// How long a running job may take to stop
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = args::duration)]
    grace: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct SnoozeArgs {
    #[command(flatten)]
    targets: ChangeArgs,
    /// The delay from now
    #[arg(long = "for", value_name = "DURATION", value_parser = args::positive_duration)]
    wait: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    /// The full ids of the jobs
    #[arg(required = true, value_name = "ID", value_parser = args::job_id)]
    ids: Vec<JobId>,
    /// The reason, recorded in the jobs' history and in the audit
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    redis: RedisArgs,
}

impl ChangeArgs {
    fn operation(&self, verb: Verb) -> Operation {
        Operation { note: self.reason.clone(), ..Operation::new(verb) }
    }
}

/// Cancels or aborts jobs.
pub(crate) async fn stop(verb: Verb, args: StopArgs, store: &dyn Store) -> Result<Outcome> {
    let operation = args.targets.operation(verb).grace(args.grace);
    let then = if verb == Verb::Abort { JobState::Aborted } else { JobState::Canceled };
    let teller = args.targets.redis.teller();
    let mut reports = Reports::default();
    for &id in &args.targets.ids {
        let words = operate(store, &teller, id, &operation).await.map(|operated| match operated {
            Operated::Done(state) => state.to_string(),
            Operated::StopRequested => {
                format!("asked to stop; {then} after {} at the latest", format_duration(args.grace))
            }
        });
        reports.add(id, words);
    }
    reports.outcome()
}

/// Applies a verb that has no arguments.
pub(crate) async fn change(verb: Verb, args: ChangeArgs, store: &dyn Store) -> Result<Outcome> {
    let operation = args.operation(verb);
    let teller = args.redis.teller();
    let mut reports = Reports::default();
    for &id in &args.ids {
        reports.add(id, operate(store, &teller, id, &operation).await.map(in_words));
    }
    reports.outcome()
}

pub(crate) async fn retry(args: ChangeArgs, store: &dyn Store) -> Result<Outcome> {
    let teller = args.redis.teller();
    let mut reports = Reports::default();
    for &id in &args.ids {
        reports.add(id, retry_one(&args, &teller, id, store).await);
    }
    reports.outcome()
}

async fn retry_one(args: &ChangeArgs, teller: &Teller, id: JobId, store: &dyn Store) -> Result<String> {
    let Some(view) = store.job(id).await? else {
        return Err(StoreError::NoSuchJob(id).into());
    };
    let state = view.row.state;
    let Some(verb) = Verb::that_retries(state) else {
        bail!("job {id} is {state}; only failed, retry_wait and aborted jobs can be retried")
    };
    operate(store, teller, id, &args.operation(verb)).await.map(in_words)
}

pub(crate) async fn snooze(args: SnoozeArgs, store: &dyn Store) -> Result<Outcome> {
    let operation = args.targets.operation(Verb::Snooze).delay(args.wait);
    let teller = args.targets.redis.teller();
    let mut reports = Reports::default();
    for &id in &args.targets.ids {
        let words = operate(store, &teller, id, &operation)
            .await
            .map(|_| format!("snoozed for {}", format_duration(args.wait)));
        reports.add(id, words);
    }
    reports.outcome()
}

/// Applies the verb, then notifies workers of a stop, or that this job or the next one of its group may be ready.
pub(crate) async fn operate(
    store: &dyn Store,
    teller: &Teller,
    id: JobId,
    operation: &Operation,
) -> Result<Operated> {
    let store = operator::acting_because(store, operation.note.as_deref())?;
    let operated = store.operate(id, operation).await?;
    match operated {
        Operated::StopRequested => teller.stop(id, operation.verb).await,
        Operated::Done(_) => teller.ready().await,
    }
    Ok(operated)
}

fn in_words(operated: Operated) -> String {
    match operated {
        Operated::Done(state) => state.to_string(),
        Operated::StopRequested => "asked to stop".to_owned(),
    }
}

/// Reports the result for each job and records whether any failed. An output error does not prevent the remaining jobs from being
/// processed.
pub(crate) struct Reports {
    outcome: Outcome,
    told: Result<()>,
}

impl Default for Reports {
    fn default() -> Self {
        Self { outcome: Outcome::Done, told: Ok(()) }
    }
}

impl Reports {
    pub(crate) fn add(&mut self, id: JobId, words: Result<String>) {
        match words {
            Ok(words) if self.told.is_ok() => {
                self.told = output::line(format_args!("{id}  {words}")).map_err(Into::into);
            }
            Ok(_) => {}
            Err(error) => {
                output::error(&error);
                self.outcome = Outcome::SomeFailed;
            }
        }
    }

    pub(crate) fn outcome(self) -> Result<Outcome> {
        output::heard_or_not(self.told)?;
        Ok(self.outcome)
    }
}

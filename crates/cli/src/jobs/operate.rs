//! `milepost jobs cancel`, `retry` and `snooze`: do something to each of the jobs named.

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
use crate::output::{self, Outcome};

const CANCEL_HELP: &str = "\
A waiting job is canceled at once. A running job is asked to stop; when it has
not stopped after the grace time its worker loses it, and whatever it still
reports is refused.

Examples:
  milepost jobs cancel 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --reason twice
  milepost jobs list --kind mail --state pending --json | jq -r '.[].id' \\
    | xargs milepost jobs cancel";

const RETRY_HELP: &str = "\
A failed job, and one that waits to be retried, runs as soon as a worker is
free. An aborted job goes on from where it was. A job in any other state is
left as it is and reported.

Examples:
  milepost jobs retry 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost jobs list --state failed --json | jq -r '.[].id' \\
    | xargs milepost jobs retry --reason 'the API is back'";

const SNOOZE_HELP: &str = "\
Examples:
  milepost jobs snooze 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --for 10m
  milepost jobs snooze 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --for '1h 30m'";

#[derive(Debug, Args)]
#[command(after_help = CANCEL_HELP)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    targets: Targets,
    /// How long a running job gets to stop by itself
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = args::duration)]
    grace: Duration,
}

#[derive(Debug, Args)]
#[command(after_help = RETRY_HELP)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    targets: Targets,
}

#[derive(Debug, Args)]
#[command(after_help = SNOOZE_HELP)]
pub(crate) struct SnoozeArgs {
    #[command(flatten)]
    targets: Targets,
    /// How long from now they may not start
    #[arg(long = "for", value_name = "DURATION", value_parser = args::positive_duration)]
    wait: Duration,
}

#[derive(Debug, Args)]
struct Targets {
    /// The jobs, by their full ids
    #[arg(required = true, value_name = "ID", value_parser = args::job_id)]
    ids: Vec<JobId>,
    /// Why; it stands in the jobs' history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Targets {
    fn operation(&self, verb: Verb) -> Operation {
        Operation { note: self.reason.clone(), ..Operation::new(verb) }
    }
}

pub(crate) async fn cancel(args: CancelArgs, store: &dyn Store) -> Result<Outcome> {
    let operation = args.targets.operation(Verb::Cancel).grace(args.grace);
    let mut reports = Reports::default();
    for &id in &args.targets.ids {
        let words = operate(store, id, &operation).await.map(|operated| match operated {
            Operated::Done(state) => state.to_string(),
            Operated::StopRequested => {
                format!("asked to stop; canceled after {} at the latest", format_duration(args.grace))
            }
        });
        reports.add(id, words)?;
    }
    Ok(reports.outcome)
}

pub(crate) async fn retry(args: RetryArgs, store: &dyn Store) -> Result<Outcome> {
    let mut reports = Reports::default();
    for &id in &args.targets.ids {
        reports.add(id, retry_one(&args.targets, id, store).await)?;
    }
    Ok(reports.outcome)
}

async fn retry_one(targets: &Targets, id: JobId, store: &dyn Store) -> Result<String> {
    let Some(view) = store.job(id).await? else {
        return Err(StoreError::NoSuchJob(id).into());
    };
    let verb = match view.row.state {
        JobState::Failed | JobState::RetryWait => Verb::RetryNow,
        JobState::Aborted => Verb::Resume,
        state => bail!("job {id} is {state}; only failed, retry_wait and aborted jobs can be retried"),
    };
    let operated = operate(store, id, &targets.operation(verb)).await?;
    Ok(match operated {
        Operated::Done(state) => state.to_string(),
        Operated::StopRequested => "asked to stop".to_owned(),
    })
}

pub(crate) async fn snooze(args: SnoozeArgs, store: &dyn Store) -> Result<Outcome> {
    let operation = args.targets.operation(Verb::Snooze).delay(args.wait);
    let mut reports = Reports::default();
    for &id in &args.targets.ids {
        let words = operate(store, id, &operation)
            .await
            .map(|_| format!("snoozed for {}", format_duration(args.wait)));
        reports.add(id, words)?;
    }
    Ok(reports.outcome)
}

async fn operate(store: &dyn Store, id: JobId, operation: &Operation) -> Result<Operated> {
    Ok(store.operate(id, operation).await?)
}

/// Says of each job what became of it, and remembers whether any failed.
struct Reports {
    outcome: Outcome,
}

impl Default for Reports {
    fn default() -> Self {
        Self { outcome: Outcome::Done }
    }
}

impl Reports {
    fn add(&mut self, id: JobId, words: Result<String>) -> Result<()> {
        match words {
            Ok(words) => output::line(format_args!("{id}  {words}"))?,
            Err(error) => {
                output::error(&error);
                self.outcome = Outcome::SomeFailed;
            }
        }
        Ok(())
    }
}

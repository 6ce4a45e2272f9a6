//! `milepost jobs edit`: changes the payload or the options of jobs that wait, have failed or were aborted.

use anyhow::Result;
use clap::Args;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::Outcome;
use milepost_cli_support::parsers;
use milepost_core::ident::JobId;
use milepost_core::job::error::InvalidJob;
use milepost_core::job::{PAYLOAD_BYTES_MAX, Priority, StartAt};
use milepost_core::port::{JobEdit, Store};
use serde_json::value::RawValue;

use super::operate::Reports;
use crate::redis::RedisArgs;

const HELP: &str = "\
A job that runs or has ended cannot be edited. The edit is an entry in the
history of the job and in the audit, with the names of the changed fields. The
state of the job does not change: use `milepost jobs retry` to run a failed job
with its new payload.

Examples:
  milepost jobs edit 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --payload '{\"to\": \"ada@example.org\"}' --reason 'wrong address'
  milepost jobs edit 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --priority 1 --start-at 'in 10m'
  milepost jobs edit 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --max-attempts 50";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct EditArgs {
    /// The full ids of the jobs
    #[arg(value_name = "ID", value_parser = parsers::job_id, required = true)]
    ids: Vec<JobId>,
    /// The new payload, as JSON
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    payload: Option<String>,
    /// The new priority within the queue, from 1 (first) to 4 (last)
    #[arg(long, value_parser = parsers::priority)]
    priority: Option<Priority>,
    /// The new earliest start of jobs that wait: a time such as 2026-05-01T09:00:00Z, or a delay such as 'in 10m'
    #[arg(long, value_name = "TIME", value_parser = parsers::start_at)]
    start_at: Option<StartAt>,
    /// The new maximum number of attempts
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    #[command(flatten)]
    reason: ReasonArgs,
    #[command(flatten)]
    redis: RedisArgs,
}

pub(super) async fn run(args: EditArgs, store: &dyn Store) -> Result<Outcome> {
    let payload = args.payload.map(RawValue::from_string).transpose();
    let edit = JobEdit {
        payload: payload.map_err(|error| InvalidJob::NotJson { why: error.to_string() })?,
        priority: args.priority,
        start: args.start_at,
        max_attempts: args.max_attempts,
        note: args.reason.reason.clone(),
    };
    edit.check(PAYLOAD_BYTES_MAX)?;
    let store = args.reason.acting(store)?;
    let teller = args.redis.teller();
    let mut reports = Reports::default();
    for job in args.ids {
        let edited = store.edit_job(job, &edit).await;
        if edited.is_ok() {
            teller.ready().await;
        }
        reports.add(job, edited.map(|state| format!("edited; {state}")).map_err(Into::into));
    }
    reports.outcome()
}

//! The options that select jobs.

use clap::Args;
use jiff::Timestamp;
use milepost_cli_support::parsers;
use milepost_core::search::{JobFilter, PayloadMatch};
use milepost_core::state::JobState;

#[derive(Debug, Args)]
#[group(id = "filter", multiple = true)]
pub(super) struct FilterArgs {
    /// Only jobs in this state
    #[arg(long, value_parser = parsers::job_state())]
    state: Option<JobState>,
    /// Only jobs of this kind
    #[arg(long)]
    kind: Option<String>,
    /// Only jobs in this queue
    #[arg(long)]
    queue: Option<String>,
    /// Only jobs with this key
    #[arg(long)]
    key: Option<String>,
    /// Only jobs with an attempt that failed with this error code, or with this text in its message
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Only jobs with this value in their payload, such as customer.id=42
    #[arg(long, value_name = "PATH=VALUE", value_parser = PayloadMatch::parse)]
    payload: Option<PayloadMatch>,
    /// Only jobs created at this time or later; 2h: two hours ago
    #[arg(long, value_name = "TIME", value_parser = parsers::past_time)]
    created_from: Option<Timestamp>,
    /// Only jobs created before this time; 2h: two hours ago
    #[arg(long, value_name = "TIME", value_parser = parsers::past_time)]
    created_before: Option<Timestamp>,
    /// Only jobs that failed permanently at this time or later; 2h: two hours ago
    #[arg(long, value_name = "TIME", value_parser = parsers::past_time)]
    failed_from: Option<Timestamp>,
}

impl FilterArgs {
    pub(super) fn filter(&self) -> JobFilter {
        JobFilter {
            state: self.state,
            kind: self.kind.clone(),
            queue: self.queue.clone(),
            key: self.key.clone(),
            error: self.error.clone(),
            payload: self.payload.clone(),
            created_from: self.created_from,
            created_before: self.created_before,
            failed_from: self.failed_from,
            ..JobFilter::default()
        }
    }

    /// Returns whether any option is given.
    pub(super) fn is_given(&self) -> bool {
        self.state.is_some() || self.key.is_some() || self.filter().needs_search()
    }
}

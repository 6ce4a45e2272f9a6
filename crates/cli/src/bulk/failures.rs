//! `milepost bulk failures` and `retry-failures`.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use milepost::bulk::TargetFailure;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers;
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::ident::JobId;
use milepost_core::port::Store;

use crate::redis::RedisArgs;
use crate::time::relative;

const LIST_HELP: &str = "\
A target whose data the database refuses is skipped and recorded here; the rest
of its chunk is applied. `milepost bulk retry-failures` retries such targets.

Examples:
  milepost bulk failures 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost bulk failures 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --limit 10000 --json \\
    | jq -r '.[].key[0]'";

pub(super) const RETRY_EXAMPLES: &str = "\
Examples:
  milepost bulk retry-failures 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";

#[derive(Debug, Args)]
#[command(after_help = LIST_HELP)]
pub(super) struct FailuresArgs {
    /// The run's full id
    #[arg(value_parser = parsers::job_id)]
    id: JobId,
    /// The maximum number of listed failures
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Only failures after this position, the last one of the previous page
    #[arg(long, value_name = "POS", default_value_t = 0)]
    after: i64,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    /// The run's full id
    #[arg(value_parser = parsers::job_id)]
    id: JobId,
    #[command(flatten)]
    reason: ReasonArgs,
    #[command(flatten)]
    redis: RedisArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) async fn list(args: &FailuresArgs, store: &dyn Store) -> Result<Outcome> {
    super::view(args.id, store).await?;
    let limit = args.limit as usize;
    let mut failures = store.bulk_failures(args.id, args.after, args.limit + 1).await?;
    let cut = failures.len() > limit;
    failures.truncate(limit);
    if args.json {
        output::json(&failures)?;
    } else if failures.is_empty() {
        output::note("no targets failed");
    } else {
        print(&failures)?;
    }
    if let (true, Some(last)) = (cut, failures.last()) {
        output::note(format_args!("only {limit} are listed; to list more, add --after {}", last.pos));
    }
    Ok(Outcome::Done)
}

/// Prints the failures as a table.
pub(super) fn print(failures: &[TargetFailure]) -> Result<()> {
    let now = Timestamp::now();
    let retried = failures.iter().any(|failure| failure.retried_by.is_some());
    let columns = [
        Some(Column::new("KEY")),
        Some(Column::unbroken("CODE")),
        Some(Column::new("MESSAGE")),
        Some(Column::unbroken("WHEN")),
        retried.then_some(Column::unbroken("RETRIED BY")),
    ];
    let mut listing = Listing::new(columns.into_iter().flatten());
    for failure in failures {
        let fields = [
            Some(Field::text(failure.key.to_string().replace(['\n', '\r'], " "))),
            Some(Field::text(&failure.code)),
            Some(Field::text(&failure.message)),
            Some(Field::text(relative(failure.at, now))),
            retried.then(|| Field::maybe(failure.retried_by.map(|job| job.to_string()))),
        ];
        listing.row(fields.into_iter().flatten());
    }
    Ok(listing.print()?)
}

pub(super) async fn retry(args: RetryArgs, store: &dyn Store) -> Result<Outcome> {
    super::view(args.id, store).await?;
    let teller = args.redis.teller();
    let started = args.reason.acting(store)?.retry_bulk_failures(args.id).await?;
    teller.ready().await;
    if args.json {
        output::heard_or_not(output::json(&started))?;
    } else {
        output::change(format_args!("{}  started over the failed targets of {}", started.job, args.id))?;
    }
    Ok(Outcome::Done)
}

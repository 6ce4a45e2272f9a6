//! `milepost bulk set`.

use anyhow::{Result, bail};
use clap::{ArgGroup, Args};
use milepost::Priority;
use milepost::bulk::{Settings, SettingsChange};
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers;
use milepost_core::bulk::chunk::{LOAD_MIN, RATE_MAX};
use milepost_core::ident::JobId;
use milepost_core::port::Store;
use serde_json::json;

use super::words;

const ROWS_MAX: i64 = 1_000_000;

pub(super) const EXAMPLES: &str = "\
The settings stay when the run is aborted and resumed; the definition is not
changed.

Examples:
  milepost bulk set 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --rate 500
  milepost bulk set 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --duty 0.25 --chunk-ms 100 --reason 'office hours'
  milepost bulk set 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --as-defined";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("setting").required(true).multiple(true))]
pub(super) struct SetArgs {
    /// The run's full id
    #[arg(value_parser = parsers::job_id)]
    id: JobId,
    /// Remove the earlier settings of the run, so that the definition applies to all that are not given here; the priority stays
    #[arg(long, group = "setting")]
    as_defined: bool,
    /// The maximum rate, in rows per second
    #[arg(long, group = "setting", value_name = "ROWS", value_parser = rate)]
    rate: Option<f64>,
    /// The share of time that chunks may take, from 0.001 to 1
    #[arg(long, group = "setting", value_name = "SHARE", value_parser = duty)]
    duty: Option<f64>,
    /// The target duration of a chunk; on SQLite limited to 30 ms
    #[arg(long, group = "setting", value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    chunk_ms: Option<u64>,
    /// The minimum number of rows of a chunk
    #[arg(long, group = "setting", value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=ROWS_MAX))]
    chunk_min: Option<u32>,
    /// The maximum number of rows of a chunk
    #[arg(long, group = "setting", value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=ROWS_MAX))]
    chunk_max: Option<u32>,
    /// The priority within the group, from 1 (first) to 4 (last)
    #[arg(long, group = "setting", value_parser = parsers::priority)]
    priority: Option<Priority>,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (LOAD_MIN..=RATE_MAX).contains(rate));
    rate.ok_or_else(|| {
        format!("it must be a number from {LOAD_MIN} to {RATE_MAX}; `milepost bulk abort` stops a run")
    })
}

fn duty(text: &str) -> Result<f64, String> {
    let duty = text.parse::<f64>().ok().filter(|duty| (LOAD_MIN..=1.0).contains(duty));
    duty.ok_or_else(|| format!("it must be a number from {LOAD_MIN} to 1"))
}

impl SetArgs {
    const fn change(&self) -> SettingsChange {
        let settings = Settings {
            rows_per_s: self.rate,
            duty: self.duty,
            chunk_ms: self.chunk_ms,
            chunk_rows_min: self.chunk_min,
            chunk_rows_max: self.chunk_max,
        };
        SettingsChange { as_defined: self.as_defined, settings, priority: self.priority }
    }
}

pub(super) async fn run(args: SetArgs, store: &dyn Store) -> Result<Outcome> {
    let (id, change) = (args.id, args.change());
    let view = super::view(id, store).await?;
    if view.state.is_ended() {
        bail!("job {id} is {}: its settings can no longer be changed", view.state);
    }
    let all = change.over(view.settings);
    if let (Some(min), Some(max)) = (all.chunk_rows_min, all.chunk_rows_max)
        && min > max
    {
        bail!(
            "a chunk would have at least {min} and at most {max} rows; set --chunk-min and --chunk-max together"
        );
    }
    args.reason.acting(store)?.set_bulk(id, &change).await?;
    if args.json {
        let priority = args.priority.map(Priority::get);
        output::heard_or_not(output::json(&json!({ "job": id, "settings": all, "priority": priority })))?;
        return Ok(Outcome::Done);
    }
    let priority = args.priority.map(|priority| format!("priority {}", priority.get()));
    let removed = change.as_defined.then(|| "as the bulk job defines".to_owned());
    let said: Vec<String> =
        removed.into_iter().chain(words::settings(&change.settings)).chain(priority).collect();
    output::change(format_args!("{id}  from its next chunk on: {}", said.join(", ")))?;
    Ok(Outcome::Done)
}

//! `milepost batch start`.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use jiff::civil::Date;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers::point_in_time;
use milepost_core::batch::nominal::{NominalTime, ZONE_DEFAULT};
use milepost_core::batch::start::{NewBatch, check_fit_of_text};
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use serde_json::value::RawValue;

use super::{find, watch};
use crate::input;
use crate::redis::RedisArgs;

/// The length of a date such as 2026-05-01.
const DATE_CHARS: usize = 10;

const EXAMPLES: &str = "\
Expressions of the DAG read the input as `input`. It must fit the DAG's input
schema, if there is one. At most one batch of a DAG has a given key: starting
it again returns the same batch and changes nothing.

With --nominal-at, the batch is for a tick, as if a schedule had started it:
expressions can read `tick.date` and `tick.time`. Use it to backfill a day
manually; `milepost schedules backfill` backfills the ticks of a schedule.

Examples:
  milepost batch start settlement
  milepost batch start settlement --key 2026-11-01 --input '{\"day\": \"2026-11-01\"}'
  milepost batch start settlement --key 2026-11-01 --nominal-at 2026-11-01 --zone Europe/Berlin
  jq '{day: .}' day.json | milepost batch start settlement --input-file - --watch";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StartArgs {
    /// The DAG's name
    dag: String,
    /// A key that at most one batch of the DAG has
    #[arg(long)]
    key: Option<String>,
    /// The input, as JSON [default: {}]
    #[arg(long, value_name = "JSON", conflicts_with = "input_file")]
    input: Option<String>,
    /// A file with the input; - for standard input
    #[arg(long, value_name = "FILE")]
    input_file: Option<PathBuf>,
    /// The tick of the batch: a time, or a date, which means its first instant in the zone
    #[arg(long, value_name = "TIME")]
    nominal_at: Option<String>,
    /// The time zone of the tick's date: an IANA name [default: UTC]
    #[arg(long, requires = "nominal_at")]
    zone: Option<String>,
    /// The version: its number, or its first digits [default: the latest]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Follow the batch until it ends; exit status 1 if it is not done
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    #[command(flatten)]
    reason: ReasonArgs,
    #[command(flatten)]
    redis: RedisArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl StartArgs {
    fn nominal(&self) -> Result<Option<NominalTime>> {
        let zone = self.zone.as_deref().unwrap_or(ZONE_DEFAULT);
        self.nominal_at.as_deref().map(|text| nominal(text, zone)).transpose()
    }

    /// Returns the input as it is written: numbers keep their digits.
    fn input(&self) -> Result<Box<RawValue>> {
        let (text, place) = match (&self.input, &self.input_file) {
            (Some(text), _) => (text.clone(), "--input".to_owned()),
            (None, Some(path)) if path.as_os_str() == "-" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read the input")?;
                (text, "the input".to_owned())
            }
            (None, Some(path)) => {
                let place = path.display().to_string();
                (
                    input::read_text(path, input::DOCUMENT_BYTES_MAX)
                        .with_context(|| format!("cannot read {place}"))?,
                    place,
                )
            }
            (None, None) => ("{}".to_owned(), "the input".to_owned()),
        };
        RawValue::from_string(text).with_context(|| format!("{place} is not JSON"))
    }
}

/// Parses a nominal time: a time, or a date, which means its first instant in the time zone.
fn nominal(text: &str, zone: &str) -> Result<NominalTime> {
    let at = match text.parse::<Date>() {
        Ok(date) if text.len() == DATE_CHARS => NominalTime::of_date(date, zone)?,
        _ => NominalTime {
            at: point_in_time(text).map_err(|why| anyhow!("--nominal-at {text}: {why}, or 2026-05-01"))?,
            zone: zone.to_owned(),
        },
    };
    at.check()?;
    Ok(at)
}

pub(super) async fn run(args: StartArgs, store: &dyn Store) -> Result<Outcome> {
    let store = args.reason.acting(store)?;
    let store = store.as_ref();
    let input = args.input()?;
    let latest = find::dag(&args.dag, store).await?;
    let version = match &args.version {
        Some(text) => find::version(&args.dag, text, store).await?,
        None => latest.version,
    };
    let (_, definition) = store.dag(&args.dag, Some(version)).await?;
    if let Some(schema) = &definition.input_schema {
        check_fit_of_text(schema, input.get()).map_err(StoreError::from)?;
    }
    let mut batch = NewBatch::new(&args.dag, &input)?;
    batch.key.clone_from(&args.key);
    batch.nominal = args.nominal()?;
    // Pins the version whose schema was checked, in case another one is stored in the meantime.
    batch.version = Some(version);
    let teller = args.redis.teller();
    let started = store.start_batch(&batch).await?;
    let id = started.batch;
    if !started.duplicate {
        teller.ready().await;
    }
    if args.json {
        output::heard_or_not(output::json(&started))?;
    } else if started.duplicate {
        output::change(format_args!("{id}  duplicate: this key existed before; nothing was changed"))?;
    } else {
        output::change(format_args!("{id}  started"))?;
    }
    if args.watch { watch::follow(id, store).await } else { Ok(Outcome::Done) }
}

//! `milepost batch signal`.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use milepost_cli_support::output::{self, Outcome};
use milepost_core::batch::wait::{NewSignal, SignalResult, Signaled};
use milepost_core::port::Store;
use serde_json::value::RawValue;

use super::find::WhichArgs;
use super::operate::WhyArgs;
use crate::input;

pub(super) const EXAMPLES: &str = "\
A task with `wait = { signal = \"NAME\" }` waits for the signal. Its output is the
payload. A signal that comes before the task waits is kept; a second signal with
the same id changes nothing. `milepost batch show` shows what is awaited.

Examples:
  milepost batch signal 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c approved
  milepost batch signal settlement approved --key 2026-11-01 --payload '{\"choice\": \"approve\"}' --id mail-4711";

#[derive(Debug, Args)]
pub(crate) struct SignalArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// The name of the signal
    name: String,
    /// The payload, as JSON [default: null]
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file")]
    payload: Option<String>,
    /// A file with the payload; - for standard input
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// The id of the signal, so that it can be repeated safely [default: a new one]
    #[arg(long)]
    id: Option<String>,
    #[command(flatten)]
    why: WhyArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl SignalArgs {
    /// Returns the payload as it is written: numbers keep their digits.
    fn payload(&self) -> Result<Option<Box<RawValue>>> {
        let (text, place) = match (&self.payload, &self.payload_file) {
            (Some(text), _) => (text.clone(), "--payload".to_owned()),
            (None, Some(path)) if path.as_os_str() == "-" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read the payload")?;
                (text, "the payload".to_owned())
            }
            (None, Some(path)) => {
                let place = path.display().to_string();
                let text = input::read_text(path, input::DOCUMENT_BYTES_MAX);
                (text.with_context(|| format!("cannot read {place}"))?, place)
            }
            (None, None) => return Ok(None),
        };
        RawValue::from_string(text).with_context(|| format!("{place} is not JSON")).map(Some)
    }
}

pub(super) async fn run(args: SignalArgs, store: &dyn Store) -> Result<Outcome> {
    let batch = args.which.id(store).await?;
    let mut signal = NewSignal::new(batch, &args.name);
    signal.payload = args.payload()?.unwrap_or(signal.payload);
    signal.id = args.id.unwrap_or(signal.id);
    let teller = args.why.redis.teller();
    let result = args.why.reason.acting(store)?.signal_batch(&signal).await?;
    teller.ready().await;
    if args.json {
        output::heard_or_not(output::json(&Signaled { result }))?;
        return Ok(Outcome::Done);
    }
    let words = match result {
        SignalResult::Accepted => "accepted; the task that waits for it continues",
        SignalResult::Duplicate => "duplicate: the batch has a signal with this id; nothing was changed",
        SignalResult::Late => "late: the task has ended; nothing was changed",
    };
    output::change(format_args!("{batch}  signal {}: {words}", args.name))?;
    Ok(Outcome::Done)
}

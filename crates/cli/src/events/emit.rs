//! `milepost events emit`.

use std::path::Path;

use anyhow::{Context, Error, Result, anyhow};
use clap::Args;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_core::error::StoreError;
use milepost_core::event::{Aggregate, Emitted, InvalidEvent, NewEvent};
use milepost_core::ident::EventId;
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::port::Store;
use serde_json::json;
use serde_json::value::RawValue;

use crate::input;

const HELP: &str = "\
Prints the event's id and its sequence in its aggregate. An event that is
emitted again, with the same --id and the same content, is a duplicate and
changes nothing. In a script that may be repeated, give the events ids.

Without --seq, the event gets the next sequence of its aggregate. With --seq,
it must be that sequence, or a later one with --allow-gap; the first event of
an aggregate may have any sequence.

The payload is stored and published byte by byte, except for white space around
it.

Examples:
  milepost events emit order 17 order.paid --payload '{\"cents\": 1200}'
  milepost events emit order 17 order.paid --payload @paid.json --header tenant=acme
  milepost events emit order 17 order.shipped --id 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost events emit account 4711 account.moved --seq 900";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct EmitArgs {
    /// The aggregate type, such as order
    #[arg(value_name = "TYPE")]
    aggregate_type: String,
    /// The aggregate id
    #[arg(value_name = "ID")]
    aggregate_id: String,
    /// The event type, such as order.paid
    event_type: String,
    /// The payload, as JSON; @FILE reads it from a file [default: {}]
    #[arg(long, value_name = "JSON|@FILE", allow_hyphen_values = true)]
    payload: Option<String>,
    /// The event's id, a UUID [default: a new one]
    #[arg(long, value_name = "UUID", value_parser = event_id)]
    id: Option<EventId>,
    /// The sequence of the event in its aggregate [default: the next one]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seq: Option<i64>,
    /// Allow --seq to skip numbers
    #[arg(long, requires = "seq")]
    allow_gap: bool,
    /// A header; may be given several times
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn event_id(text: &str) -> Result<EventId, String> {
    text.parse().map_err(|_| "an event id is a UUID, such as 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c".to_owned())
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give a header as NAME=VALUE, such as tenant=acme")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl EmitArgs {
    /// Returns the event, checked as far as possible without a store.
    pub(super) fn event(&self) -> Result<NewEvent> {
        let aggregate = Aggregate::new(&self.aggregate_type, &self.aggregate_id);
        let mut event = NewEvent::new(aggregate, &self.event_type, &json!({}))?;
        if let Some(given) = &self.payload {
            event.payload = payload(given)?;
        }
        event.id = self.id.unwrap_or(event.id);
        event.sequence = self.seq;
        event.gap_allowed = self.allow_gap;
        for (name, value) in &self.headers {
            if event.headers.insert(name.clone(), value.clone()).is_some() {
                return Err(anyhow!("the header {name:?} is given twice"));
            }
        }
        event.check(PAYLOAD_BYTES_MAX)?;
        Ok(event)
    }
}

/// White space around a payload, as JSON defines it.
const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

fn payload(given: &str) -> Result<Box<RawValue>> {
    let (text, place) = match given.strip_prefix('@') {
        Some(path) => {
            let text = input::read_text(Path::new(path), input::DOCUMENT_BYTES_MAX)
                .with_context(|| format!("cannot read the payload from {path}"))?;
            (text, path)
        }
        None => (given.to_owned(), "--payload"),
    };
    RawValue::from_string(text.trim_matches(SPACE).to_owned()).with_context(|| format!("{place} is not JSON"))
}

pub(super) async fn run(args: &EmitArgs, event: &NewEvent, store: &dyn Store) -> Result<Outcome> {
    let Emitted { sequence, duplicate } = args.reason.acting(store)?.emit(event).await.map_err(remedy)?;
    let (id, aggregate) = (event.id, &event.aggregate);
    if args.json {
        let answer = json!({ "event_id": id, "aggregate_seq": sequence, "duplicate": duplicate });
        output::heard_or_not(output::json(&answer))?;
    } else if duplicate {
        output::change(format_args!(
            "{id}  duplicate: it is event {sequence} of {aggregate} already; nothing was changed"
        ))?;
    } else {
        output::change(format_args!("{id}  event {sequence} of {aggregate}"))?;
    }
    Ok(Outcome::Done)
}

/// Adds a remedy to the error for the single event of the call.
fn remedy(error: StoreError) -> Error {
    let StoreError::Event { invalid, .. } = error else { return error.into() };
    match &invalid {
        InvalidEvent::Repeated { .. } => anyhow!("{invalid}; without --seq it gets the next number"),
        InvalidEvent::Gap { .. } => anyhow!("{invalid} with --allow-gap"),
        InvalidEvent::OtherContent { .. } => anyhow!("{invalid}; give this one another --id"),
        _ => invalid.into(),
    }
}

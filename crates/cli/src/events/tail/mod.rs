//! `milepost events tail`.

mod follow;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::event::Aggregate;
use milepost_core::event::listing::{EventFilter, EventPage, LoggedEvent};
use milepost_core::port::EventLog;

pub(super) use self::follow::on_one_line;
use crate::time::relative;

const HELP: &str = "\
Lists events, oldest first: without --after the newest events of the log, with
--after those after a position. With --follow, it continues until Ctrl-C, one
event per line.

Examples:
  milepost events tail
  milepost events tail --aggregate order/17
  milepost events tail --type order.paid --follow
  milepost events tail --after 0 --limit 1000 --json | jq -r '.[].event_id'
  milepost events tail --follow --json | jq -c '.payload'";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct TailArgs {
    /// Only events of this aggregate
    #[arg(long, value_name = "TYPE/ID")]
    pub(super) aggregate: Option<Aggregate>,
    /// Only events of this type
    #[arg(long = "type", value_name = "EVENT_TYPE")]
    pub(super) event_type: Option<String>,
    /// Only events after this position of the log; 0 is its beginning
    #[arg(long, value_name = "POS", value_parser = clap::value_parser!(i64).range(0..))]
    pub(super) after: Option<i64>,
    /// The maximum number of events; with --follow, of existing events
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) limit: u32,
    /// Continue with new events until Ctrl-C
    #[arg(long)]
    pub(super) follow: bool,
    /// Print one JSON array; with --follow, one JSON object per line
    #[arg(long)]
    pub(super) json: bool,
}

impl TailArgs {
    /// Returns the filter for a page of the requested events.
    pub(super) fn filter(&self, page: EventPage, limit: u32) -> EventFilter {
        EventFilter { aggregate: self.aggregate.clone(), event_type: self.event_type.clone(), page, limit }
    }
}

pub(super) async fn run(args: TailArgs, store: &(impl EventLog + ?Sized)) -> Result<Outcome> {
    if args.follow {
        return follow::run(&args, store).await;
    }
    let limit = args.limit as usize;
    let page = args.after.map_or(EventPage::Before(None), EventPage::After);
    let mut events = store.events(&args.filter(page, args.limit + 1)).await?;
    let cut = events.len() > limit;
    events.truncate(limit);
    if args.after.is_none() {
        events.reverse();
    }
    if args.json {
        output::json(&events)?;
    } else if !events.is_empty() {
        print(&events)?;
    }
    match (events.last(), args.after) {
        (Some(last), Some(_)) if cut => output::note(format_args!("more: --after {}", last.pos)),
        (Some(_), None) if cut => {
            output::note(format_args!(
                "only the newest {limit} are listed; --limit lists more, --after 0 begins at the oldest"
            ));
        }
        (None, _) if !args.json => output::note("no events"),
        _ => {}
    }
    Ok(Outcome::Done)
}

fn print(events: &[LoggedEvent]) -> Result<()> {
    let now = Timestamp::now();
    let mut listing = Listing::new([
        Column::unbroken("POS"),
        Column::unbroken("EMITTED"),
        Column::new("AGGREGATE"),
        Column::unbroken("SEQ"),
        Column::new("TYPE"),
        Column::new("PAYLOAD"),
    ]);
    for LoggedEvent { pos, event } in events {
        listing.line([
            Field::text(pos.to_string()),
            Field::text(relative(event.emitted_at, now)),
            Field::text(event.aggregate.to_string()),
            Field::text(event.sequence.to_string()),
            Field::text(&event.event_type),
            Field::text(on_one_line(event.payload.get())),
        ]);
    }
    Ok(listing.print()?)
}

//! `milepost schedules preview`.

use anyhow::Result;
use clap::Args;
use jiff::{Timestamp, Zoned};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers::point_in_time;
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::schedule::Spec;
use serde::Serialize;

use crate::time::relative;

const EXAMPLES: &str = "\
Examples:
  milepost schedules preview '0 3 * * *' --zone Europe/Berlin
  milepost schedules preview '30 2 * * *' --zone America/New_York --from 2027-03-13T00:00:00Z
  milepost schedules preview '@every 90m' --count 5 --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PreviewArgs {
    /// A cron expression, a macro such as @daily, or '@every' and an interval
    spec: String,
    /// The time zone of the expression: an IANA name
    #[arg(long, default_value = "UTC")]
    zone: String,
    /// The number of ticks
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    count: u32,
    /// Ticks after this time; now unless given
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    from: Option<Timestamp>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// A tick in the JSON output.
#[derive(Serialize)]
struct TickDocument {
    at: Timestamp,
    local: String,
}

pub(super) fn run(args: &PreviewArgs) -> Result<Outcome> {
    let spec = Spec::parse(&args.spec, &args.zone)?;
    let zone = spec.zone();
    let now = Timestamp::now();
    let from = args.from.unwrap_or(now);
    let ticks = std::iter::successors(spec.next_after(from), |tick| spec.next_after(*tick));
    let ticks: Vec<Zoned> = ticks.take(args.count as usize).map(|tick| tick.to_zoned(zone.clone())).collect();
    if args.json {
        let document = |tick: &Zoned| TickDocument { at: tick.timestamp(), local: tick.to_string() };
        output::json(&ticks.iter().map(document).collect::<Vec<_>>())?;
    } else {
        print(&ticks, offset(&from.to_zoned(zone)), now)?;
    }
    Ok(Outcome::Done)
}

fn print(ticks: &[Zoned], mut offset_before: String, now: Timestamp) -> Result<()> {
    if ticks.is_empty() {
        output::note("there is no tick after that; ticks are computed up to the year 5000");
        return Ok(());
    }
    let mut listing = Listing::new([
        Column::unbroken("LOCAL"),
        Column::unbroken("UTC"),
        Column::unbroken("WHEN"),
        Column::unbroken("CLOCKS"),
    ]);
    for tick in ticks {
        let offset = offset(tick);
        let changed = (offset != offset_before).then(|| format!("were {offset_before}"));
        listing.row([
            Field::text(format!("{} {offset}", tick.strftime("%a %Y-%m-%d %H:%M:%S"))),
            Field::text(tick.timestamp().to_string()),
            Field::text(relative(tick.timestamp(), now)),
            changed.map_or_else(|| Field::text(""), Field::warning),
        ]);
        offset_before = offset;
    }
    Ok(listing.print()?)
}

/// Formats the UTC offset of a local time.
fn offset(time: &Zoned) -> String {
    time.strftime("%:z").to_string()
}

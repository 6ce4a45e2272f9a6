//! `milepost inbox dead`.

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output;
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::actions::dead_letter::LetterAction;
use milepost_core::inbox::listing::{DeadFilter, DeadLetter, LetterId};
use milepost_core::port::Store;
use serde_json::json;

use super::known;
use crate::time::relative;

const HELP: &str = "\
Without --retry and --drop, the command lists dead letters, newest first.
REASON is `gap`: an event after a missing one; `never_came`: missing events
that the consumer skipped; `late`: a skipped event that arrived later.

An event after a gap is processed automatically when the missing one arrives. A
retried one waits again and is processed when the consumer polls next, or with
its next event. A dropped one is deleted permanently. `milepost audit` shows
who did either.

Examples:
  milepost inbox dead billing
  milepost inbox dead billing --retry 7 8
  milepost inbox dead billing --drop 9";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DeadArgs {
    /// The consumer
    consumer: String,
    /// Let these events wait again for the missing one
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with = "drop")]
    retry: Vec<i64>,
    /// Delete these events permanently
    #[arg(long, value_name = "ID", num_args = 1..)]
    drop: Vec<i64>,
    #[command(flatten)]
    reason: ReasonArgs,
    /// The maximum number of listed dead letters
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// List dead letters before this one, the last of the previous page
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: DeadArgs, store: &dyn Store) -> Result<()> {
    known(&args.consumer, store).await?;
    let (ids, action) = match (args.retry.as_slice(), args.drop.as_slice()) {
        ([], []) => return list(&args, store).await,
        ([], ids) => (ids, LetterAction::Drop),
        (ids, _) => (ids, LetterAction::Retry),
    };
    let mut letters: Vec<LetterId> = ids.iter().copied().map(LetterId).collect();
    letters.sort_unstable();
    letters.dedup();
    for letter in &letters {
        check_owner(&args.consumer, *letter, store).await?;
    }
    let count = action.perform(&letters, args.reason.acting(store)?.as_ref()).await?;
    if args.json {
        let name = if action == LetterAction::Drop { "dropped" } else { "retried" };
        return output::heard_or_not(output::json(&json!({ name: count })));
    }
    output::change(format_args!("dead letters of {} that {}: {count}", args.consumer, action.result()))
}

/// Checks that the dead letter belongs to the consumer. Ids are unique across consumers, so a mistyped id could be that of another one.
async fn check_owner(consumer: &str, letter: LetterId, store: &dyn Store) -> Result<()> {
    let before = letter.0.checked_add(1).map(LetterId);
    let filter = DeadFilter { consumer: Some(consumer.to_owned()), before, limit: 1 };
    let found = store.dead_letters(&filter).await?;
    if found.first().is_none_or(|found| found.id != letter) {
        bail!(
            "{consumer} has no dead letter {letter}; `milepost inbox dead {consumer}` lists its dead letters"
        );
    }
    Ok(())
}

async fn list(args: &DeadArgs, store: &dyn Store) -> Result<()> {
    let consumer = Some(args.consumer.clone());
    let filter = DeadFilter { consumer, before: args.before.map(LetterId), limit: args.limit };
    let letters = store.dead_letters(&filter).await?;
    if args.json {
        return output::json(&letters);
    }
    if letters.is_empty() {
        output::note("no dead letters");
        return Ok(());
    }
    let now = Timestamp::now();
    let mut listing = Listing::new([
        Column::unbroken("ID"),
        Column::new("AGGREGATE"),
        Column::unbroken("SEQ"),
        Column::new("EVENT"),
        Column::unbroken("REASON"),
        Column::unbroken("DEAD"),
        Column::new("WHY"),
    ]);
    for letter in &letters {
        listing.row([
            Field::text(letter.id.to_string()),
            Field::text(letter.aggregate.to_string()),
            Field::text(sequences(letter)),
            Field::maybe(letter.event.as_ref().map(|event| &event.event_type)),
            Field::text(letter.reason.as_str()),
            Field::text(relative(letter.dead_at, now)),
            Field::text(&letter.why),
        ]);
    }
    Ok(listing.print()?)
}

fn sequences(letter: &DeadLetter) -> String {
    let (first, last) = (letter.sequences.start(), letter.sequences.end());
    if first == last { first.to_string() } else { format!("{first} to {last}") }
}

//! `milepost events tail --follow`.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use milepost_cli_support::output::{self, Outcome, printable};
use milepost_core::event::listing::{EventPage, LoggedEvent};
use milepost_core::port::EventLog;
use milepost_core::text::is_unprintable;

use super::TailArgs;

/// The polling interval of the log.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The number of positions before the newest displayed event that are read again, to find events that were emitted earlier but committed
/// later.
const LATE: i64 = 200;
/// The number of events per query.
const PAGE: u32 = 500;
/// The number of payload characters in a line.
const PAYLOAD_CHARS: usize = 200;

pub(super) async fn run(args: &TailArgs, store: &(impl EventLog + ?Sized)) -> Result<Outcome> {
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.map(|()| Outcome::Done).map_err(Into::into),
        failed = follow(args, store) => failed,
    }
}

/// Prints existing and new events until an error occurs.
async fn follow(args: &TailArgs, store: &(impl EventLog + ?Sized)) -> Result<Outcome> {
    let mut shown =
        Shown { from: args.after.unwrap_or(0), newest: args.after.unwrap_or(0), late: BTreeSet::new() };
    if args.after.is_none() {
        // All of them are recorded as shown, so that events before the first displayed one are not printed later.
        let mut newest = store.events(&args.filter(EventPage::Before(None), args.limit.max(PAGE))).await?;
        newest.iter().for_each(|logged| _ = shown.is_new(logged.pos));
        newest.truncate(args.limit as usize);
        newest.iter().rev().try_for_each(|logged| line(args, logged))?;
        shown.from = shown.behind();
    }
    loop {
        let mut after = shown.behind();
        loop {
            let page = store.events(&args.filter(EventPage::After(after), PAGE)).await?;
            for logged in &page {
                after = logged.pos;
                if shown.is_new(logged.pos) {
                    line(args, logged)?;
                }
            }
            shown.forget();
            if page.len() < PAGE as usize {
                break;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The events that were displayed.
struct Shown {
    /// Events up to this position are not displayed.
    from: i64,
    newest: i64,
    /// The displayed positions in the range that is read again.
    late: BTreeSet<i64>,
}

impl Shown {
    /// Returns the position after which events are read again.
    fn behind(&self) -> i64 {
        self.from.max(self.newest - LATE)
    }

    fn is_new(&mut self, pos: i64) -> bool {
        self.newest = self.newest.max(pos);
        self.late.insert(pos)
    }

    fn forget(&mut self) {
        self.late = self.late.split_off(&self.behind());
    }
}

fn line(args: &TailArgs, logged: &LoggedEvent) -> Result<()> {
    if args.json {
        return Ok(output::line(serde_json::to_string(logged)?)?);
    }
    let LoggedEvent { pos, event } = logged;
    let aggregate = printable(&event.aggregate.to_string());
    let (event_type, payload) = (printable(&event.event_type), on_one_line(event.payload.get()));
    let (at, sequence) = (event.emitted_at, event.sequence);
    Ok(output::line(format_args!(
        "{pos}  {at:.3}  {aggregate}  {sequence}  {event_type}  {}",
        printable(&payload)
    ))?)
}

/// Returns the beginning of a payload without line breaks.
pub(in crate::events) fn on_one_line(payload: &str) -> String {
    payload.chars().take(PAYLOAD_CHARS).map(|c| if is_unprintable(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_commits_late_is_shown_once() {
        let mut shown = Shown { from: 0, newest: 0, late: BTreeSet::new() };
        assert!([1, 2, 4].map(|pos| shown.is_new(pos)) == [true; 3]);
        shown.forget();
        assert!(shown.is_new(3), "it became visible after 4");
        assert!([1, 2, 3, 4].map(|pos| shown.is_new(pos)) == [false; 4]);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_nothing_is_shown_twice() {
        let mut shown = Shown { from: 0, newest: 0, late: BTreeSet::new() };
        assert!((1..=1000).all(|pos| shown.is_new(pos)));
        shown.forget();
        assert!(shown.late.len() <= 201, "{}", shown.late.len());
        assert!((shown.behind() + 1..=1000).all(|pos| !shown.is_new(pos)));
    }
}

//! `milepost events tail --follow`.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use milepost_core::event::listing::{EventPage, LoggedEvent};
use milepost_core::port::EventLog;
use milepost_core::text::is_unprintable;

use super::tail::TailArgs;
use crate::output::{self, Outcome, printable};

/// How often the log is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How far behind the newest event shown those are looked for that were emitted before it and committed after it.
const LATE: i64 = 200;
/// How many events are asked for at once.
const PAGE: u32 = 500;
/// How many characters of a payload a line shows.
const PAYLOAD_CHARS: usize = 200;

pub(super) async fn run(args: &TailArgs, store: &(impl EventLog + ?Sized)) -> Result<Outcome> {
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.map(|()| Outcome::Done).map_err(Into::into),
        failed = follow(args, store) => failed,
    }
}

/// Shows what there is and what is added, until it fails.
async fn follow(args: &TailArgs, store: &(impl EventLog + ?Sized)) -> Result<Outcome> {
    let mut shown =
        Shown { from: args.after.unwrap_or(0), newest: args.after.unwrap_or(0), late: BTreeSet::new() };
    if args.after.is_none() {
        // Marked, so that what was there before the first that is shown does not come later.
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

/// Which events were shown.
struct Shown {
    /// Nothing up to this position is shown.
    from: i64,
    newest: i64,
    /// Those among which late ones are looked for.
    late: BTreeSet<i64>,
}

impl Shown {
    /// From where on late ones are looked for.
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

/// The beginning of a payload, without its line breaks.
pub(super) fn on_one_line(payload: &str) -> String {
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
        assert!(shown.is_new(3), "it came into sight after 4");
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

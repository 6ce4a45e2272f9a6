//! `milepost bulk watch`.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use milepost::bulk::BulkView;
use milepost_cli_support::output::{self, Outcome, printable};
use milepost_cli_support::parsers;
use milepost_core::bulk::estimate::Pace;
use milepost_core::ident::JobId;
use milepost_core::port::Store;
use milepost_core::state::JobState;
use tokio::time::Instant;

use super::words;
use crate::time::length;

/// The polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Without a terminal, a line is printed each time this many more percent are done.
const PERCENT_A_LINE: u64 = 10;

const EXAMPLES: &str = "\
The command ends when the run has ended, has failed or was aborted.

Exit status: 0 if the run succeeded, else 1.

Examples:
  milepost bulk watch 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost bulk watch $(milepost bulk start popular --param topic=4 --json | jq -r .job)";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WatchArgs {
    /// The run's full id
    #[arg(value_parser = parsers::job_id)]
    id: JobId,
}

pub(super) async fn run(args: &WatchArgs, store: &dyn Store) -> Result<Outcome> {
    let mut view = super::view(args.id, store).await?;
    let mut screen = Screen::new(&view);
    while !view.is_over() {
        screen.show(&view);
        tokio::time::sleep(LOOK_EVERY).await;
        view = super::view(args.id, store).await?;
    }
    drop(screen);
    let chunks = words::count(view.counts.chunks);
    output::change(format_args!(
        "{}  {}: {} in {chunks} chunks",
        view.id,
        view.state,
        words::progress(&view)
    ))?;
    Ok(if view.state == JobState::Succeeded { Outcome::Done } else { Outcome::SomeFailed })
}

/// A progress bar on a terminal; occasional lines otherwise.
struct Screen {
    bar: ProgressBar,
    pace: Pace,
    /// The time of the last poll, and the number of targets processed by then.
    seen: Option<(Instant, u64)>,
    /// The progress step and the state in the last printed line, without a terminal.
    told: Option<(u64, String)>,
}

impl Screen {
    fn new(view: &BulkView) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_prefix(printable(&view.name).chars().take(16).collect::<String>());
        Self { bar, pace: Pace::default(), seen: None, told: None }
    }

    fn show(&mut self, view: &BulkView) {
        let now = Instant::now();
        let passed = view.passed();
        if let Some((at, before)) = self.seen {
            self.pace.learn(passed.saturating_sub(before), now - at);
        }
        self.seen = Some((now, passed));
        if stderr().is_terminal() {
            self.draw(view);
        } else {
            self.tell(view);
        }
    }

    fn draw(&self, view: &BulkView) {
        let template = match view.total {
            Some(_) => "{prefix} [{bar:16}] {human_pos}/{human_len} {wide_msg}",
            None => "{prefix} {human_pos} {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        if let Some(total) = view.total {
            self.bar.set_length(total.rows.max(view.passed()));
        }
        self.bar.set_position(view.passed());
        let percent = words::percent(view);
        self.bar.set_message(joined(percent.into_iter().chain(self.message(view))));
    }

    fn tell(&mut self, view: &BulkView) {
        let step = view.share().map_or(0, |share| (share * 100.0) as u64 / PERCENT_A_LINE);
        let standing = standing(view);
        if self.told.as_ref() != Some(&(step, standing.clone())) {
            output::note(joined([words::progress(view)].into_iter().chain(self.message(view))));
            self.told = Some((step, standing));
        }
    }

    /// Returns the parts of the status message, the most important first, because the end of a line may be cut.
    fn message(&self, view: &BulkView) -> impl Iterator<Item = String> {
        let standing = Some(standing(view)).filter(|standing| !standing.is_empty());
        let rate = self.pace.rows_per_s().map(words::rate);
        [standing, rate, self.remaining(view)].into_iter().flatten()
    }

    fn remaining(&self, view: &BulkView) -> Option<String> {
        let left = view.total?.rows.saturating_sub(view.passed());
        let remaining = self.pace.remaining(left)?;
        let (soonest, latest) = (length(remaining.soonest), length(remaining.latest));
        Some(if soonest == latest { format!("{latest} left") } else { format!("{soonest} to {latest} left") })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns why the run makes no progress; empty if it is running.
fn standing(view: &BulkView) -> String {
    if let Some(verb) = view.stopping {
        return format!("asked to {verb}");
    }
    match &view.throttle {
        Some(throttle) => format!("held by {}", printable(throttle)),
        None if view.state == JobState::Running => String::new(),
        None => match words::turn(view, Timestamp::now()).as_str() {
            "" | "holds it" => view.state.to_string(),
            "next" => "next in its group".to_owned(),
            turn if view.next.is_some() => format!("{turn} in its group"),
            turn => format!("starts {turn}"),
        },
    }
}

//! `milepost batch watch`.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::BatchView;
use milepost_core::dag::state::BatchState;
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::port::BatchStore;

use super::find::WhichArgs;
use super::words;
use crate::output::{self, Outcome, printable};

/// How often the batch is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Where there is no terminal, a line is written for every so many percent.
const PERCENT_A_LINE: u64 = 10;

const EXAMPLES: &str = "\
It ends when the batch has ended, has failed or was aborted: when nothing happens
any more by itself. Exit status: 0 when it is done, else 1.

Examples:
  milepost batch watch 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost batch watch settlement --key 2026-11-01";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    which: WhichArgs,
}

pub(super) async fn run(args: &WatchArgs, store: &dyn BatchStore) -> Result<Outcome> {
    follow(args.which.id(store).await?, store).await
}

/// Follows a batch until nothing happens any more by itself.
pub(super) async fn follow(id: BatchId, store: &dyn BatchStore) -> Result<Outcome> {
    let mut row = look(id, store).await?;
    let mut screen = Screen::new(&row);
    while row.state == BatchState::Running {
        screen.show(&row);
        tokio::time::sleep(LOOK_EVERY).await;
        row = look(id, store).await?;
    }
    drop(screen);
    output::deed(format_args!("{id}  {}; {}", words::standing(&row), words::progress(&row.counts)))?;
    if row.state == BatchState::Done {
        return Ok(Outcome::Done);
    }
    output::note(format_args!("milepost batch show {id} says why, and what to do"));
    Ok(Outcome::SomeFailed)
}

async fn look(id: BatchId, store: &dyn BatchStore) -> Result<BatchView> {
    let detail = store.batch(id).await?;
    detail.map(|detail| detail.row).ok_or_else(|| StoreError::from(InvalidBatch::NoSuchBatch(id)).into())
}

/// A bar on a terminal, a line now and then elsewhere.
struct Screen {
    bar: ProgressBar,
    /// What was told last where there is no terminal: how far it was, and how many had failed.
    told: Option<(u64, u64, bool)>,
}

impl Screen {
    fn new(row: &BatchView) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) =
            ProgressStyle::with_template("{prefix} [{bar:16}] {human_pos}/{human_len} {wide_msg}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(printable(&row.dag).chars().take(16).collect::<String>());
        Self { bar, told: None }
    }

    fn show(&mut self, row: &BatchView) {
        let counts = &row.counts;
        let stopping = if row.stopped { "asked to stop, " } else { "" };
        let words = format!("{stopping}{}", words::counts(counts));
        if stderr().is_terminal() {
            self.bar.set_length(counts.total());
            self.bar.set_position(counts.ended());
            self.bar.set_message(format!("{} %, {words}", words::percent(counts)));
            return;
        }
        let now = (words::percent(counts) / PERCENT_A_LINE, counts.failed, row.stopped);
        if self.told != Some(now) {
            output::note(format_args!("{}: {words}", words::progress(counts)));
            self.told = Some(now);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

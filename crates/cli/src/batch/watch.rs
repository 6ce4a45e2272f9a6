//! `milepost batch watch`.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use milepost_cli_support::output::{self, Outcome, printable};
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::{BatchView, TaskFilter};
use milepost_core::dag::state::{BatchState, Counts, TaskState};
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::port::BatchStore;

use super::find::WhichArgs;
use super::words;

/// The polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Without a terminal, a line is printed each time this many more percent are done.
const PERCENT_A_LINE: u64 = 10;
/// The maximum number of inner batches whose progress is shown.
const INNER: usize = 2;
/// The number of active tasks in which inner batches are searched.
const ACTIVE: u32 = 20;

const EXAMPLES: &str = "\
The command ends when the batch has ended, has failed or was aborted, and
nothing more happens automatically. Exit status: 0 if it is done, else 1.

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

/// Follows a batch while it is running.
pub(super) async fn follow(id: BatchId, store: &dyn BatchStore) -> Result<Outcome> {
    let mut row = look(id, store).await?;
    let mut screen = Screen::new(&row);
    while row.state == BatchState::Running {
        screen.show(&row, &inner(id, store).await?);
        tokio::time::sleep(LOOK_EVERY).await;
        row = look(id, store).await?;
    }
    drop(screen);
    output::change(format_args!("{id}  {}; {}", words::standing(&row), words::progress(&row.counts)))?;
    if row.state == BatchState::Done {
        return Ok(Outcome::Done);
    }
    output::note(format_args!("`milepost batch show {id}` shows the cause and possible actions"));
    Ok(Outcome::SomeFailed)
}

/// Returns the active tasks that are inner batches, with their progress.
async fn inner(id: BatchId, store: &dyn BatchStore) -> Result<Vec<(String, Counts)>> {
    let active = TaskFilter { states: vec![TaskState::Active], limit: ACTIVE, ..TaskFilter::default() };
    let mut inner = Vec::new();
    for task in store.batch_tasks(id, &active).await? {
        if let Some(batch) = task.batch.filter(|_| inner.len() < INNER) {
            inner.push((task.key, look(batch, store).await?.counts));
        }
    }
    Ok(inner)
}

async fn look(id: BatchId, store: &dyn BatchStore) -> Result<BatchView> {
    let detail = store.batch(id).await?;
    detail.map(|detail| detail.row).ok_or_else(|| StoreError::from(InvalidBatch::NoSuchBatch(id)).into())
}

/// A progress bar on a terminal; occasional lines otherwise.
struct Screen {
    bar: ProgressBar,
    /// The last printed state, without a terminal: progress steps of the batch and of its inner batches, number of failures, and whether it
    /// was asked to stop.
    told: Option<(u64, Vec<u64>, u64, bool)>,
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

    fn show(&mut self, row: &BatchView, inner: &[(String, Counts)]) {
        let counts = &row.counts;
        let stopping = if row.stopped { "asked to stop, " } else { "" };
        let of = |(key, counts): &(String, Counts)| {
            format!("{} {}/{}, ", printable(key), words::count(counts.ended()), words::count(counts.total()))
        };
        let inner_words: String = inner.iter().map(of).collect();
        let words = format!("{stopping}{inner_words}{}", words::counts(counts));
        if stderr().is_terminal() {
            self.bar.set_length(counts.total());
            self.bar.set_position(counts.ended());
            self.bar.set_message(format!("{} %, {words}", words::percent(counts)));
            return;
        }
        let steps = |counts: &Counts| words::percent(counts) / PERCENT_A_LINE;
        let inner_steps = inner.iter().map(|(_, counts)| steps(counts)).collect();
        let now = Some((steps(counts), inner_steps, counts.failed, row.stopped));
        if self.told != now {
            output::note(format_args!("{}: {words}", words::progress(counts)));
            self.told = now;
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

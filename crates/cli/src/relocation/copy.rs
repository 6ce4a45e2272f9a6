//! Copying of the rows, part by part, with one transaction per page.

use std::time::Instant;

use anyhow::{Context, Error, Result};
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use milepost_core::error::StoreError;
use milepost_core::relocation::{MoveId, Page, Part, Position};

use super::stores::Ends;

/// The number of rows of a part that this run copied, the total, and the time it took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) part: Part,
    pub(super) rows: u64,
    pub(super) all: u64,
    pub(super) seconds: f64,
}

/// Copies everything that the target does not have yet.
pub(super) async fn carry(ends: &Ends, id: MoveId, page_rows: u32) -> Result<Vec<Carried>> {
    let counts = ends.source.count_parts().await.with_context(|| ends.of_source())?;
    let arrived = ends.target.arrived(id).await.with_context(|| ends.of_target())?;
    let bar = bar(counts.iter().map(|(_, rows)| rows).sum());
    bar.set_position(arrived.iter().map(|part| part.rows).sum());
    let mut carried = Vec::new();
    for progress in Part::ALL.iter().filter_map(|part| arrived.iter().find(|known| known.part == *part)) {
        let part = progress.part;
        let began = Instant::now();
        let porter = Porter { ends, id, part, page_rows, bar: &bar };
        let rows = if progress.done { 0 } else { porter.carry(&progress.position).await? };
        let all = counts.iter().find(|(known, _)| *known == part).map_or(0, |(_, rows)| *rows);
        carried.push(Carried { part, rows, all, seconds: began.elapsed().as_secs_f64() });
    }
    bar.finish_and_clear();
    Ok(carried)
}

/// Returns a progress bar, which is shown only on a terminal.
fn bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = "{prefix:>8} [{bar:30}] {human_pos}/{human_len} rows, {msg}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix("move");
    bar
}

/// Copies one part.
struct Porter<'a> {
    ends: &'a Ends,
    id: MoveId,
    part: Part,
    page_rows: u32,
    bar: &'a ProgressBar,
}

impl Porter<'_> {
    /// Copies all rows after a position and returns their number. The next page is read while one is written.
    async fn carry(&self, after: &Position) -> Result<u64> {
        let began = Instant::now();
        let mut carried = 0;
        let mut next = Some(self.read(after, self.page_rows).await?);
        while let Some(page) = next {
            let (brought, ahead) =
                tokio::join!(self.ends.target.bring(self.id, &page), self.read_beyond(&page));
            match brought {
                Err(error @ StoreError::Refused { .. }) => return Err(self.point_out(page, error).await),
                brought => brought.with_context(|| self.ends.of_target())?,
            }
            let rows = page.rows.len() as u64;
            carried += rows;
            self.bar.inc(rows);
            let rate = HumanCount(per_s(carried, began.elapsed().as_secs_f64()));
            self.bar.set_message(format!("{} {rate}/s", self.part));
            next = ahead?;
        }
        Ok(carried)
    }

    async fn read_beyond(&self, page: &Page) -> Result<Option<Page>> {
        if page.is_last {
            return Ok(None);
        }
        self.read(&page.reached, self.page_rows).await.map(Some)
    }

    async fn read(&self, after: &Position, rows_max: u32) -> Result<Page> {
        let page = self.ends.source.page(self.id, self.part, after, rows_max).await;
        page.with_context(|| self.ends.of_source())
    }

    /// Finds the row that made the target reject a page, by halving the page until one row is left; adds it to the error.
    async fn point_out(&self, mut page: Page, mut error: StoreError) -> Error {
        while page.rows.len() > 1 {
            let rows = u32::try_from(page.rows.len()).unwrap_or(u32::MAX);
            let half = match self.read(&page.after, rows / 2).await {
                Ok(half) => half,
                Err(error) => return error,
            };
            match self.ends.target.bring(self.id, &half).await {
                Ok(()) => match self.read(&half.reached, rows - rows / 2).await {
                    Ok(rest) => page = rest,
                    Err(error) => return error,
                },
                Err(again) => (page, error) = (half, again),
            }
        }
        let place = serde_json::to_string(&page.reached).unwrap_or_default();
        Error::new(error).context(format!("{} refuses the row {place} of table {}", self.ends.to, self.part))
    }
}

/// Returns a rate per second.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "for people"
)]
pub(super) fn per_s(count: u64, seconds: f64) -> u64 {
    (count as f64 / seconds.max(0.001)) as u64
}

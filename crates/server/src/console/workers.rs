//! `/workers`: active and stopped workers, and running jobs.

use askama::Template;
use milepost_core::listing::JobRow;
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::worker::WorkerView;

use super::format::{between, count, length};
use super::page::{Drawn, Page, draw};
use crate::app::App;

/// Maximum number of running jobs that are read, and that are displayed.
const LOOKED: u32 = 1_000;
const RUNNING: usize = 50;
/// Maximum number of displayed stopped workers.
const ENDED: usize = 30;
/// Maximum number of displayed names of kinds or queues.
const NAMES: usize = 6;

#[derive(Template)]
#[template(path = "workers.html")]
struct Workers {
    page: Page,
    alive: Vec<WorkerView>,
    ended: Vec<WorkerView>,
    running: Vec<JobRow>,
    /// The heading of the running jobs.
    shown: String,
}

pub(super) async fn list(app: App, page: Page) -> Drawn {
    let running = JobFilter { state: Some(JobState::Running), limit: LOOKED, ..JobFilter::default() };
    let (workers, mut running) = tokio::try_join!(app.store.workers(), app.store.jobs(&running))?;
    let (mut alive, mut ended): (Vec<WorkerView>, Vec<WorkerView>) =
        workers.into_iter().partition(WorkerView::is_active);
    alive.sort_by_key(|worker| std::cmp::Reverse(worker.running));
    ended.sort_by_key(|worker| std::cmp::Reverse(worker.ended_at));
    ended.truncate(ENDED);
    // Longest running jobs first: operators usually search for those.
    running.sort_by_key(|job| job.started_at);
    let shown = match running.len() {
        0..=RUNNING => "Running jobs, longest first".to_owned(),
        number if number < LOOKED as usize => {
            format!("The {RUNNING} longest-running jobs of {}", count(number))
        }
        _ => format!("The {RUNNING} longest-running jobs of the newest {}", count(LOOKED)),
    };
    running.truncate(RUNNING);
    Ok(draw(&Workers { page, alive, ended, running, shown }))
}

impl Workers {
    fn some(&self, names: &[String]) -> String {
        let shown = names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
        match names.len().saturating_sub(NAMES) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }

    fn lasts(&self, job: &JobRow) -> String {
        job.started_at.map_or_else(String::new, |at| length(between(at, self.page.now)))
    }
}

//! `/kinds` and `/kinds/{name}`: kinds with their jobs and workers; one of them with charts, limit and last errors.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use askama::Template;
use jiff::Timestamp;
use milepost_core::error::StoreError;
use milepost_core::job::QUEUE_DEFAULT;
use milepost_core::limit::{Limit, LimitView, Target};
use milepost_core::listing::{JobRow, LastFailure, QueueKinds};
use milepost_core::port::Store;
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::worker::WorkerView;

use super::charts::Charts;
use super::form::Action;
use super::format::{count, cut};
use super::page::{Drawn, Page, draw};
use super::state_bar::StateBar;
use super::{bulks, limits, start};
use crate::app::App;
use crate::params::{Path, encoded};

/// Number of listed jobs whose last attempt failed.
const FAILED: u32 = 10;
/// Maximum length of a listed error, in characters.
const ERROR_CHARS: usize = 300;

/// The numbers of a kind.
#[derive(Default)]
struct Numbers {
    jobs: BTreeMap<JobState, i64>,
    /// Number of active workers with a handler.
    workers: usize,
    /// Number of jobs that are due in queues of which no active worker has a handler.
    unserved: i64,
    limit: Option<String>,
}

impl Numbers {
    fn by_state(&self) -> Vec<(JobState, i64)> {
        self.jobs.iter().map(|(state, jobs)| (*state, *jobs)).collect()
    }

    fn total(&self) -> i64 {
        self.jobs.values().sum()
    }
}

/// Returns all kinds that have a handler, unfinished jobs or a limit.
fn all(queues: &[QueueKinds], workers: &[WorkerView], limits: &[LimitView]) -> BTreeMap<String, Numbers> {
    let mut kinds: BTreeMap<String, Numbers> = BTreeMap::new();
    for worker in alive(workers) {
        worker.kinds.iter().for_each(|kind| kinds.entry(kind.clone()).or_default().workers += 1);
    }
    for queue in queues {
        for counted in &queue.counts {
            let Some(kind) = &counted.kind else { continue };
            let numbers = kinds.entry(kind.clone()).or_default();
            *numbers.jobs.entry(counted.state).or_default() += counted.jobs;
            if counted.state.is_waiting() && !alive(workers).any(|worker| worker.serves(&queue.name, kind)) {
                numbers.unserved += counted.due;
            }
        }
    }
    for LimitView { limit, .. } in limits {
        if let Target::Kind(kind) = &limit.target {
            kinds.entry(kind.clone()).or_default().limit = in_words(limit);
        }
    }
    kinds
}

fn alive(workers: &[WorkerView]) -> impl Iterator<Item = &WorkerView> {
    workers.iter().filter(|worker| worker.is_active())
}

fn in_words(limit: &Limit) -> Option<String> {
    limit.rate.map(|rate| format!("at most {rate}"))
}

#[derive(Template)]
#[template(path = "kinds.html")]
struct Kinds {
    page: Page,
    counted: bool,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    encoded: String,
    is_bulk: bool,
    counts: Vec<(&'static str, String)>,
    stack: StateBar,
    workers: usize,
    unserved: Option<String>,
    limit: Option<String>,
}

pub(super) async fn list(app: App, page: Page) -> Drawn {
    let (queues, limits, workers, definitions) = tokio::join!(
        app.known.queues(&app.store),
        app.known.limits(&app.store),
        app.store.workers(),
        app.store.bulk_definitions()
    );
    let (queues, limits, workers, definitions) = (queues?, limits?, workers?, definitions?);
    let counted = queues.is_some();
    let kinds = all(&queues.unwrap_or_default(), &workers, &limits.unwrap_or_default());
    let longest = kinds.values().map(Numbers::total).max().unwrap_or_default();
    let rows = kinds.into_iter().map(|(name, numbers)| {
        let counts = numbers.by_state();
        Row {
            encoded: encoded(&name),
            is_bulk: definitions.iter().any(|definition| definition.name == name),
            stack: StateBar::of_jobs(&counts, longest),
            counts: counts.iter().map(|(state, jobs)| (state.as_str(), count(*jobs))).collect(),
            workers: numbers.workers,
            unserved: (numbers.unserved > 0).then(|| count(numbers.unserved)),
            limit: numbers.limit,
            name,
        }
    });
    let rows = rows.collect();
    Ok(draw(&Kinds { rows, counted, page }))
}

#[derive(Template)]
#[template(path = "kind.html")]
struct Kind {
    page: Page,
    name: String,
    encoded: String,
    actions: Vec<Action>,
    /// The page of the bulk job with this name.
    bulk: Option<String>,
    charts: Option<Charts>,
    counted: bool,
    counts: Vec<(&'static str, String)>,
    unserved: Option<String>,
    limit: Option<String>,
    workers: Vec<WorkerView>,
    failed: Vec<Failed>,
}

/// A job that has failed, or waits for a retry.
struct Failed {
    row: JobRow,
    error: String,
    at: Option<Timestamp>,
}

impl Failed {
    fn of(row: JobRow, failures: &[LastFailure]) -> Self {
        let failure = failures.iter().find(|failure| failure.job == row.id);
        let at = failure.map(|failure| failure.at);
        let words = failure.into_iter().flat_map(|it| [it.code.as_deref(), it.message.as_deref()]);
        let words: Vec<&str> = words.flatten().collect();
        Self { row, at, error: cut(&words.join(": "), ERROR_CHARS) }
    }
}

pub(super) async fn show(app: App, Path(name): Path<String>, page: Page) -> Drawn {
    let (queues, limits, workers, definition, failed) = tokio::join!(
        app.known.queues(&app.store),
        app.known.limits(&app.store),
        app.store.workers(),
        app.store.bulk_definition(&name),
        last_failed(&name, app.store.as_ref())
    );
    let (queues, limits, workers, failed) = (queues?, limits?, workers?, failed?);
    let counted = queues.is_some();
    let of_kind = |view: &&LimitView| matches!(&view.limit.target, Target::Kind(kind) if *kind == name);
    let limit = limits.iter().flatten().find(of_kind);
    let bulk = definition?.map(|definition| bulks::url(&definition.name));
    let create = start::job_form(&page, &name, QUEUE_DEFAULT).filter(|_| bulk.is_none());
    let slow = limits::slow_down(&name, limits.as_deref(), &page);
    let edit = limit.and_then(|view| limits::edit(view, &page));
    let lift = limit.and_then(|view| limits::lift(view, &page));
    let actions = create.into_iter().chain(slow).chain(edit).chain(lift).collect();
    let numbers = all(&queues.unwrap_or_default(), &workers, limits.as_deref().unwrap_or_default())
        .remove(&name)
        .unwrap_or_default();
    Ok(draw(&Kind {
        actions,
        bulk,
        charts: Charts::of("", &name),
        counted,
        counts: numbers.by_state().iter().map(|(state, jobs)| (state.as_str(), count(*jobs))).collect(),
        unserved: (numbers.unserved > 0).then(|| count(numbers.unserved)),
        limit: numbers.limit,
        workers: alive(&workers).filter(|worker| worker.kinds.contains(&name)).cloned().collect(),
        failed,
        encoded: encoded(&name),
        name,
        page,
    }))
}

/// Returns the jobs of a kind whose last attempt failed, the latest failures first.
async fn last_failed(kind: &str, store: &dyn Store) -> Result<Vec<Failed>, StoreError> {
    let of = |state| JobFilter {
        kind: Some(kind.to_owned()),
        state: Some(state),
        limit: FAILED,
        ..JobFilter::default()
    };
    let mut jobs = store.jobs(&of(JobState::Failed)).await?;
    jobs.extend(store.jobs(&of(JobState::RetryWait)).await?);
    let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
    let failures = if ids.is_empty() { Vec::new() } else { store.last_failures(&ids).await? };
    let mut failed: Vec<Failed> = jobs.into_iter().map(|row| Failed::of(row, &failures)).collect();
    failed.sort_by_key(|job| Reverse(job.at));
    failed.truncate(FAILED as usize);
    Ok(failed)
}

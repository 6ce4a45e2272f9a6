//! `/`: the overview page, with alerts, key figures, queues and subscriptions.

use std::time::Duration;

use askama::Template;
use milepost_core::event::relay_listing::SubscriptionView;
use milepost_core::listing::QueueKinds;
use milepost_core::state::JobState;

use super::alert::Alert;
use super::alert_facts::Facts;
use super::charts::Charts;
use super::format::{between, count, length};
use super::in_progress::InProgress;
use super::page::{Drawn, Page, draw};
use super::series::Minute;
use super::state_bar::StateBar;
use super::{queues, silence};
use crate::app::App;
use crate::params;

/// Maximum number of displayed queues.
const QUEUES: usize = 8;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    page: Page,
    alerts: Vec<Alert>,
    /// Whether the store is unused.
    is_new: bool,
    /// Whether all counts are available; whether those of queues and of subscriptions are.
    counted: bool,
    knows_queues: bool,
    knows_relay: bool,
    in_progress: InProgress,
    tiles: Vec<Tile>,
    charts: Charts,
    queues: Vec<Backlog>,
    relay: Vec<Lag>,
}

/// A key figure.
struct Tile {
    number: String,
    what: &'static str,
    url: &'static str,
    class: &'static str,
}

struct Backlog {
    name: String,
    paused: bool,
    waiting: String,
    running: String,
    failed: String,
    stack: StateBar,
}

struct Lag {
    name: String,
    backlog: String,
    age: String,
    state: &'static str,
}

pub(super) async fn show(app: App, page: Page) -> Drawn {
    let (facts, queues, subscriptions, consumers, limits) = tokio::join!(
        Facts::read(app.store.as_ref()),
        app.known.queues(&app.store),
        app.known.subscriptions(&app.store),
        app.known.consumers(&app.store),
        app.known.limits(&app.store)
    );
    let (queues, subscriptions, consumers, limits) = (queues?, subscriptions?, consumers?, limits?);
    let pauses = queues::pauses(queues.as_deref().unwrap_or_default(), &page, &app).await?;
    let facts = Facts { pauses, queues, subscriptions, consumers, limits, ..facts? };
    let mut queues: Vec<&QueueKinds> = facts.queues.iter().flatten().collect();
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.jobs()));
    let longest = queues.first().map_or(0, |queue| queue.jobs());
    let mut alerts = facts.alerts(&page);
    silence::add(&mut alerts, &page, app.store.as_ref()).await;
    let minute = app.limited.is_none().then(|| app.series.last_minute(page.now));
    let overview = Overview {
        is_new: alerts.is_empty() && facts.are_empty(),
        alerts,
        counted: facts.are_counted(),
        knows_queues: facts.queues.is_some(),
        knows_relay: facts.subscriptions.is_some(),
        in_progress: InProgress::of(&facts, &app.paces, &page),
        charts: Charts::of_all(),
        tiles: tiles(&facts, minute.as_ref()),
        queues: queues.into_iter().take(QUEUES).map(|queue| backlog(queue, longest)).collect(),
        relay: facts.subscriptions.iter().flatten().map(|of| lag(of, &page)).collect(),
        page,
    };
    Ok(draw(&overview))
}

fn number(queue: &QueueKinds, state: JobState) -> i64 {
    queue.counts.iter().filter(|count| count.state == state).map(|count| count.jobs).sum()
}

/// Returns the key figures. `minute`: the activity of the last minute; `None` if it is not known for the objects of the caller.
fn tiles(facts: &Facts, minute: Option<&Minute>) -> Vec<Tile> {
    let sum = |state| facts.queues.iter().flatten().map(|queue| number(queue, state)).sum::<i64>();
    let known = |number: i64| if facts.queues.is_some() { count(number) } else { "…".to_owned() };
    let (pending, running) = (sum(JobState::Pending), sum(JobState::Running));
    let (failed, retrying) = (sum(JobState::Failed), sum(JobState::RetryWait));
    let alive = facts.alive().filter(|worker| worker.runs_jobs()).count() as u64;
    let mut tiles = vec![
        tile(known(failed), "failed jobs", "/jobs?state=failed", class(failed > 0, "bad")),
        tile(known(retrying), "waiting for a retry", "/jobs?state=retry_wait", class(retrying > 0, "warn")),
        tile(known(pending), "waiting for a worker", "/jobs?state=pending", ""),
        tile(known(running), "running jobs", "/jobs?state=running", class(running > 0, "busy")),
    ];
    tiles.extend(minute.into_iter().flat_map(tiles_of_minute));
    let words = if alive == 1 { "active worker" } else { "active workers" };
    tiles.push(tile(count(alive), words, "/workers", class(alive == 0, "warn")));
    tiles
}

fn tiles_of_minute(minute: &Minute) -> [Tile; 4] {
    let p99 = minute.wait_p99_ms.map_or_else(|| "–".to_owned(), |ms| length(Duration::from_millis(ms)));
    [
        tile(count(minute.started), "started in the last minute", "/jobs", ""),
        tile(count(minute.succeeded), "succeeded in the last minute", "/jobs?state=succeeded", ""),
        tile(
            count(minute.failed),
            "attempts failed in the last minute",
            "/jobs?state=retry_wait",
            class(minute.failed > 0, "warn"),
        ),
        tile(p99, "queue latency (p99)", "/queues", ""),
    ]
}

fn tile(number: String, what: &'static str, url: &'static str, class: &'static str) -> Tile {
    Tile { number, what, url, class }
}

const fn class(wrong: bool, class: &'static str) -> &'static str {
    if wrong { class } else { "" }
}

fn backlog(queue: &QueueKinds, longest: i64) -> Backlog {
    Backlog {
        name: queue.name.clone(),
        paused: queue.paused_at.is_some(),
        waiting: count(queue.waiting()),
        running: count(number(queue, JobState::Running)),
        failed: count(number(queue, JobState::Failed)),
        stack: StateBar::of_jobs(&queue.by_state(), longest),
    }
}

fn lag(of: &SubscriptionView, page: &Page) -> Lag {
    Lag {
        name: of.name.clone(),
        backlog: count(of.backlog),
        age: of.oldest_at.map_or_else(|| "–".to_owned(), |at| length(between(at, page.now))),
        state: of.state(),
    }
}

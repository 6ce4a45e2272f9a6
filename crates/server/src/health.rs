//! Whether the server lives, and whether it can serve.

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use tokio::sync::Mutex;

use crate::app::App;
use crate::patience::in_time;
use crate::problem::Problem;

/// How long an answer of the store holds. Anybody may ask, as often as they like.
const HOLDS: Duration = Duration::from_secs(1);

/// What the store last answered.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Result<(), Problem>)>>);

/// The process answers. Says nothing of the store: a supervisor that restarts for that makes things worse.
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// The store answers too: what every request needs first, whose connections are its own, so that long lists do not make it unready.
pub(crate) async fn ready(State(app): State<App>) -> Result<&'static str, Problem> {
    if app.stop.is_cancelled() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", "the server shuts down"));
    }
    // One asks, the others wait for what it hears.
    let mut last = app.readiness.0.lock().await;
    let fresh = last.as_ref().filter(|(at, _)| at.elapsed() < HOLDS);
    let answer = match fresh {
        Some((_, answer)) => answer.clone(),
        None => {
            let answer = in_time(app.store.has_tokens()).await.map(drop).map_err(Problem::from);
            *last = Some((Instant::now(), answer.clone()));
            answer
        }
    };
    answer.map(|()| "ok\n")
}

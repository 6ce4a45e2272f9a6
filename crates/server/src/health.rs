//! Liveness and readiness checks.

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use tokio::sync::Mutex;

use crate::app::App;
use crate::patience::in_time;
use crate::problem::Problem;

/// How long a result of the readiness check is reused. Any client may call it, as often as it wants.
const HOLDS: Duration = Duration::from_secs(1);

/// The last result of the readiness check, and its time.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Result<(), Problem>)>>);

/// Reports that the process responds. Does not check the store: a supervisor that restarted the process for that would make
/// things worse.
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// Reports whether the store responds too. Runs the query that every request needs first. It uses dedicated connections, so that
/// long-running list queries do not make the server unready.
pub(crate) async fn ready(State(app): State<App>) -> Result<&'static str, Problem> {
    if app.stop.is_cancelled() {
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "shutting_down",
            "the server is shutting down",
        ));
    }
    // One request asks the store; the others wait for its result.
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

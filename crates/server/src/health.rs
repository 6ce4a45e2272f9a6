//! Whether the server lives, and whether it can serve.

use axum::extract::State;
use axum::http::StatusCode;

use crate::app::App;
use crate::problem::Problem;

/// The process answers. Says nothing of the store: a supervisor that restarts for that makes things worse.
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// The store answers too.
pub(crate) async fn ready(State(app): State<App>) -> Result<&'static str, Problem> {
    if app.stop.is_cancelled() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", "the server shuts down"));
    }
    app.store.workers().await?;
    Ok("ok\n")
}

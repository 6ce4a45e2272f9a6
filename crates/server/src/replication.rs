//! Answers to changes that can depend on a commit that no synchronous standby has, such as refusals: they are given when one has it.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::console;
use crate::problem::Problem;

/// Frequent requests, whose answers wait in the store: those of workers, and these.
const WAIT_IN_STORE: [&str; 4] = ["/v1/jobs", "/v1/jobs/create-many", "/v1/events", "/v1/batches"];

pub(crate) async fn when_replicated(State(app): State<App>, request: Request, next: Next) -> Response {
    let changes = !request.method().is_safe();
    let waits_in_store = waits_in_store(request.uri().path());
    let response = next.run(request).await;
    let is_done = response.status().is_success() || response.status().is_redirection();
    if !changes || !(is_refusal(&response) || is_done && !waits_in_store) {
        return response;
    }
    match app.store.confirm_seen().await {
        Ok(()) => response,
        Err(error) => Problem::from(error).into_response(),
    }
}

/// Returns whether a successful answer has waited already. Signing in and out tells nothing of the store.
fn waits_in_store(path: &str) -> bool {
    WAIT_IN_STORE.contains(&path) || path.starts_with("/v1/workers") || path.starts_with("/sign-")
}

/// Returns whether the state of something can be the reason, and not only the request.
fn is_refusal(response: &Response) -> bool {
    response.status() == StatusCode::CONFLICT || console::is_refused_form(response)
}

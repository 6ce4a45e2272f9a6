//! Refusals of changes. They can depend on a commit that no synchronous standby has, and are answered when one has it.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::console;
use crate::problem::Problem;

pub(crate) async fn when_replicated(State(app): State<App>, request: Request, next: Next) -> Response {
    let changes = !request.method().is_safe();
    let response = next.run(request).await;
    if !changes || !is_refusal(&response) {
        return response;
    }
    match app.store.confirm_seen().await {
        Ok(()) => response,
        Err(error) => Problem::from(error).into_response(),
    }
}

/// Returns whether the state of something can be the reason, and not only the request.
fn is_refusal(response: &Response) -> bool {
    response.status() == StatusCode::CONFLICT || console::is_refused_form(response)
}

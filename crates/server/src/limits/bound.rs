//! The middleware that applies the limits.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::bodies::{self, Full};
use super::too_many;
use crate::app::App;
use crate::client::Caller;
use crate::problem::{Code, Problem};

/// Refuses requests beyond the limits, and aborts those that exceed the time limit.
pub(crate) async fn bound(State(app): State<App>, request: Request, next: Next) -> Response {
    let caller = Caller::of(request.extensions());
    let is_neighbour = matches!(caller, Caller::Address(client) if client.is_here());
    let counted = &app.limits;
    if let Some(rates) = counted.rates.as_ref().filter(|_| !is_neighbour)
        && let Err(wait) = rates.take(caller.clone())
    {
        return too_many(wait).into_response();
    }
    // Only responses to reads are refused: a change has been made when its response is known, and a worker that does not learn which jobs it has
    // claimed would keep them without running them.
    let is_read = request.method() == Method::GET && !request.uri().path().starts_with("/v1/workers/");
    let budget = (!is_neighbour).then(|| caller.clone());
    let held = counted.bodies.begin(budget.clone());
    let reader = budget.clone().filter(|_| is_read);
    let Some(_place) = counted.in_flight.enter(caller) else {
        let words = "too many requests of this client are in flight; wait until some have ended";
        return Problem::new(Code::TooManyInFlight, words).retry_after_s(1).into_response();
    };
    let request = request.map(|body| Body::new(bodies::Counted { body, held: Arc::clone(&held) }));
    let answer = async {
        // The turn ends when the response begins, so that streams do not keep it.
        let _turn = match reader {
            Some(reader) => counted.reads.turn(reader).await,
            None => None,
        };
        next.run(request).await
    };
    let answered = tokio::time::timeout(counted.request_time, answer).await;
    if let Some(full) = held.refused() {
        return too_many_bytes(full).into_response();
    }
    match answered {
        Ok(response) if !is_read => response,
        Ok(response) => match counted.bodies.begin(budget).sending(response) {
            Ok(response) => response,
            Err(full) => too_many_bytes(full).into_response(),
        },
        Err(_) => {
            let words = "the request exceeded its time limit; it is unknown whether it was executed";
            Problem::new(Code::RequestTimeout, words).into_response()
        }
    }
}

fn too_many_bytes(full: Full) -> Problem {
    let (status, words) = match full {
        Full::Client => (
            StatusCode::TOO_MANY_REQUESTS,
            "the bodies of this client's requests and responses are too large in total; wait until some have ended, or ask for \
             fewer rows",
        ),
        Full::Server => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the server's limit on the total size of bodies is reached; retry after the time in Retry-After, or ask for fewer rows",
        ),
    };
    Problem::new(Code::TooManyBytes, words).with_status(status).retry_after_s(1)
}

//! The middleware that applies the limits.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::bodies::{self, Full};
use super::too_many;
use crate::app::App;
use crate::client::Caller;
use crate::health::is_probe;
use crate::problem::{Code, Problem};

/// Refuses requests beyond the limits, and aborts those that exceed the time limit.
pub(crate) async fn bound(State(app): State<App>, request: Request, next: Next) -> Response {
    let counted = &app.limits;
    // Whoever asks from the same address, such as all clients of a proxy, must not make a supervisor restart the server.
    if is_probe(request.uri().path()) {
        return within(counted.request_time, next.run(request)).await;
    }
    let caller = Caller::of(request.extensions());
    let is_neighbour = matches!(caller, Caller::Address(client) if client.is_here());
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
    let answer = async {
        let response = answer.await;
        if !is_read || held.refused().is_some() {
            return response;
        }
        let sent = counted.bodies.begin(budget).sending(response);
        sent.unwrap_or_else(|full| too_many_bytes(full).into_response())
    };
    let response = within(counted.request_time, answer).await;
    held.refused().map_or(response, |full| too_many_bytes(full).into_response())
}

/// Returns a response, or an error if it takes too long.
async fn within(time: Duration, answer: impl Future<Output = Response>) -> Response {
    tokio::time::timeout(time, answer).await.unwrap_or_else(|_| {
        let words = "the request exceeded its time limit; it is unknown whether it was executed";
        Problem::new(Code::RequestTimeout, words).into_response()
    })
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

//! How much a client may ask for at once, and in a time.

mod bodies;
pub(crate) mod in_flight;
mod rate;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use milepost_core::limit::Rate;

use self::bodies::{Bodies, Full};
use self::in_flight::InFlight;
use self::rate::Rates;
use crate::app::App;
use crate::client::{Caller, Client};
use crate::problem::Problem;

/// How many unknown tokens an address may show in a second, and how many at once: each costs the store a question.
const STRANGERS: Rate = Rate::new(50.0, 200);

/// What a server takes on.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How large the body of a request may be, in bytes.
    pub body_bytes: usize,
    /// How many bytes of bodies the requests of a client may hold together: one token, or one address where none is shown. Programs of this
    /// machine that are not asked for a token may hold as many as the server.
    pub body_bytes_of_client: usize,
    /// How many bytes of bodies all requests may hold together.
    pub body_bytes_of_all: usize,
    /// How many bytes the headers of a request may have together.
    pub header_bytes: usize,
    /// How many requests a client may make in a time: one token, or one address where none is shown. Programs of this machine that are
    /// not asked for a token may make any number. `None`: so may all.
    pub rate: Option<Rate>,
    /// How many requests of a client may be under way at once.
    pub in_flight: usize,
    /// How many connections there may be at once; of more, one request each waits until one ends, and probes are answered at once. Of one address
    /// other than this machine's half of them; what goes beyond is closed.
    pub connections: usize,
    /// How long the headers of a request may take to come, from the answer before or the beginning of the connection.
    pub header_time: Duration,
    /// How long a request may take until its answer begins. Longer than the longest wait of a claim.
    pub request_time: Duration,
    /// How long a client may take nothing of what it is sent.
    pub write_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Several thousand jobs with small payloads, a few with the largest.
            body_bytes: 16 * 1024 * 1024,
            body_bytes_of_client: 64 * 1024 * 1024,
            body_bytes_of_all: 256 * 1024 * 1024,
            header_bytes: 32 * 1024,
            rate: Some(Rate::new(5_000.0, 10_000)),
            in_flight: 1_000,
            connections: 1_000,
            header_time: Duration::from_secs(60),
            request_time: Duration::from_secs(90),
            write_time: Duration::from_secs(60),
        }
    }
}

/// What clients have asked for lately.
pub(crate) struct Counted {
    rates: Option<Rates<Caller>>,
    strangers: Rates<Client>,
    in_flight: Arc<InFlight<Caller>>,
    bodies: Arc<Bodies<Caller>>,
    request_time: Duration,
}

impl Counted {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            rates: limits.rate.map(Rates::new),
            strangers: Rates::new(STRANGERS),
            in_flight: InFlight::new(limits.in_flight),
            bodies: Bodies::new(limits.body_bytes_of_client, limits.body_bytes_of_all),
            request_time: limits.request_time,
        }
    }

    /// Counts a request that is refused for want of a token that counts: it comes no further, where others are counted.
    pub(crate) fn check_refused(&self, client: Client) -> Result<(), Problem> {
        match self.rates.as_ref().filter(|_| !client.is_here()) {
            Some(rates) => rates.take(Caller::Address(client)).map_err(too_many),
            None => Ok(()),
        }
    }

    /// Refuses a client that shows too many tokens that nobody knows.
    pub(crate) fn check_stranger(&self, client: Client) -> Result<(), Problem> {
        self.strangers.take(client).map_err(too_many)
    }
}

/// Lets requests pass that are not too many, and gives up those that take too long.
pub(crate) async fn bound(State(app): State<App>, request: Request, next: Next) -> Response {
    let caller = Caller::of(request.extensions());
    let is_neighbour = matches!(caller, Caller::Address(client) if client.is_here());
    let counted = &app.limits;
    if let Some(rates) = counted.rates.as_ref().filter(|_| !is_neighbour)
        && let Err(wait) = rates.take(caller.clone())
    {
        return too_many(wait).into_response();
    }
    let held = counted.bodies.begin((!is_neighbour).then(|| caller.clone()));
    let Some(_place) = counted.in_flight.enter(caller) else {
        let words = "too many requests of this client are under way; wait for some of them";
        return Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_in_flight", words)
            .retry_after_s(1)
            .into_response();
    };
    let request = request.map(|body| Body::new(bodies::Counted { body, held: Arc::clone(&held) }));
    let answered = tokio::time::timeout(counted.request_time, next.run(request)).await;
    if let Some(full) = held.refused() {
        return too_many_bytes(full).into_response();
    }
    match answered {
        Ok(response) => response,
        Err(_) => {
            let words = "the request took too long; whether it was done is not known";
            Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", words).into_response()
        }
    }
}

fn too_many_bytes(full: Full) -> Problem {
    let (status, words) = match full {
        Full::Client => (
            StatusCode::TOO_MANY_REQUESTS,
            "the bodies of this client's requests are too large together; wait for some of them",
        ),
        Full::Server => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the server holds as many bytes of bodies as it may; ask again after the time in Retry-After",
        ),
    };
    Problem::new(status, "too_many_bytes", words).retry_after_s(1)
}

fn too_many(wait: Duration) -> Problem {
    let words = "this client asks too often; ask again after the time in Retry-After";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", words).retry_after_s(wait.as_secs() + 1)
}

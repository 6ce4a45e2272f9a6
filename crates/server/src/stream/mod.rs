//! `/v1/stream`: what happens to jobs and batches, as server-sent events.
//!
//! One task of this process looks at the store for all who watch; each window that it finds is written once for all who want the same. Who
//! comes back says where it was and gets what it missed from the store, up to where the windows go on.

mod feed;
mod filter;
mod seats;
mod watcher;
mod window;

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use milepost_core::error::StoreError;
use milepost_core::feed::{FeedPosition, InvalidFeed};
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::feed::Feed;
pub(crate) use self::filter::ChangeType;
use self::filter::Filter;
pub(crate) use self::seats::Seats;
pub use self::seats::StreamLimits;
use self::watcher::Watcher;
use crate::access::{Identity, Lasting};
use crate::app::App;
use crate::client::Caller;
use crate::params::Query;
use crate::problem::Problem;

/// How many pieces wait for a watcher that is slower than what happens; one of them is why its stream ends.
const PIECES_MAX: usize = 8;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(watch))
}

/// Watch what happens
///
/// State changes of jobs (`event: job`) and batches (`event: batch`), as server-sent events. An id names a place between two changes: a
/// stream that is opened with `Last-Event-ID` goes on there, and nothing is missing or comes twice. `event: reset`: it cannot go on there, `data`
/// says why; look at what there is, the stream goes on with what happens now. `event: dropped`: the stream ends, `data` says why: the reader was too slow, or the token or session does not count any more. A line comes every 15 seconds.
#[utoipa::path(
    get, path = "/v1/stream", tag = "stream", params(Filter, ("Last-Event-ID" = Option<String>, Header, description = "Where to go on")),
    responses((status = 200, description = "Events without end", content_type = "text/event-stream", body = String)),
    security(("token" = ["viewer"]))
)]
async fn watch(
    State(app): State<App>,
    caller: Caller,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    Query(filter): Query<Filter>,
) -> Result<Response, Problem> {
    let from = place(&headers, &filter)?;
    let seat = app.seats.take(caller)?;
    let (upto, windows) = app.feed.watch().await.ok_or_else(not_yet)?;
    if let Some(from) = &from {
        check(&app, from).await?;
    }
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    let at = from.unwrap_or_else(|| upto.clone());
    let (store, stop) = (Arc::clone(&app.store), app.stop.clone());
    let watcher = Watcher { store, filter: filter.anywhere(), at, windows, stop, seat };
    tokio::spawn(watcher.run(upto, Lasting::of(app, &identity), sender));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // Proxies that gather what they pass on would keep it from the watcher.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, body(receiver)).into_response())
}

fn body(receiver: mpsc::Receiver<Bytes>) -> Body {
    Body::from_stream(stream::unfold(receiver, async |mut receiver| {
        let piece = receiver.recv().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(piece), receiver))
    }))
}

/// Where the watcher was.
fn place(headers: &HeaderMap, filter: &Filter) -> Result<Option<FeedPosition>, Problem> {
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("\u{0}"));
    let (at, text) = match (header, filter.last_event_id.as_deref()) {
        (Some(text), _) => ("header Last-Event-ID", text),
        (None, Some(text)) => ("query last_event_id", text),
        (None, None) => return Ok(None),
    };
    let position: Result<FeedPosition, InvalidFeed> = text.parse();
    position.map(Some).map_err(|invalid| bad_position(&invalid).at(at))
}

fn bad_position(invalid: &InvalidFeed) -> Problem {
    Problem::bad_request("invalid_position", invalid.to_string())
}

/// Whether a position can be one at all; whether it can be gone on from is told in the stream.
async fn check(app: &App, from: &FeedPosition) -> Result<(), Problem> {
    match app.store.feed(from, Some(from), 1).await {
        Err(StoreError::Feed(invalid @ InvalidFeed::NotAPosition)) => {
            Err(bad_position(&invalid).at("Last-Event-ID"))
        }
        Ok(_) | Err(StoreError::Feed(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn not_yet() -> Problem {
    let words = "the server has not heard from its store yet; try again";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", words)
}

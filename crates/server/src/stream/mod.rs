//! `/v1/stream`: state changes of jobs and batches as server-sent events.
//!
//! One task of this process polls the store for all streams. Each window of changes is serialized once for all streams with the
//! same filter. A client that reconnects sends its last position and first gets the changes that it missed, read from the store,
//! up to the start of the windows.

pub(crate) mod feed;
mod filter;
pub(crate) mod open_streams;
mod watcher;
mod window;

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use milepost_core::error::StoreError;
use milepost_core::feed::{FeedPosition, InvalidFeed};
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::filter::ChangeType;
use self::filter::Filter;
pub use self::open_streams::StreamLimits;
use self::watcher::Watcher;
use crate::access::{Identity, OpenCredentials};
use crate::app::{App, Server};
use crate::client::Caller;
use crate::params::Query;
use crate::problem::{Code, Problem};

/// Number of pieces that may wait for a slow client. One of them is reserved for the reason why the stream ends.
const PIECES_MAX: usize = 8;

pub(crate) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(watch))
}

/// Watch state changes
///
/// State changes of jobs (`event: job`) and batches (`event: batch`), as server-sent events. An id is a position between two changes: a
/// stream that is opened with `Last-Event-ID` continues there, without missing or repeated changes. `event: reset`: the stream cannot
/// continue there, for the reason in `data`; read the current state, and the stream continues with new changes. `event: dropped`: the
/// stream ends, for the reason in `data`: the client was too slow, or its token or session is no longer valid. The server sends a line
/// at least every 15 seconds.
#[utoipa::path(
    get, path = "/v1/stream", tag = "stream", params(Filter, ("Last-Event-ID" = Option<String>, Header, description = "The id after which the stream continues")),
    responses((status = 200, description = "An endless stream of events", content_type = "text/event-stream", body = String)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn watch(
    app: App,
    caller: Caller,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    Query(filter): Query<Filter>,
) -> Result<Response, Problem> {
    filter.check()?;
    let from = place(&headers, &filter)?;
    let seat = app.seats.take(caller)?;
    let (upto, windows) = app.feed.watch().await.ok_or_else(not_yet)?;
    if let Some(from) = &from {
        check(&app, from).await?;
    }
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    let at = from.unwrap_or_else(|| upto.clone());
    let (store, stop) = (Arc::clone(&app.store), app.stop.clone());
    let watcher = Watcher {
        store,
        filter: filter.anywhere(),
        at,
        windows,
        stop,
        seat,
        is_limited: app.limited.is_some(),
    };
    tokio::spawn(watcher.run(upto, OpenCredentials::of(app, &identity), sender));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // Stops reverse proxies from buffering the stream.
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

/// Returns the position at which the client wants to continue.
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
    Problem::new(Code::InvalidPosition, invalid.to_string())
}

/// Checks that the position is well-formed. Whether the stream can continue there is reported in the stream.
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
    let words = "the store has not responded yet; try again";
    Problem::new(Code::StoreUnavailable, words)
}

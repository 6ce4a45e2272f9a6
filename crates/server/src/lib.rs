//! Milepost over HTTP.
//!
//! [`router`] makes everything the server answers out of a store; [`serve`] listens until it is to stop. The API's own description
//! is made from its code and served at `/openapi.json`.

mod actor;
mod api;
mod app;
mod body;
mod guard;
mod health;
mod idempotency;
mod intake;
pub mod metrics;
mod openapi;
mod params;
mod problem;
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::get;
use axum::{Router, middleware};
use milepost_core::port::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::intake::Intake;
use crate::metrics::{Counts, Metrics};
pub use crate::problem::Problem;
pub use crate::stream::StreamLimits;
use crate::stream::{Feed, Seats};

/// How large the body of a request may be: several thousand jobs with small payloads, a few with the largest.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a server is to be.
pub struct Options {
    /// What other parts of this process count, for `/metrics`.
    pub counts: Vec<Box<dyn Counts>>,
    /// Whether there is an API, beside health and metrics.
    pub api: bool,
    /// How many may watch what happens.
    pub streams: StreamLimits,
}

impl Default for Options {
    fn default() -> Self {
        Self { counts: Vec::new(), api: true, streams: StreamLimits::default() }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("api", &self.api).finish_non_exhaustive()
    }
}

/// All that the server answers. Cancelling `stop` makes it say that it is not ready. Must be called within a Tokio runtime.
pub fn router(store: Arc<dyn Store>, options: Options, stop: CancellationToken) -> Router {
    let seats = Seats::new(options.streams);
    let mut counts = options.counts;
    counts.push(Box::new(seats.clone()));
    let api = if options.api { api::routes().merge(stream::routes()) } else { OpenApiRouter::new() };
    let feed = Feed::new();
    if options.api {
        feed.start(Arc::clone(&store), stop.clone());
    }
    let app = App {
        intake: Intake::start(Arc::clone(&store)),
        feed,
        seats,
        store,
        metrics: Arc::new(Metrics::new(counts)),
        stop,
    };
    let (routes, document) = OpenApiRouter::with_openapi(openapi::document()).merge(api).split_for_parts();
    let document = openapi::text(document);
    routes
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::get))
        .route("/openapi.json", get(move || std::future::ready(document.clone())))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(guard::only_from_here))
        .with_state(app)
}

async fn no_such_path(uri: Uri) -> Problem {
    Problem::not_found(
        "no_such_path",
        format!("there is nothing at {}; /openapi.json says what there is", uri.path()),
    )
}

async fn no_such_method(method: Method, uri: Uri) -> Problem {
    let words = format!("{} cannot be asked with {method}; /openapi.json says how", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", words)
}

/// Answers requests until it is to stop, and those that are under way then.
///
/// # Errors
/// What the listener says when it cannot go on.
pub async fn serve(
    listener: TcpListener,
    store: Arc<dyn Store>,
    options: Options,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = router(store, options, stop.clone());
    let router = router.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

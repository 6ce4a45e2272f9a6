//! The console: pages for people, made here and kept new by a small script. A file a page.
//!
//! Pages read the store's ports as the API does. What changes something is a form that asks for a reason ([`act`]) and comes back to
//! its page, which says what became of it ([`flash`]). What is slow to count is remembered for a while ([`kept`]).

mod act;
mod alerts;
mod assets;
mod batch;
mod batches;
mod board;
mod bulk;
mod bulks;
mod choice;
mod deed;
mod events;
mod flash;
mod graph;
mod job;
mod jobs;
mod kept;
mod letters;
mod machine;
mod overview;
mod page;
mod queues;
mod rerun;
mod schedules;
pub(crate) mod series;
mod settings;
mod stack;
mod words;
mod workers;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{get, post};
use tower_http::compression::CompressionLayer;

use crate::app::App;
pub(crate) use bulks::Paces;
pub(crate) use kept::Known;

/// What pages may load: what this server serves, and nothing that is written into the page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// All pages, and what they send.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(overview::show))
        .route("/series.json", get(series::get))
        .route("/jobs", get(jobs::list))
        .route("/jobs/change", get(choice::preview).post(choice::change))
        .route("/jobs/{id}", get(job::show))
        .route("/jobs/{id}/operate", post(job::operate))
        .route("/queues", get(queues::list))
        .route("/queues/set", post(queues::set))
        .route("/workers", get(workers::list))
        .route("/schedules", get(schedules::list))
        .route("/schedules/operate", post(schedules::operate))
        .route("/bulk", get(bulks::list))
        .route("/bulk/{id}", get(bulk::show))
        .route("/bulk/{id}/set", post(bulk::set))
        .route("/bulk/{id}/retry-failures", post(bulk::retry_failures))
        .route("/batches", get(batches::list))
        .route("/batches/{id}", get(batch::show))
        .route("/batches/{id}/operate", post(batch::operate))
        .route("/batches/{id}/rerun", get(rerun::preview).post(rerun::rerun))
        .route("/events", get(events::list))
        .route("/events/subscription", post(events::operate))
        .route("/events/replay", post(events::replay))
        .route("/events/parked", post(events::change_parked))
        .route("/dead-letters", get(letters::list))
        .route("/dead-letters/event", post(letters::change_event))
        .route("/dead-letters/inbox", post(letters::change_letter))
        .route("/settings", get(settings::show))
        .route("/assets/{edition}/{name}", get(assets::get))
        .layer(map_response(guarded))
        .layer(CompressionLayer::new())
}

async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

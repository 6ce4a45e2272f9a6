//! Publishing events again: replay and reseed.

use axum::Json;
use jiff::Timestamp;
use milepost_core::event::Aggregate;
use milepost_core::event::relay_listing::Replay;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::{RequestActor, Why};
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(replay_events)).routes(routes!(reseed_log))
}

/// The events to publish again: those of an aggregate from a sequence on, or all since a time.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReplayRequest {
    /// The type of the aggregate.
    aggregate_type: Option<String>,
    /// The id of the aggregate.
    aggregate_id: Option<String>,
    /// The first sequence. The default is 1.
    #[schema(minimum = 1)]
    from_seq: Option<i64>,
    /// All events emitted since this time, and some from shortly before.
    since: Option<Timestamp>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

impl ReplayRequest {
    fn replay(self) -> Result<Replay, Problem> {
        let refused = |at: &str, words: &str| Err(Problem::new(Code::InvalidBody, words).at(at));
        match (self.aggregate_type, self.aggregate_id, self.since) {
            (Some(_), Some(_), None) if self.from_seq.is_some_and(|from| from < 1) => {
                refused("from_seq", "it must be at least 1, the first sequence of an aggregate")
            }
            (Some(kind), Some(id), None) => {
                let from = self.from_seq.unwrap_or(1);
                Ok(Replay::Aggregate { aggregate: Aggregate::new(kind, id), from })
            }
            (None, None, Some(_)) if self.from_seq.is_some() => {
                refused("from_seq", "from_seq needs an aggregate; give aggregate_type and aggregate_id")
            }
            (None, None, Some(since)) => Ok(Replay::Since(since)),
            (None, None, None) => refused(
                "since",
                "a replay needs an aggregate or a time; give aggregate_type and aggregate_id, or since",
            ),
            (_, _, Some(_)) => {
                refused("since", "an aggregate and since exclude each other; give one of them")
            }
            _ => refused("aggregate_id", "an aggregate needs both aggregate_type and aggregate_id"),
        }
    }
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct ReplayAnswer {
    /// Number of events that are published again, including those that the filter of the subscription leaves out. These are not published.
    events: u64,
}

/// Replay events
///
/// Publishes events again that the subscription has published, in the order of each aggregate. New events of an aggregate follow after
/// them.
#[utoipa::path(
    post, path = "/v1/subscriptions/{name}/replay", tag = "events", params(("name" = String, Path, description = "The subscription")),
    request_body = ReplayRequest, responses((status = 200, body = ReplayAnswer)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("subscriptions deliver the events of the whole store")))
)]
async fn replay_events(
    app: App,
    actor: RequestActor,
    Path(name): Path<String>,
    Body(request): Body<ReplayRequest>,
) -> Result<Json<ReplayAnswer>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    Ok(Json(ReplayAnswer { events: store.replay(&name, &request.replay()?).await? }))
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct ReseedAnswer {
    /// Number of subscriptions whose positions now refer to this server.
    subscriptions: u64,
}

/// Accept a restored log
///
/// For a database that was restored from a dump or copied to another server: positions then refer to this server's transactions.
/// Events around the old positions are published again. Stop all relays before.
#[utoipa::path(
    post, path = "/v1/events/reseed", tag = "events", params(Why), responses((status = 200, body = ReseedAnswer)),
    security(("token" = ["admin"])),
    extensions(("x-limited-tokens" = json!("subscriptions deliver the events of the whole store")))
)]
async fn reseed_log(
    app: App,
    actor: RequestActor,
    Query(why): Query<Why>,
) -> Result<Json<ReseedAnswer>, Problem> {
    let store = app.acting(actor.because_in_query(why.reason.as_deref())?);
    Ok(Json(ReseedAnswer { subscriptions: store.reseed().await? }))
}

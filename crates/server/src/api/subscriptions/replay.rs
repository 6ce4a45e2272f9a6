//! Publishing again what was published.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use milepost_core::event::Aggregate;
use milepost_core::event::relay_listing::Replay;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::{RequestActor, Why};
use crate::app::App;
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(replay_events)).routes(routes!(reseed_log))
}

/// What to publish again: an aggregate's events from a sequence on, or all from a time on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReplayRequest {
    /// What sort of thing the aggregate is.
    aggregate_type: Option<String>,
    /// Which one.
    aggregate_id: Option<String>,
    /// From which sequence on. The default is 1.
    #[schema(minimum = 1)]
    from_seq: Option<i64>,
    /// All that were emitted from then on, and a little before.
    since: Option<Timestamp>,
    /// Why; stands in the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

impl ReplayRequest {
    fn replay(self) -> Result<Replay, Problem> {
        let refused = |at: &str, words: &str| Err(Problem::unprocessable("invalid_body", words).at(at));
        match (self.aggregate_type, self.aggregate_id, self.since) {
            (Some(_), Some(_), None) if self.from_seq.is_some_and(|from| from < 1) => {
                refused("from_seq", "sequences are numbers from 1 on")
            }
            (Some(kind), Some(id), None) => {
                let from = self.from_seq.unwrap_or(1);
                Ok(Replay::Aggregate { aggregate: Aggregate::new(kind, id), from })
            }
            (None, None, Some(_)) if self.from_seq.is_some() => {
                refused("from_seq", "a sequence is of one aggregate; name it")
            }
            (None, None, Some(since)) => Ok(Replay::Since(since)),
            (None, None, None) => refused("since", "say what: an aggregate, or since when"),
            (_, _, Some(_)) => {
                refused("since", "it is of one aggregate or of all since a time; give one of the two")
            }
            _ => refused("aggregate_id", "an aggregate is named by aggregate_type and aggregate_id together"),
        }
    }
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct ReplayAnswer {
    /// How many events are published again.
    events: u64,
}

/// Publish events again
///
/// Those that the subscription has published, in each aggregate's order; what is emitted meanwhile comes after them.
#[utoipa::path(
    post, path = "/v1/subscriptions/{name}/replay", tag = "events", params(("name" = String, Path, description = "The subscription")),
    request_body = ReplayRequest, responses((status = 200, body = ReplayAnswer)), security(("token" = ["operator"]))
)]
async fn replay_events(
    State(app): State<App>,
    actor: RequestActor,
    Path(name): Path<String>,
    Body(request): Body<ReplayRequest>,
) -> Result<Json<ReplayAnswer>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    Ok(Json(ReplayAnswer { events: store.replay(&name, &request.replay()?).await? }))
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct ReseedAnswer {
    /// How many subscriptions keep their positions by this server from now on.
    subscriptions: u64,
}

/// Take a restored log as it is
///
/// After a database was restored from a dump, or copied to another server: positions are kept by this server's transactions from now on.
/// Events around the old ones are published again. All relays must be stopped.
#[utoipa::path(
    post, path = "/v1/events/reseed", tag = "events", params(Why), responses((status = 200, body = ReseedAnswer)),
    security(("token" = ["admin"]))
)]
async fn reseed_log(
    State(app): State<App>,
    actor: RequestActor,
    Query(why): Query<Why>,
) -> Result<Json<ReseedAnswer>, Problem> {
    let store = app.acting(actor.because_in_query(why.reason.as_deref())?);
    Ok(Json(ReseedAnswer { subscriptions: store.reseed().await? }))
}

//! Limits: how fast kinds may start, and how fast and how many at once groups.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use milepost_core::limit::{InvalidLimit, Limit, LimitView, Rate, Source, Target};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::App;
use crate::body::Body;
use crate::params::Query;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_limits, put_limit, delete_limit))
}

/// A limit and what it does now.
#[derive(Debug, Serialize, ToSchema)]
struct LimitRow {
    /// Of this kind, or of this group or class of groups `prefix:*`.
    #[serde(flatten)]
    target: Target,
    /// How many jobs of the group may be under way at once.
    concurrency: Option<u32>,
    /// How many may start in a second.
    per_second: Option<f64>,
    /// How many may start at once after a pause.
    burst: Option<u32>,
    /// Who made it.
    source: Source,
    /// How many starts it would allow now; below nothing while it is in debt. Missing without a rate, and for a class.
    tokens: Option<f64>,
    /// How many jobs hold a slot of the group, or run, for a kind.
    holders: i64,
    /// How many jobs wait: of a group, for a slot or a token; of a kind, to be claimed.
    waiting: i64,
}

impl From<LimitView> for LimitRow {
    fn from(view: LimitView) -> Self {
        let LimitView { limit: Limit { target, slots, rate }, source, tokens, holders, waiting } = view;
        let (per_second, burst) = (rate.map(|rate| rate.per_second), rate.map(|rate| rate.burst));
        Self { target, concurrency: slots, per_second, burst, source, tokens, holders, waiting }
    }
}

/// List limits
///
/// All of them: kinds first, by name.
#[utoipa::path(
    get, path = "/v1/limits", tag = "limits", responses((status = 200, body = Vec<LimitRow>)),
    security(("token" = ["viewer"]))
)]
async fn list_limits(State(app): State<App>) -> Result<Json<Vec<LimitRow>>, Problem> {
    Ok(Json(app.store.limits().await?.into_iter().map(LimitRow::from).collect()))
}

/// What a limit is to be: of exactly one of `kind` and `group`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LimitRequest {
    /// The kind.
    kind: Option<String>,
    /// The group, or a class `prefix:*`, which stands for each group whose name starts with `prefix:`.
    #[schema(examples("tenant:*"))]
    group: Option<String>,
    /// How many jobs of the group may be under way at once.
    #[schema(minimum = 1, maximum = 1000)]
    concurrency: Option<u32>,
    /// How many may start in a time: `10/s`, `100/m`, `2000/h`, `5/d`, `0.5/s` or `7/15m`.
    #[schema(examples("100/m"))]
    rate: Option<String>,
    /// How many may start at once after a pause. The default is those of a second, at least 1.
    #[schema(minimum = 1, maximum = 1_000_000)]
    burst: Option<u32>,
    /// Why; stands in the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

impl LimitRequest {
    fn limit(self) -> Result<Limit, Problem> {
        let target = target(self.kind, self.group, "")?;
        if self.burst.is_some() && self.rate.is_none() {
            return Err(refused("burst", "a burst means something only beside a rate"));
        }
        let rate = self.rate.as_deref().map(Rate::parse_per_second).transpose();
        let rate = rate.map_err(|invalid| refused("rate", invalid.to_string()))?.map(|per_second| {
            let steady = Rate::steady(per_second);
            Rate { burst: self.burst.unwrap_or(steady.burst), ..steady }
        });
        let limit = Limit { target, slots: self.concurrency, rate };
        limit.check().map_err(|invalid| {
            let at = match (&invalid, &limit.target) {
                (InvalidLimit::Slots { .. } | InvalidLimit::SlotsOfKind, _) => "concurrency",
                (InvalidLimit::Burst { .. }, _) => "burst",
                (InvalidLimit::Name { .. } | InvalidLimit::Class { .. }, Target::Kind(_)) => "kind",
                (InvalidLimit::Name { .. } | InvalidLimit::Class { .. }, Target::Group(_)) => "group",
                _ => "rate",
            };
            refused(at, invalid.to_string())
        })?;
        Ok(limit)
    }
}

fn refused(at: &str, words: impl Into<String>) -> Problem {
    Problem::unprocessable("invalid_limit", words).at(at)
}

/// What a limit is about; `part` is where the request says so: empty for the body, or `query `.
fn target(kind: Option<String>, group: Option<String>, part: &str) -> Result<Target, Problem> {
    match (kind, group) {
        (Some(kind), None) => Ok(Target::Kind(kind)),
        (None, Some(group)) => Ok(Target::Group(group)),
        (None, None) => Err(refused(&format!("{part}kind"), "a limit is of a kind or of a group; name one")),
        (Some(_), Some(_)) => {
            Err(refused(&format!("{part}group"), "a limit is of a kind or of a group; name one of the two"))
        }
    }
}

/// Set a limit
///
/// As a whole: what is not given is not limited. It is an operator's from then on, and no configuration changes it. More slots are filled
/// at once; of fewer, what is too many ends by itself.
#[utoipa::path(
    put, path = "/v1/limits", tag = "limits", request_body = LimitRequest, responses((status = 204)),
    security(("token" = ["operator"]))
)]
async fn put_limit(
    State(app): State<App>,
    actor: RequestActor,
    Body(request): Body<LimitRequest>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    store.put_limit(&request.limit()?, Source::Operator).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whose limit: of exactly one of `kind` and `group`; and why.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LimitParams {
    /// The kind.
    kind: Option<String>,
    /// The group, or a class `prefix:*`.
    group: Option<String>,
    /// Why; stands in the audit.
    #[param(max_length = 1000)]
    reason: Option<String>,
}

/// Remove a limit
///
/// A group then has one slot again, or what its class has. One of a configuration is refused, which would set it again.
#[utoipa::path(
    delete, path = "/v1/limits", tag = "limits", params(LimitParams), responses((status = 204)),
    security(("token" = ["operator"]))
)]
async fn delete_limit(
    State(app): State<App>,
    actor: RequestActor,
    Query(params): Query<LimitParams>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because_in_query(params.reason.as_deref())?);
    let target = target(params.kind, params.group, "query ")?;
    let known = app.store.limits().await?.into_iter().find(|view| view.limit.target == target);
    if known.is_some_and(|view| view.source == Source::Config) {
        let words = format!(
            "the limit of {target} comes from a configuration, which would set it again; take it out there, or set another one"
        );
        return Err(Problem::conflict("of_configuration", words));
    }
    if !store.remove_limit(&target, Source::Operator).await? {
        return Err(Problem::not_found("no_such_limit", format!("{target} has no limit of its own")));
    }
    Ok(StatusCode::NO_CONTENT)
}

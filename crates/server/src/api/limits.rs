//! Limits: start rates of kinds; rates and concurrency of groups.

use axum::Json;
use axum::http::StatusCode;
use milepost_core::limit::{InvalidLimit, Limit, LimitView, Rate, Source, Target};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Query;
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list_limits, put_limit, delete_limit))
}

/// A limit and its current use.
#[derive(Debug, Serialize, ToSchema)]
struct LimitRow {
    /// The kind, the group, or the class of groups (`prefix:*`).
    #[serde(flatten)]
    target: Target,
    /// Maximum number of jobs of the group that run at the same time.
    concurrency: Option<u32>,
    /// Maximum number of starts per second.
    per_second: Option<f64>,
    /// Maximum number of jobs that start at the same time after a pause.
    burst: Option<u32>,
    /// Its source.
    source: Source,
    /// Number of starts that the limit allows now; negative while it is in debt. Missing without a rate, and for a class.
    tokens: Option<f64>,
    /// For a group: number of jobs that hold a slot. For a kind: number of running jobs.
    holders: i64,
    /// For a group: number of jobs that wait for a slot or a token. For a kind: number of jobs that wait to be claimed.
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
/// All limits: kinds first, ordered by name.
#[utoipa::path(
    get, path = "/v1/limits", tag = "limits", responses((status = 200, body = Vec<LimitRow>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_limits(app: App) -> Result<Json<Vec<LimitRow>>, Problem> {
    Ok(Json(app.store.limits().await?.into_iter().map(LimitRow::from).collect()))
}

/// A limit of a kind or of a group. Give exactly one of `kind` and `group`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LimitRequest {
    /// The kind.
    kind: Option<String>,
    /// The group, or a class `prefix:*`: each group whose name starts with `prefix:`.
    #[schema(examples("tenant:*"))]
    group: Option<String>,
    /// Maximum number of jobs of the group that run at the same time.
    #[schema(minimum = 1, maximum = 1000)]
    concurrency: Option<u32>,
    /// Maximum rate of starts: `10/s`, `100/m`, `2000/h`, `5/d`, `0.5/s` or `7/15m`.
    #[schema(examples("100/m"))]
    rate: Option<String>,
    /// Maximum number of jobs that start at the same time after a pause. The default is the number of one second, at least 1.
    #[schema(minimum = 1, maximum = 1_000_000)]
    burst: Option<u32>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

impl LimitRequest {
    fn limit(self) -> Result<Limit, Problem> {
        let target = target(self.kind, self.group, "")?;
        if self.burst.is_some() && self.rate.is_none() {
            return Err(refused("burst", "burst needs a rate; give rate, or omit burst"));
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
    Problem::new(Code::InvalidLimit, words).at(at)
}

/// Returns the target of a limit. `part` is the prefix of positions in error messages: empty for the body, or `query `.
fn target(kind: Option<String>, group: Option<String>, part: &str) -> Result<Target, Problem> {
    match (kind, group) {
        (Some(kind), None) => Ok(Target::Kind(kind)),
        (None, Some(group)) => Ok(Target::Group(group)),
        (None, None) => Err(refused(&format!("{part}kind"), "a limit needs a kind or a group; give one")),
        (Some(_), Some(_)) => {
            Err(refused(&format!("{part}group"), "kind and group exclude each other; give one of them"))
        }
    }
}

/// Set a limit
///
/// Replaces the limit; omitted fields are not limited. The limit is then an operator's, and no configuration changes it. Additional slots
/// are assigned immediately; with fewer slots, running jobs continue until they end.
#[utoipa::path(
    put, path = "/v1/limits", tag = "limits", request_body = LimitRequest, responses((status = 204)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn put_limit(
    app: App,
    actor: RequestActor,
    Body(request): Body<LimitRequest>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    store.put_limit(&request.limit()?, Source::Operator).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The limit to remove. Give exactly one of `kind` and `group`.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LimitParams {
    /// The kind.
    kind: Option<String>,
    /// The group, or a class `prefix:*`.
    group: Option<String>,
    /// The reason, for the audit log.
    #[param(max_length = 1000)]
    reason: Option<String>,
}

/// Remove a limit
///
/// A group then has one slot again, or the limit of its class. Limits of a configuration are refused, because it would set them again.
#[utoipa::path(
    delete, path = "/v1/limits", tag = "limits", params(LimitParams), responses((status = 204)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn delete_limit(
    app: App,
    actor: RequestActor,
    Query(params): Query<LimitParams>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because_in_query(params.reason.as_deref())?);
    let target = target(params.kind, params.group, "query ")?;
    let known = app.store.limits().await?.into_iter().find(|view| view.limit.target == target);
    if known.is_some_and(|view| view.source == Source::Config) {
        let words = format!(
            "the limit of {target} comes from a configuration, which would set it again; remove it there, or set another limit"
        );
        return Err(Problem::new(Code::OfConfiguration, words));
    }
    if !store.remove_limit(&target, Source::Operator).await? {
        return Err(Problem::new(Code::NoSuchLimit, format!("{target} has no separate limit")));
    }
    Ok(StatusCode::NO_CONTENT)
}

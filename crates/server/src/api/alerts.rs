//! Alerts as servers with targets record them, and their silences.

use axum::Json;
use axum::http::StatusCode;
use milepost_core::alert::{AlertKey, AlertTarget, Incident, IncidentFilter, SilenceUntil};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Query;
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list_alerts))
        .routes(routes!(list_alert_targets))
        .routes(routes!(silence_alert))
        .routes(routes!(unsilence_alert))
}

/// The maximum number of incidents of a response.
const LIMIT_MAX: u32 = 1_000;

/// Which alerts are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct AlertParams {
    /// Whether incidents that have ended are included.
    ended: bool,
    /// The maximum number of incidents.
    #[param(minimum = 1, maximum = 1000)]
    limit: u32,
}

impl Default for AlertParams {
    fn default() -> Self {
        Self { ended: false, limit: 200 }
    }
}

/// List incidents
///
/// The record of each alert from its first to its last observation: open incidents first, errors first, then the newest. Servers with a section
/// `[notify.NAME]` record incidents; without one the list is empty, and `GET /v1/status` shows the current problems.
#[utoipa::path(
    get, path = "/v1/alerts", tag = "alerts", params(AlertParams), responses((status = 200, body = Vec<Incident>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("alerts are about the whole store")))
)]
async fn list_alerts(app: App, Query(params): Query<AlertParams>) -> Result<Json<Vec<Incident>>, Problem> {
    if !(1..=LIMIT_MAX).contains(&params.limit) {
        let words = format!("the limit must be 1 to {LIMIT_MAX}");
        return Err(Problem::new(Code::InvalidParameter, words).at("query limit"));
    }
    let filter = IncidentFilter { ended: params.ended, limit: params.limit };
    Ok(Json(app.store.incidents(&filter).await?))
}

/// List alert targets
///
/// The targets that servers have, whether their messages are delivered, and the last error.
#[utoipa::path(
    get, path = "/v1/alert-targets", tag = "alerts", responses((status = 200, body = Vec<AlertTarget>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("alerts are about the whole store")))
)]
async fn list_alert_targets(app: App) -> Result<Json<Vec<AlertTarget>>, Problem> {
    Ok(Json(app.store.alert_targets().await?))
}

/// A silence.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SilenceRequest {
    /// The rule and the subject of the alert, as `alert` of `GET /v1/status` shows them.
    #[schema(examples("queue_paused: mail"))]
    alert: String,
    /// A duration such as `1h`, also if the alert ends and begins again; or `over`: until the alert ends.
    #[schema(examples("8h"))]
    r#for: String,
    /// The reason, for the audit log and for those who see the silence.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Silence an alert
///
/// Targets are not notified that it begins. A target that was notified already is notified when it ends.
#[utoipa::path(
    post, path = "/v1/alerts/silence", tag = "alerts", request_body = SilenceRequest, responses((status = 204)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("alerts are about the whole store")))
)]
async fn silence_alert(
    app: App,
    actor: RequestActor,
    Body(request): Body<SilenceRequest>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let key = key(&request.alert)?;
    let until: SilenceUntil =
        request.r#for.parse().map_err(|why: String| Problem::new(Code::InvalidSilence, why).at("for"))?;
    match store.silence_alert(&key, until).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::new(Code::NoSuchAlert, format!("there is no open incident of {key}"))),
    }
}

/// The end of a silence.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UnsilenceRequest {
    /// The rule and the subject of the alert.
    #[schema(examples("queue_paused: mail"))]
    alert: String,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// End a silence
///
/// Targets that were not notified that the alert has begun are notified now, if it lasts. Succeeds if there was no silence.
#[utoipa::path(
    post, path = "/v1/alerts/unsilence", tag = "alerts", request_body = UnsilenceRequest, responses((status = 204)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("alerts are about the whole store")))
)]
async fn unsilence_alert(
    app: App,
    actor: RequestActor,
    Body(request): Body<UnsilenceRequest>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    store.unsilence_alert(&key(&request.alert)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn key(text: &str) -> Result<AlertKey, Problem> {
    text.parse().map_err(|unknown| {
        let words = format!("{unknown}; write an alert as RULE: SUBJECT");
        Problem::new(Code::InvalidSilence, words).at("alert")
    })
}

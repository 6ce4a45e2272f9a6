//! The audit log.

use axum::response::Response;
use milepost_core::audit::{AuditEntry, AuditFilter};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::{self, Page};
use crate::app::{App, Server};
use crate::params::Query;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list_audit))
}

/// Filter of the entries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditParams {
    /// Only changes by this actor.
    who: Option<String>,
    /// Only this action, such as `job.cancel`.
    what: Option<String>,
    /// Only changes of this subject: the id of a job or a batch, the name of a queue.
    subject: Option<String>,
    /// Maximum number of rows. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<i64>,
}

/// List the audit log
///
/// Changes by users and their tools, each with the state of its subject before and after. Newest first. A page also ends when it has 4 MiB.
#[utoipa::path(
    get, path = "/v1/audit", tag = "audit", params(AuditParams), responses((status = 200, body = Page<AuditEntry>)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_audit(app: App, Query(params): Query<AuditParams>) -> Result<Response, Problem> {
    let limit = page::limit(params.limit)?;
    let store = app.store.as_ref();
    let read = |before, limit| {
        let (who, what, subject) = (params.who.clone(), params.what.clone(), params.subject.clone());
        let filter = AuditFilter { who, what, subject, before, limit };
        async move { store.audit_log(&filter).await }
    };
    page::of_large_rows(&app, params.cursor, limit, |entry: &AuditEntry| entry.pos, read).await
}

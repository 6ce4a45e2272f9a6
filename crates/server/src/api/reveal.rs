//! Hidden values of a job, for those who may see them.

use axum::{Extension, Json};
use milepost_core::ident::JobId;
use milepost_core::listing::JobView;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Identity;
use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Path;
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(reveal_job))
}

/// Why hidden values have to be seen.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RevealRequest {
    /// The reason, for the audit log.
    #[schema(min_length = 1, max_length = 1000)]
    reason: String,
}

/// Reveal a job
///
/// Returns the job with the values that the configuration hides (`[hide]`), after an entry in the audit log. Only for the roles in `reveal` of that
/// section.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/reveal", tag = "jobs", params(("id" = JobId, Path, description = "The job")),
    request_body = RevealRequest, responses((status = 200, body = JobView)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn reveal_job(
    app: App,
    actor: RequestActor,
    Extension(caller): Extension<Identity>,
    Path(id): Path<JobId>,
    Body(request): Body<RevealRequest>,
) -> Result<Json<JobView>, Problem> {
    if !request.reason.contains(char::is_alphanumeric) {
        return Err(Problem::new(Code::InvalidBody, "give the reason, for the audit log").at("reason"));
    }
    app.reveal(id, &caller, actor.because(Some(&request.reason))?).await.map(Json)
}

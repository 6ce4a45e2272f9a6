//! The worker protocol: claiming and running jobs from programs in any language.
//!
//! A worker registers, claims jobs, reports how their runs ended, and sends heartbeats. It identifies a run by its handle, which
//! contains the run token: reports with an outdated token change nothing.

mod backoff;
mod claim;
mod finish;
mod handle;
mod lease;
pub(crate) mod registrations;
pub(crate) mod tally;

use utoipa_axum::router::OpenApiRouter;

use crate::app::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().merge(lease::routes()).merge(claim::routes()).merge(finish::routes())
}

//! The worker protocol: jobs for programs in any language.
//!
//! A worker registers, claims, tells how its runs ended, and sends heartbeats beside that. Whatever it says of a run it says by the run's
//! handle, which carries the run token: what is late changes nothing.

mod claim;
mod finish;
mod handle;
mod lease;
mod tally;

use utoipa_axum::router::OpenApiRouter;

pub(crate) use self::tally::Tally;
use crate::app::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().merge(lease::routes()).merge(claim::routes()).merge(finish::routes())
}

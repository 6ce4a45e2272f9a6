//! Bulk jobs: definitions, runs, and operations on runs.

mod definitions;
mod operate;
mod runs;
mod settings;
mod start;

use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

pub(crate) use definitions::definition;
pub(crate) use start::new_run;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(definitions::routes())
        .merge(runs::routes())
        .merge(start::routes())
        .merge(settings::routes())
        .merge(operate::routes())
}

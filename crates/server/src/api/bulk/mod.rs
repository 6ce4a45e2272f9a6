//! Bulk jobs: definitions, runs, and operations on runs.

mod definitions;
mod dry_run;
mod file;
mod operate;
mod runs;
mod settings;
mod start;

use utoipa_axum::router::OpenApiRouter;

use crate::app::Server;

pub(crate) use definitions::definition;
pub(crate) use dry_run::new_dry_run;
pub(crate) use start::{new_run, new_run_over_file};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .merge(definitions::routes())
        .merge(runs::routes())
        .merge(start::routes())
        .merge(file::routes())
        .merge(dry_run::routes())
        .merge(settings::routes())
        .merge(operate::routes())
}

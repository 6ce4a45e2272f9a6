//! Batches: start, list, read and operations.

mod graph;
mod list;
mod operate;
mod rerun;
mod signal;
mod start;
mod subject;

pub(crate) use self::rerun::{InVersion, plan};
pub(crate) use self::subject::{all_tasks, subject};
pub(crate) use start::start_checked;
use utoipa_axum::router::OpenApiRouter;

use crate::app::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .merge(list::routes())
        .merge(start::routes())
        .merge(operate::routes())
        .merge(signal::routes())
        .merge(graph::routes())
}

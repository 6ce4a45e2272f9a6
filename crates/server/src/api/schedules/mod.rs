//! Schedules, which create jobs and batches repeatedly.

mod list;
mod operate;
mod put;
mod ticks;

pub(crate) use self::put::{check_input, remove_by_operator};
use utoipa_axum::router::OpenApiRouter;

use crate::app::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .merge(list::routes())
        .merge(put::routes())
        .merge(operate::routes())
        .merge(ticks::routes())
}

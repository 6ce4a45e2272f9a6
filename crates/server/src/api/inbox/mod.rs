//! Inboxes: consumers, gaps and dead letters.

mod consumers;
mod dead_letters;

use utoipa_axum::router::OpenApiRouter;

use crate::app::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().merge(consumers::routes()).merge(dead_letters::routes())
}

//! Subscriptions: state, parked aggregates, dead letters, and operations on them.

mod dead;
mod parked;
mod replay;
mod state;

use utoipa_axum::router::OpenApiRouter;

use crate::app::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .merge(state::routes())
        .merge(replay::routes())
        .merge(parked::routes())
        .merge(dead::routes())
}

//! Subscriptions: how far they are, what is parked and what was given up, and what operators do about it.

mod dead;
mod parked;
mod replay;
mod state;

use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(state::routes())
        .merge(replay::routes())
        .merge(parked::routes())
        .merge(dead::routes())
}

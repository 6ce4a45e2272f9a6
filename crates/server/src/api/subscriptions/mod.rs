//! Subscriptions: how far they are, what is parked and what was given up, and what operators do about it.

mod dead;
mod parked;
mod replay;
mod state;

use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(state::routes())
        .merge(replay::routes())
        .merge(parked::routes())
        .merge(dead::routes())
}

/// Of which subscription, and how many.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct KeptParams {
    /// Only of this subscription.
    subscription: Option<String>,
    /// How many at most. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

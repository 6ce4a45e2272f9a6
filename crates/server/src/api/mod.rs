//! `/v1`: what programs ask for. A module a noun; its `routes` are all that the rest of the server knows of it.

pub(crate) mod attempt;
mod audit;
mod create;
mod events;
mod jobs;
mod operate;
mod operate_many;
mod page;
mod protocol;
mod queues;
mod subscriptions;
mod workers;

use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

/// All routes under `/v1`, with what the OpenAPI document says of them.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(audit::routes())
        .merge(create::routes())
        .merge(events::routes())
        .merge(jobs::routes())
        .merge(operate::routes())
        .merge(operate_many::routes())
        .merge(protocol::routes())
        .merge(queues::routes())
        .merge(subscriptions::routes())
        .merge(workers::routes())
}

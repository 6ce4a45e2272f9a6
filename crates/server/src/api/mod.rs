//! The API under `/v1`, with one module for each resource. Each module exports only its `routes` to the rest of the server.

mod alerts;
pub(crate) mod attempt;
mod audit;
pub(crate) mod batches;
pub(crate) mod bulk;
mod create;
pub(crate) mod cursor;
pub(crate) mod dags;
pub(crate) mod doctor;
mod edit;
mod events;
mod inbox;
mod jobs;
mod limits;
mod operate;
mod operate_many;
mod page;
pub(crate) mod protocol;
mod queues;
mod retention;
mod reveal;
pub(crate) mod schedules;
pub(crate) mod series;
mod status;
mod subscriptions;
mod workers;

use utoipa_axum::router::OpenApiRouter;

use crate::app::Server;

/// Returns all routes under `/v1` with their OpenAPI descriptions.
pub(crate) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .merge(alerts::routes())
        .merge(audit::routes())
        .merge(batches::routes())
        .merge(bulk::routes())
        .merge(create::routes())
        .merge(dags::routes())
        .merge(doctor::routes())
        .merge(events::routes())
        .merge(inbox::routes())
        .merge(jobs::routes())
        .merge(limits::routes())
        .merge(operate::routes())
        .merge(edit::routes())
        .merge(reveal::routes())
        .merge(operate_many::routes())
        .merge(protocol::routes())
        .merge(queues::routes())
        .merge(retention::routes())
        .merge(schedules::routes())
        .merge(series::routes())
        .merge(status::routes())
        .merge(subscriptions::routes())
        .merge(workers::routes())
}

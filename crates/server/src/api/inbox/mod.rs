//! Inboxes of consumers: what they want, what they wait for, and what was given up.

mod consumers;
mod letters;

use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().merge(consumers::routes()).merge(letters::routes())
}

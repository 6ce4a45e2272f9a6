//! Announces to workers, through a helper beside the store, what requests change. Responses do not wait for it.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use milepost_core::actions::job::JobAction;
use milepost_core::ident::JobId;
use milepost_core::port::{Coordination, Operated};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

/// Number of requested stops that are announced at the same time. Workers learn of others from the store.
const STOPS_MAX: usize = 64;

/// Announces changes, if there is a helper.
#[derive(Clone, Default)]
pub(crate) struct Announcer(Option<Arc<Helper>>);

struct Helper {
    coordination: Arc<dyn Coordination>,
    /// Notified of changes by which something may have become ready. One announcement covers all changes before it.
    changed: Notify,
    stops: Arc<Semaphore>,
}

impl Announcer {
    /// Starts to announce changes through this helper, until `stop` is cancelled.
    pub(crate) fn start(coordination: Option<Arc<dyn Coordination>>, stop: CancellationToken) -> Self {
        let helper = coordination.map(|coordination| {
            let stops = Arc::new(Semaphore::new(STOPS_MAX));
            Arc::new(Helper { coordination, changed: Notify::new(), stops })
        });
        if let Some(helper) = helper.clone() {
            tokio::spawn(async move { stop.run_until_cancelled(helper.announce_changes()).await });
        }
        Self(helper)
    }

    /// Announces that the action asked a running job to stop. Other results are announced after the [response](announce_changes).
    pub(crate) fn operated(&self, action: JobAction, job: JobId, operated: Operated) {
        if let Some(helper) = self.0.clone()
            && operated == Operated::StopRequested
            && let Ok(permit) = Arc::clone(&helper.stops).try_acquire_owned()
        {
            tokio::spawn(async move {
                action.announce(job, operated, helper.coordination.as_ref()).await;
                drop(permit);
            });
        }
    }
}

impl Helper {
    async fn announce_changes(&self) {
        loop {
            self.changed.notified().await;
            self.coordination.announce_ready().await;
        }
    }
}

/// Announces each successful request that changes something. Requests of workers are not announced: most of them only report progress.
pub(crate) async fn announce_changes(
    State(announcer): State<Announcer>,
    request: Request,
    next: Next,
) -> Response {
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
        && !request.uri().path().starts_with("/v1/workers/");
    let response = next.run(request).await;
    let is_done = response.status().is_success() || response.status().is_redirection();
    if let Some(helper) = announcer.0.as_ref().filter(|_| is_change && is_done) {
        helper.changed.notify_one();
    }
    response
}

//! Liveness and readiness checks.

use crate::app::App;
use crate::problem::{Code, Problem};

/// Returns whether a request for this path is a probe, which is answered whatever else the client or other clients do.
pub(crate) fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// Reports that the process responds. Does not check the store: a supervisor that restarted the process for that would make
/// things worse.
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// Reports whether the store responds too.
pub(crate) async fn ready(app: App) -> Result<&'static str, Problem> {
    if app.stop.is_cancelled() {
        return Err(Problem::new(Code::ShuttingDown, "the server is shutting down"));
    }
    app.readiness.of(app.store.as_ref()).await.map(|()| "ok\n")
}

//! Whether the server is ready to answer requests, checked at most once a second.

use std::time::{Duration, Instant};

use milepost_core::port::Store;
use tokio::sync::Mutex;

use crate::problem::Problem;
use crate::store_timeout::in_time;

/// How long a result is reused. Any client may ask, as often as it wants.
const HOLDS: Duration = Duration::from_secs(1);

/// The last result, and its time.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Result<(), Problem>)>>);

impl Readiness {
    /// Returns whether the store responds. Runs the query that every request needs first. It uses dedicated connections, so that
    /// long-running list queries do not make the server unready. One request asks the store; the others wait for its result.
    pub(crate) async fn of(&self, store: &dyn Store) -> Result<(), Problem> {
        let mut last = self.0.lock().await;
        if let Some((_, answer)) = last.as_ref().filter(|(at, _)| at.elapsed() < HOLDS) {
            return answer.clone();
        }
        let answer = in_time(store.has_tokens()).await.map(drop).map_err(Problem::from);
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

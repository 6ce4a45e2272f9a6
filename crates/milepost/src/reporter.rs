//! Stores progress of handlers: the latest report of each, many at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use milepost_core::ident::Run;
use milepost_core::port::Store;
use milepost_core::worker::{Progress, Report};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long a report may wait for others.
const LINGER: Duration = Duration::from_millis(250);

type Words = HashMap<Run, (Progress, CancellationToken)>;

/// Accepts progress from handlers without making them wait.
#[derive(Clone, Default)]
pub(crate) struct Reporter {
    words: Arc<Mutex<Words>>,
    spoken: Arc<Notify>,
}

impl Reporter {
    pub(crate) fn progress(&self, run: Run, progress: Progress, stop: &CancellationToken) {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).insert(run, (progress, stop.clone()));
        self.spoken.notify_one();
    }

    /// Runs until the registration ends.
    pub(crate) async fn run(self, store: Arc<dyn Store>) {
        loop {
            self.spoken.notified().await;
            tokio::time::sleep(LINGER).await;
            self.flush(store.as_ref()).await;
        }
    }

    /// Stores all reports. A fenced run is asked to stop.
    pub(crate) async fn flush(&self, store: &dyn Store) {
        let words = std::mem::take(&mut *self.words.lock().unwrap_or_else(PoisonError::into_inner));
        let (reports, stops): (Vec<Report>, Vec<CancellationToken>) = words
            .into_iter()
            .map(|(run, (progress, stop))| (Report { run, progress: Some(progress), checkpoint: None }, stop))
            .unzip();
        if reports.is_empty() {
            return;
        }
        match store.report_many(&reports).await {
            Ok(accepted) => {
                // A run that ended before its report was stored has finished and is not fenced: its token is current.
                for (stop, _) in stops.iter().zip(accepted).filter(|(_, accepted)| !accepted) {
                    stop.cancel();
                }
            }
            Err(error) => {
                tracing::warn!(
                    error = error.chain(),
                    "progress could not be stored; the jobs are not affected"
                );
            }
        }
    }
}

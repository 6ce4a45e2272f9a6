//! Execution of one run: start → attempt → record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::claim::ClaimedJob;
use milepost_core::finish::Finish;
use tokio::sync::OwnedSemaphorePermit;

use crate::attempt::{self, Attempted};
use crate::context::Context;
use crate::outcome::Outcome;
use crate::run_reports::RunReports;
use crate::runs_in_hand::RunControl;
use crate::shared::Shared;
use crate::span;

/// Runs one job in a separate task. The permit is its place among the concurrent runs.
pub(crate) fn start(shared: Arc<Shared>, job: ClaimedJob, control: RunControl, permit: OwnedSemaphorePermit) {
    let tracker = shared.tasks.clone();
    tracker.spawn(async move {
        let job = Arc::new(job);
        let began = Instant::now();
        let answer = perform(&shared, &job, control).await;
        shared.stats.runs.add(job.kind.as_str(), began.elapsed());
        let stop_verb = shared.runs.ending(job.run);
        if let Some(answer) = answer {
            let kind = shared.kinds.get(&job.kind);
            let end = attempt::end_of(kind, &job, answer.outcome, stop_verb, fastrand::f64());
            shared.stats.panicked.add(answer.panicked.into());
            let finish =
                Finish { run: job.run, end, grouped: job.group.is_some(), task: job.batch.is_some() };
            shared.ends.send(finish).await;
        } else {
            shared.runs.land(std::iter::once(job.run));
        }
        drop(permit);
    });
}

/// Returns the handler's answer; `None` if the lease was lost or the store released the run, so that nothing may be written any more.
async fn perform(shared: &Arc<Shared>, job: &Arc<ClaimedJob>, control: RunControl) -> Option<Attempted> {
    let reports = RunReports::Store { store: shared.store.clone(), reporter: shared.reporter.clone() };
    let context = Context::new(job.clone(), control.stop, shared.stop_claiming.clone(), reports);
    let attempt = span::traced(
        job,
        attempt::caught(async {
            tokio::select! {
                () = shared.coordinator.let_older_stop(job.run) => {}
                () = context.cancellation().clone().cancelled_owned() => {}
            }
            let _at_work = shared.coordinator.at_work(job.run);
            attempt::perform(shared.kinds.get(&job.kind), context).await
        }),
    );
    tokio::select! {
        biased;
        answer = attempt => Some(answer),
        () = shared.lost.cancelled() => None,
        () = control.cut.cancelled() => None,
        () = shared.hand_back.cancelled() => Some(Ok(Outcome::Snooze(Duration::ZERO)).into()),
    }
}

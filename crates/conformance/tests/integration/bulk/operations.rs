//! Operations on many jobs.

use milepost::bulk::{Bulk, Columns, Dialect};
use milepost::{JobId, JobState, NewJob, Operation, Verb};
use milepost_core::bulk::operation::{self, OperateJobs, OperateTarget};
use milepost_core::finish::End;
use milepost_testkit::home::Command;
use milepost_testkit::scene::{Scene, failure};

use crate::bulk::members::Members;

fn operations(members: &Members) -> Bulk {
    let definition = operation::definition().unwrap();
    let dialect = if members.is_sqlite() { Dialect::Sqlite } else { Dialect::Postgres };
    let source = definition.columns.as_ref().unwrap().source(dialect);
    let key = Columns::key();
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    let work = members.home.bulk_work(&definition, &source, &key, Command::Operations).unwrap();
    Bulk::new(definition, work)
}

/// Starts a run that performs this operation on these jobs.
async fn start(members: &Members, operation: Operation, jobs: &[JobId]) -> JobId {
    let definition = operation::definition().unwrap();
    let rows = jobs.iter().map(|&job| serde_json::to_string(&OperateTarget { job }).unwrap()).collect();
    let mut staging = members.store().stage_bulk("failed jobs").await.unwrap();
    staging.add(rows).await.unwrap();
    let job = NewJob::new(&definition.name, &OperateJobs::new(&operation)).unwrap();
    staging.start(&definition.direct(job)).await.unwrap().job
}

/// Returns this number of permanently failed jobs.
async fn failed(scene: &Scene, jobs: usize) -> Vec<JobId> {
    let mut failed = Vec::new();
    for _ in 0..jobs {
        let run = scene.running(Scene::job()).await;
        scene.finish(&run, End::Fail { failure: failure() }).await;
        failed.push(run.run.job);
    }
    failed
}

pub(crate) async fn what_is_asked_is_done_to_each_job_and_stands_in_its_history(members: Members) {
    let jobs = failed(&members.scene, 30).await;
    let operation = Operation::new(Verb::RetryNow).note("the disk was full");
    let run = start(&members, operation, &jobs).await;
    let bulk = operations(&members);
    bulk.check().await.unwrap();
    let view = members.drain(&bulk, run).await;
    assert_eq!((view.state, view.counts.done, view.counts.failed), (JobState::Succeeded, 30, 0), "{view:#?}");
    for job in jobs {
        let history = members.scene.history(job).await;
        let retried = history.iter().find(|entry| entry.verb == Verb::RetryNow).expect("retried");
        assert_eq!(retried.note.as_deref(), Some("the disk was full"));
        members.scene.assert_history_folds(job).await;
    }
}

pub(crate) async fn a_job_that_it_cannot_be_done_to_fails_alone(members: Members) {
    let mut jobs = failed(&members.scene, 12).await;
    // One job that has been changed by another operator, and one that does not exist.
    members.scene.operate(jobs[5], Operation::new(Verb::Cancel)).await.unwrap();
    jobs.push(JobId::new());
    let run = start(&members, Operation::new(Verb::Mark), &jobs).await;
    let view = members.drain(&operations(&members), run).await;
    assert_eq!((view.state, view.counts.done, view.counts.failed), (JobState::Succeeded, 11, 2), "{view:#?}");
    let mut codes: Vec<String> =
        members.failures(run).await.into_iter().map(|failure| failure.code).collect();
    codes.sort();
    assert_eq!(codes, ["illegal_transition", "no_such_job"]);
    assert_eq!(members.scene.state(jobs[5]).await, JobState::Canceled);
    for job in jobs[..5].iter().chain(&jobs[6..12]) {
        assert_eq!(members.scene.state(*job).await, JobState::Succeeded);
    }
    let mut states = members.store().operated_jobs(run).await.unwrap();
    states.sort_unstable();
    assert_eq!(states, [(JobState::Succeeded, 11), (JobState::Canceled, 1)], "what became of its jobs");
}

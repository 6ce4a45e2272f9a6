//! Targets from a file.

use std::time::Duration;

use milepost::bulk::{
    Bulk, BulkFilter, ColumnType, Columns, Definition, InvalidBulk, StagedFile, Staging, Total,
};
use milepost::{JobId, JobState, NewJob, StoreError, Verb};
use milepost_core::bulk::run::{Chunked, Trial};
use milepost_core::port::Operation;
use milepost_core::retention::{Keep, Pace, RetentionPolicy};
use milepost_testkit::home::Command;
use milepost_testkit::notes;
use milepost_testkit::process::{Process, Settings};
use serde_json::json;

use crate::bulk::members::Members;

const KEEP_NOTHING: RetentionPolicy = RetentionPolicy {
    succeeded: Keep::For(Duration::ZERO),
    canceled: Keep::For(Duration::ZERO),
    ..RetentionPolicy::FOREVER
};

/// Stages members with these ids.
async fn staging(members: &Members, definition: &Definition, ids: std::ops::Range<i64>) -> Staging {
    let store = members.store();
    let mut staging = Staging::begin(store.as_ref(), definition, "members.csv").await.unwrap();
    for id in ids {
        staging.add(&json!({ "id": id, "name": format!("member {id}"), "more": 1 })).await.unwrap();
    }
    staging
}

fn job(definition: &Definition) -> NewJob {
    NewJob::new(&definition.name, &json!({})).unwrap()
}

async fn start(members: &Members, bulk: &Bulk, ids: std::ops::Range<i64>) -> JobId {
    let staging = staging(members, bulk.definition(), ids).await;
    staging.start(job(bulk.definition())).await.unwrap().job
}

async fn staged_rows(members: &Members) -> i64 {
    members.home.count("select count(*) from milepost.bulk_target").await
}

async fn staged_files(members: &Members) -> i64 {
    members.home.count("select count(*) from milepost.bulk_file").await
}

/// Deletes everything that may be deleted.
async fn prune(members: &Members) {
    // A store may keep the last entry of the history.
    let last = members.scene.enqueue(milepost_testkit::Scene::job()).await;
    members.scene.operate(last, Operation::new(Verb::Cancel)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(3)).await;
    let pace = Pace { limit: 100, rest: 0 };
    while members.store().prune(&KEEP_NOTHING, pace).await.unwrap().more {}
}

/// Makes staged files that were not started more than an hour old.
async fn age(members: &Members) {
    let (touched_at, past) = (members.home.time("touched_at"), members.home.ago(Duration::from_secs(3700)));
    members.home.tamper(&format!("update milepost.bulk_file set {touched_at} = {past}")).await;
}

pub(crate) async fn each_row_of_a_file_is_applied_once(members: Members) {
    let bulk = notes::letter(members.home.as_ref(), 400);
    bulk.check().await.unwrap();
    let job = start(&members, &bulk, 0..2_500).await;
    let view = members.view(job).await;
    let all = Some(Total { rows: 2_500, exact: true });
    let file = Some(StagedFile { name: "members.csv".to_owned(), rows: 2_500 });
    assert_eq!((view.total, view.file), (all, file), "known before a worker starts the run");
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.done, view.total), (JobState::Succeeded, 2_500, all), "{view:#?}");
    assert_eq!(view.upper.unwrap().to_string(), "2500");
    members.assert_once_each(job, 2_500).await;
    assert_eq!(members.home.count("select max(member) from public.note").await, 2_499);

    let empty = start(&members, &bulk, 0..0).await;
    let view = members.drain(&bulk, empty).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 0), "{view:#?}");
}

pub(crate) async fn a_worker_that_is_killed_in_a_file_loses_and_doubles_no_row(members: Members) {
    let bulk = notes::letter(members.home.as_ref(), 200);
    let job = start(&members, &bulk, 0..30_000).await;
    let settings = Settings::default().bulk_rows(200);
    for chunks in [3, 20] {
        let worker =
            Process::start(env!("CARGO_BIN_EXE_conformance-worker"), &members.home.address(), settings);
        members.until(job, "the run has processed more chunks", |view| view.counts.chunks >= chunks).await;
        worker.kill().await;
        members.rescue().await;
    }
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 30_000), "{view:#?}");
    members.assert_once_each(job, 30_000).await;
}

pub(crate) async fn each_type_of_column_reaches_the_statements(members: Members) {
    use ColumnType::{Boolean, Integer, Json, Number, Text};
    let columns = [("id", Integer), ("Last name", Text), ("score", Number), ("vip", Boolean), ("tags", Json)];
    let columns = Columns::new(columns).unwrap();
    let definition = Definition { columns: Some(columns.clone()), ..notes::definition("typed", 10) };
    let source = columns.source(notes::dialect(members.home.as_ref()));
    let (tag, yes) = if members.is_sqlite() { ("tags ->> '$[0]'", "vip = 1") } else { ("tags ->> 0", "vip") };
    let apply = format!(
        "insert into note (run, member) select :bulk_id, id from chunk
         where n = 1 and id + 1 = 8 and \"Last name\" = 'O''Hara \"x\"' and score * 2 = 3 and {yes} and {tag} = 'a'
            or n = 2 and id is not null and \"Last name\" is null and score is null and vip is null and tags is null"
    );
    let bulk = members.home.bulk(definition.clone(), &source, &["n"], &apply).unwrap();
    bulk.check().await.unwrap();
    let store = members.store();
    let mut staging = Staging::begin(store.as_ref(), &definition, "typed").await.unwrap();
    let row = json!({ "id": 7, "Last name": "O'Hara \"x\"", "score": 1.5, "vip": true, "tags": ["a"] });
    staging.add(&row).await.unwrap();
    let row = json!({ "id": i64::MAX, "Last name": null, "score": null, "vip": null, "tags": null });
    staging.add(&row).await.unwrap();
    let bad = staging.add(&json!({ "id": "x" })).await.unwrap_err();
    assert!(matches!(&bad, StoreError::Bulk(InvalidBulk::Row { number: 3, .. })), "{bad}");
    let job = staging.start(job(&definition)).await.unwrap().job;
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 2), "{view:#?}");
    assert_eq!(members.notes(job).await, 2);
}

pub(crate) async fn staging_that_is_cut_short_leaves_nothing_that_runs_and_is_removed(members: Members) {
    let bulk = notes::letter(members.home.as_ref(), 400);
    drop(staging(&members, bulk.definition(), 0..3_000).await);
    members.worker().bulk(bulk.clone()).drain().await.unwrap();
    assert_eq!(members.store().bulks(&BulkFilter::default()).await.unwrap().len(), 0);
    prune(&members).await;
    let kept = if members.is_sqlite() { 3_000 } else { 0 };
    assert_eq!(staged_rows(&members).await, kept, "the rows of a run that can be resumed are kept");
    age(&members).await;
    prune(&members).await;
    assert_eq!((staged_rows(&members).await, staged_files(&members).await), (0, 0));

    let given_up = staging(&members, bulk.definition(), 0..3_000).await;
    given_up.give_up().await.unwrap();
    assert_eq!((staged_rows(&members).await, staged_files(&members).await), (0, 0));
}

pub(crate) async fn what_retention_has_removed_is_not_started(members: Members) {
    let bulk = notes::letter(members.home.as_ref(), 400);
    let mut slow = staging(&members, bulk.definition(), 0..1_500).await;
    age(&members).await;
    prune(&members).await;
    if !members.is_sqlite() {
        // On PostgreSQL, rows are staged in one transaction. Others cannot see them, so retention does not remove them.
        let made = slow.start(job(bulk.definition())).await.unwrap();
        assert_eq!(members.drain(&bulk, made.job).await.counts.done, 1_500);
        return;
    }
    let lost = |error: &StoreError| matches!(error, StoreError::Bulk(InvalidBulk::StagingLost { .. }));
    for id in 0..999 {
        if let Err(error) = slow.add(&json!({ "id": id, "name": "" })).await {
            assert!(lost(&error), "{error}");
        }
    }
    let error = slow.start(job(bulk.definition())).await.unwrap_err();
    assert!(lost(&error), "{error}");
    assert_eq!(members.store().bulks(&BulkFilter::default()).await.unwrap().len(), 0);
    assert_eq!(staged_rows(&members).await, 0);
}

pub(crate) async fn a_file_whose_key_was_there_before_is_not_kept(members: Members) {
    let bulk = notes::letter(members.home.as_ref(), 400);
    let keyed = || job(bulk.definition()).key("may");
    let first = staging(&members, bulk.definition(), 0..10).await.start(keyed()).await.unwrap();
    let again = staging(&members, bulk.definition(), 0..3_000).await.start(keyed()).await.unwrap();
    assert_eq!((again.job, again.duplicate, first.duplicate), (first.job, true, false));
    assert_eq!((staged_rows(&members).await, staged_files(&members).await), (10, 1));
}

pub(crate) async fn a_run_over_a_file_without_one_fails_and_says_so(members: Members) {
    let bulk = notes::letter(members.home.as_ref(), 400);
    let job = members.start(&bulk).await;
    let view = members.drain(&bulk, job).await;
    assert_eq!(view.state, JobState::Failed, "{view:#?}");
    let why = members.scene.history(job).await.into_iter().find_map(|entry| entry.error_message).unwrap();
    assert!(why.contains("was started without one") && why.contains("--from FILE"), "{why}");
    let plain = members.notify(10);
    let store = members.store();
    let refused = Staging::begin(store.as_ref(), plain.definition(), "x").await.err().unwrap();
    assert!(matches!(refused, StoreError::Bulk(InvalidBulk::NotOverFile { .. })), "{refused}");
}

/// Works even if the first run is deleted before the second one processes its rows.
pub(crate) async fn rows_that_failed_are_tried_again_from_the_file(members: Members) {
    members.home.tamper("create table public.barred (member bigint primary key)").await;
    members.home.tamper("insert into public.barred values (3), (77), (299)").await;
    let apply = "insert into note (run, member) select :bulk_id,
        case when exists (select 1 from barred b where b.member = chunk.id) then null else id end from chunk";
    let letter = notes::letter(members.home.as_ref(), 50);
    let definition = Definition { failures_max: 10, ..letter.definition().clone() };
    let source = definition.columns.clone().unwrap().source(notes::dialect(members.home.as_ref()));
    let bulk = members.home.bulk(definition, &source, &["n"], apply).unwrap();
    let job = start(&members, &bulk, 0..300).await;
    let view = members.drain(&bulk, job).await;
    assert_eq!(
        (view.state, view.counts.done, view.counts.failed),
        (JobState::Succeeded, 297, 3),
        "{view:#?}"
    );
    assert_eq!(
        members.failed(job).await,
        ["4", "78", "300"],
        "the failures have the numbers of their lines in the file"
    );
    members.home.tamper("delete from public.barred").await;
    let again = members.store().retry_bulk_failures(job).await.unwrap().job;
    prune(&members).await;
    assert!(members.store().job(job).await.unwrap().is_none(), "the first run is deleted");
    assert_eq!(staged_rows(&members).await, 300, "the other run still uses the rows");
    let view = members.drain(&bulk, again).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 3), "{view:#?}");
    members.assert_once_each(job, 300).await;
    prune(&members).await;
    assert_eq!((staged_rows(&members).await, staged_files(&members).await), (0, 0));
}

pub(crate) async fn rows_of_a_file_become_jobs_or_go_elsewhere(members: Members) {
    let letter = notes::letter(members.home.as_ref(), 40);
    let columns = letter.definition().columns.clone().unwrap();
    let source = columns.source(notes::dialect(members.home.as_ref()));
    let template = NewJob::new("child", &()).unwrap();
    let definition = letter.definition().clone();
    let work = members.home.bulk_work(&definition, &source, &["n"], Command::Children(template)).unwrap();
    let bulk = Bulk::new(definition.clone(), work);
    let job = start(&members, &bulk, 0..100).await;
    members.drain(&bulk, job).await;
    let children = "select count(distinct payload ->> 'id') from milepost.job where kind = 'child'";
    assert_eq!(members.home.count(children).await, 100);

    let rows = members.home.bulk_rows(&definition, &source, &["n"]).unwrap();
    rows.check().await.unwrap();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let bulk = Bulk::elsewhere(definition, rows, {
        let seen = seen.clone();
        move |context: milepost::Context| {
            let payload: serde_json::Value = serde_json::from_str(&context.job().payload).unwrap();
            seen.lock().unwrap().extend(payload["rows"].as_array().unwrap().iter().cloned());
            async { Ok(milepost::Outcome::Completed) }
        }
    });
    let job = start(&members, &bulk, 0..100).await;
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 100), "{view:#?}");
    let seen = seen.lock().unwrap();
    assert_eq!((seen.len(), &seen[6]), (100, &json!({ "n": 7, "id": 6, "name": "member 6" })));
}

pub(crate) async fn a_trial_over_a_file_leaves_nothing(members: Members) {
    let bulk = notes::letter(members.home.as_ref(), 400);
    let definition = bulk.definition();
    let columns = definition.columns.clone().unwrap();
    let source = columns.source(notes::dialect(members.home.as_ref()));
    let work = members.home.bulk_work(definition, &source, &["n"], Command::Sql(notes::APPLY)).unwrap();
    let run = milepost::Run { job: JobId::new(), token: milepost::RunToken(0) };
    let order = milepost::bulk::Order { run, payload: "{}".to_owned(), nominal_at: None };
    let staged = (0..30).map(|id| columns.row_of_json(&format!("{{\"id\": {id}, \"name\": \"\"}}")).unwrap());
    let trial = Trial { rows: 10, chunks: 2, staged: staged.collect() };
    let rehearsal = work.rehearse(&order, &trial).await.unwrap();
    let rows: Vec<u32> = rehearsal.chunks.iter().map(|(rows, _)| *rows).collect();
    assert_eq!((rows, rehearsal.failure), (vec![10, 10], None));
    assert_eq!(
        (staged_rows(&members).await, members.home.count("select count(*) from public.note").await),
        (0, 0)
    );
}

pub(crate) async fn a_run_over_a_file_is_taken_up_without_waiting_for_anybody(members: Members) {
    let bulk = notes::letter(members.home.as_ref(), 400);
    start(&members, &bulk, 0..20).await;
    let order = members.claim(&bulk).await;
    let columns = bulk.definition().columns.clone().unwrap();
    let source = columns.source(notes::dialect(members.home.as_ref()));
    let work =
        members.home.bulk_work(bulk.definition(), &source, &["n"], Command::Sql(notes::APPLY)).unwrap();
    let (position, mut run) = work.take(&order).await.unwrap();
    assert!(position.surveyed, "the targets are known since the start");
    assert!(matches!(run.chunk(50).await.unwrap(), Chunked::Done(done) if done.exhausted && done.rows == 20));
}

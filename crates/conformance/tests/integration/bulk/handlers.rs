//! Chunks that Rust functions handle, child jobs, and effects outside of the database.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use milepost::bulk::{Bulk, Definition, Sizing};
use milepost::{Context, JobError, JobId, JobState, NewJob, Outcome, Verb};
use milepost_core::history::HistoryPart;
use milepost_testkit::home::Command;
use milepost_testkit::notes::{self, SOURCE};
use serde_json::Value;

use crate::bulk::members::Members;

fn bulk(members: &Members, definition: Definition, deed: Command<'_>) -> Bulk {
    let work = members.home.bulk_work(&definition, SOURCE, &["id"], deed).unwrap();
    Bulk::new(definition, work)
}

pub(crate) async fn a_function_has_its_effects_in_the_chunks_own_commit(members: Members) {
    members.add(0..300).await;
    let bulk = bulk(&members, notes::definition("rust", 40), Command::Function);
    bulk.check().await.unwrap();
    let job = members.start(&bulk).await;
    let order = members.claim(&bulk).await;
    let work = members.home.bulk_work(bulk.definition(), SOURCE, &["id"], Command::Function).unwrap();
    let (_, mut run) = work.take(&order).await.unwrap();
    while !matches!(run.survey().await.unwrap(), milepost_core::bulk::run::Surveyed::Frozen(_)) {}
    run.chunk(40).await.unwrap();
    drop(run);
    members.rescue().await;
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 300), "{view:#?}");
    members.assert_once_each(job, 300).await;
}

pub(crate) async fn each_target_has_its_child_job_once(members: Members) {
    members.add(0..300).await;
    let long = if members.is_sqlite() { "hex(zeroblob(1048576))" } else { "repeat('x', 2097152)" };
    members.home.tamper(&format!("update public.member set name = {long} where id in (5, 150)")).await;
    let template = NewJob::new("child", &()).unwrap().queue("children");
    let definition = Definition { failures_max: 10, ..notes::definition("parents", 40) };
    let bulk = bulk(&members, definition, Command::Children(template));
    let job = members.start(&bulk).await;
    let view = members.drain(&bulk, job).await;
    assert_eq!(
        (view.state, view.counts.done, view.counts.failed),
        (JobState::Succeeded, 298, 2),
        "{view:#?}"
    );
    assert_eq!(members.failed(job).await, ["5", "150"]);
    let children =
        async || members.home.count("select count(*) from milepost.job where kind = 'child'").await;
    assert_eq!(children().await, 298);

    // One of the existing children belongs to a target whose id is equal to the position of the failure.
    members.home.tamper("update public.member set name = 'short' where id in (5, 150)").await;
    let again = members.store().retry_bulk_failures(job).await.unwrap().job;
    let view = members.drain(&bulk, again).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 2), "{view:#?}");
    assert_eq!(children().await, 300, "the targets that failed have their jobs now");
    let distinct = "select count(distinct payload ->> 'id') from milepost.job where kind = 'child'";
    assert_eq!(members.home.count(distinct).await, 300);
}

pub(crate) async fn targets_with_the_same_key_have_no_child_job_and_fail_together(members: Members) {
    members
        .home
        .tamper(
            "create table public.visit (place bigint not null, who text not null); create index visit_place on public.visit (place);
             insert into public.visit values (1, 'a'), (2, 'b'), (2, 'c'), (2, 'd'), (3, 'e'), (4, 'f'), (4, 'g')",
        )
        .await;
    let source = "select place, who from visit where place > :cursor order by place limit :limit";
    let definition = Definition { failures_max: 10, ..notes::definition("visits", 4) };
    let template = NewJob::new("child", &()).unwrap();
    let work = members.home.bulk_work(&definition, source, &["place"], Command::Children(template)).unwrap();
    let bulk = Bulk::new(definition, work);
    let job = members.start(&bulk).await;
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.done, view.counts.failed), (JobState::Succeeded, 2, 2), "{view:#?}");
    assert_eq!(members.home.count("select count(*) from milepost.job where kind = 'child'").await, 2);
    assert!(members.failures(job).await.iter().all(|failure| failure.code == "same_key"));
}

pub(crate) async fn child_jobs_are_made_once_although_a_worker_dies(members: Members) {
    members.add(0..100).await;
    let template = NewJob::new("child", &()).unwrap();
    let bulk = bulk(&members, notes::definition("parents", 40), Command::Children(template.clone()));
    let job = members.start(&bulk).await;
    let order = members.claim(&bulk).await;
    let work =
        members.home.bulk_work(bulk.definition(), SOURCE, &["id"], Command::Children(template)).unwrap();
    let (_, mut run) = work.take(&order).await.unwrap();
    while !matches!(run.survey().await.unwrap(), milepost_core::bulk::run::Surveyed::Frozen(_)) {}
    run.chunk(40).await.unwrap();
    drop(run);
    members.rescue().await;
    let view = members.drain(&bulk, job).await;
    assert_eq!(view.state, JobState::Succeeded);
    assert_eq!(members.home.count("select count(*) from milepost.job where kind = 'child'").await, 100);
    members.assert_never_back(job).await;
}

/// A chunk as it was passed to the function.
#[derive(Clone, Debug, PartialEq)]
struct HandedOut {
    key: String,
    ids: Vec<i64>,
}

type Journal = Arc<Mutex<Vec<HandedOut>>>;

/// Records each chunk. Is slow for the first chunk, and panics at its first attempt for the second one.
async fn push(context: Context, journal: Journal) -> Result<Outcome, JobError> {
    let payload: Value = serde_json::from_str(&context.job().payload)?;
    assert_eq!(payload["bulk_id"], context.run().job.to_string());
    assert_eq!(payload["params"]["to"], "all");
    let ids = payload["rows"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect();
    let handed_out = HandedOut { key: context.idempotency_key(), ids };
    let before = {
        let mut journal = journal.lock().unwrap();
        journal.push(handed_out);
        journal.len()
    };
    if before == 1 {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert!(before != 2, "panic on purpose, after the effect");
    Ok(Outcome::Done)
}

pub(crate) async fn a_chunk_that_is_done_elsewhere_is_handed_out_again_as_it_was(members: Members) {
    members.add(0..1_000).await;
    let definition = Definition {
        sizing: Sizing { target: Duration::from_millis(50), rows_min: 10, rows_max: 200 },
        ..notes::definition("push", 200)
    };
    let rows = members.home.bulk_rows(&definition, SOURCE, &["id"]).unwrap();
    let journal = Journal::default();
    let of_function = journal.clone();
    let bulk = Bulk::elsewhere(definition, rows, move |context| push(context, of_function.clone()));
    bulk.check().await.unwrap();
    let job = members.start_with(&bulk, serde_json::json!({ "to": "all" })).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    let view = members.until_state(job, JobState::Succeeded).await;
    assert_eq!(view.counts.done, 1_000);
    worker.shutdown().await;

    let journal = journal.lock().unwrap().clone();
    assert!(journal[1].ids.len() < journal[0].ids.len(), "chunks became smaller: {journal:?}");
    assert_eq!(journal[1], journal[2], "the repeated chunk has the same targets and the same key");
    let mut once = journal.clone();
    once.remove(1);
    let ids: Vec<i64> = once.iter().flat_map(|chunk| chunk.ids.clone()).collect();
    assert_eq!(ids, (0..1_000).collect::<Vec<_>>(), "all targets, in the order of their keys");
    let keys: std::collections::HashSet<&String> = once.iter().map(|chunk| &chunk.key).collect();
    assert_eq!(keys.len(), once.len(), "each chunk has a different key");
    assert!(keys.iter().all(|key| key.starts_with(&job.to_string())));
}

pub(crate) async fn a_target_that_cannot_be_read_fails_alone_and_the_rest_is_handed_out(members: Members) {
    members.add(0..100).await;
    // SQLite divides by zero to NULL.
    let bad: &[i64] = if members.is_sqlite() { &[] } else { &[57, 58] };
    let source = "select m.id, 100 / (case when m.id in (57, 58) then 0 else 1 end) as share from member m \
                  where m.id > :cursor order by m.id limit :limit";
    let definition = Definition { failures_max: 2, ..notes::definition("push", 40) };
    let rows = members.home.bulk_rows(&definition, source, &["id"]).unwrap();
    let handed_out = Arc::new(Mutex::new(Vec::new()));
    let of_function = handed_out.clone();
    let bulk = Bulk::elsewhere(definition, rows, move |context| {
        let payload: Value = serde_json::from_str(&context.job().payload).unwrap();
        let ids = payload["rows"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap());
        of_function.lock().unwrap().extend(ids);
        std::future::ready(Ok(Outcome::Done))
    });
    let view = members.run(&bulk).await;
    let failed = bad.len() as u64;
    let counts = (view.counts.done, view.counts.failed);
    assert_eq!((view.state, counts), (JobState::Succeeded, (100 - failed, failed)), "{view:#?}");
    let expected: Vec<i64> = (0..100).filter(|id| !bad.contains(id)).collect();
    assert_eq!(*handed_out.lock().unwrap(), expected);
    let failures = members.store().bulk_failures(view.id, 0, 10).await.unwrap();
    let codes: Vec<(String, &str)> =
        failures.iter().map(|failure| (failure.key.to_string(), failure.code.as_str())).collect();
    let expected: Vec<_> = bad.iter().map(|id| (id.to_string(), "22012")).collect();
    assert_eq!(codes, expected);
}

pub(crate) async fn targets_without_an_effect_do_not_count_as_done(members: Members) {
    members.add(0..5).await;
    let definition = notes::definition("push", 200);
    let bulk = Bulk::new(definition.clone(), members.home.bulk_rows(&definition, SOURCE, &["id"]).unwrap());
    let job = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    let view = members.until_state(job, JobState::Failed).await;
    assert_eq!(view.counts.done, 0);
    worker.shutdown().await;
    let failed = members.home.store().history(job, HistoryPart::Newest { limit: 1 }).await.unwrap();
    assert_eq!(failed[0].error_code.as_deref(), Some("no_effect"));
}

pub(crate) async fn a_repeated_chunk_whose_targets_have_changed_has_another_key(members: Members) {
    members.add(0..40).await;
    let definition = notes::definition("push", 200);
    let rows = members.home.bulk_rows(&definition, SOURCE, &["id"]).unwrap();
    let journal = Journal::default();
    let (of_function, of_members) = (journal.clone(), members.clone());
    let bulk = Bulk::elsewhere(definition, rows, move |context| {
        let (journal, members) = (of_function.clone(), of_members.clone());
        async move {
            let first = {
                let mut journal = journal.lock().unwrap();
                journal.push(HandedOut { key: context.idempotency_key(), ids: Vec::new() });
                journal.len() == 1
            };
            if !first {
                return Ok(Outcome::Done);
            }
            members.home.tamper("update public.member set name = 'another' where id = 7").await;
            Err(JobError::retryable("busy", "not now"))
        }
    });
    let job = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    members.until_state(job, JobState::Succeeded).await;
    worker.shutdown().await;
    let journal = journal.lock().unwrap().clone();
    assert_ne!(journal[0].key, journal[1].key, "the chunk with changed content has a different key");
}

pub(crate) async fn a_run_starts_the_next_one_with_its_end(members: Members) {
    members.add(0..50).await;
    let second = members.notify_as(notes::definition("second", 40));
    let first = members.notify_as(notes::definition("first", 40)).then(second.definition().clone());
    let job = members.start_with(&first, serde_json::json!({ "place": "x" })).await;
    members.worker().bulk(first).bulk(second).drain().await.unwrap();
    let runs = members
        .store()
        .bulks(&milepost::bulk::BulkFilter { name: Some("second".to_owned()), ..Default::default() })
        .await
        .unwrap();
    assert_eq!(runs.len(), 1, "{runs:#?}");
    let next: JobId = runs[0].id;
    assert_eq!(runs[0].state, JobState::Succeeded);
    let payload: Value = serde_json::from_str(members.scene.view(next).await.payload.get()).unwrap();
    assert_eq!(payload, serde_json::json!({ "place": "x", "previous": job.to_string() }));
    members.assert_once_each(job, 50).await;
    members.assert_once_each(next, 50).await;
    assert_eq!(members.scene.count(next, Verb::Claim).await, 1);
}

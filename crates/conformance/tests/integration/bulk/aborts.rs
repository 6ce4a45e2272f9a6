//! Runs that operators stop and resume.

use milepost::bulk::{BulkFilter, Definition, Load, Order, Sizing, Trial};
use milepost::{JobId, JobState, NewJob, Operation, Run, RunToken, Schedule, Source, Spec, Verb, Worker};
use milepost_conformance::audit::{acting, only_entry};
use milepost_conformance::changes::{assert_emitted, events_of, want_kinds};
use milepost_core::schedule::Made;
use milepost_testkit::home::{Command, Home, PostgresHome, SqliteHome};
use milepost_testkit::scene::LONG;
use milepost_testkit::{notes, wait};

use crate::bulk::members::{Gate, Members};

/// Returns a definition with twenty chunks of five rows per second.
fn slow(name: &str) -> Definition {
    Definition {
        sizing: Sizing { rows_min: 5, rows_max: 5, ..Sizing::default() },
        load: Load { rows_per_s: Some(100.0), duty: 1.0 },
        ..notes::definition(name, 5)
    }
}

/// Returns the same with one chunk every five seconds: the run does not end before the test removes the rate limit.
fn crawling(name: &str) -> Definition {
    Definition { load: Load { rows_per_s: Some(1.0), duty: 1.0 }, ..slow(name) }
}

/// Aborts a run. Returns how many chunks were committed when the abort was acknowledged.
async fn abort(members: &Members, job: JobId) -> u64 {
    let operation = Operation::new(Verb::Abort).grace(LONG).note("requested by the test");
    members.scene.operate(job, operation).await.map(drop).unwrap();
    members.view(job).await.counts.chunks
}

pub(crate) async fn at_most_the_chunk_in_hand_commits_after_an_abort(members: Members) {
    // Enough members that the run does not end before it is stopped; without pauses, so that an abort always occurs during a chunk.
    members.add(0..50_000).await;
    let definition = Definition {
        sizing: Sizing { rows_min: 10, rows_max: 10, ..Sizing::default() },
        ..notes::definition("fast", 10)
    };
    let bulk = members.notify_as(definition);
    let job = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    for stop in 1..=5_u64 {
        members.until(job, "some chunks are done", |view| view.counts.chunks >= stop * 3).await;
        let acknowledged = abort(&members, job).await;
        let view = members.until_state(job, JobState::Aborted).await;
        assert!(view.counts.chunks <= acknowledged + 1, "{} chunks after {acknowledged}", view.counts.chunks);
        assert_eq!(members.notes(job).await as u64, view.counts.done, "the count matches the effects");
        let entry = members.scene.history(job).await.pop().unwrap();
        assert_eq!(entry.verb, Verb::Abort);
        if stop == 5 {
            members.hurry(job).await;
        }
        members.operate(job, Verb::Resume).await;
    }
    members.until_state(job, JobState::Succeeded).await;
    members.assert_once_each(job, 50_000).await;
    worker.shutdown().await;
}

pub(crate) async fn a_run_can_be_aborted_wherever_it_waits(members: Members) {
    members.add(0..20).await;
    let gate = Gate::closed();
    let bulk = members.notify_as(slow("held")).throttle(gate.clone());
    let before = members.start(&bulk).await;
    abort(&members, before).await;
    assert_eq!(members.scene.state(before).await, JobState::Aborted, "aborted before its first chunk");

    let held = members.start(&bulk).await;
    let waiting = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    members.until(held, "the bulk job is held", |view| view.throttle.is_some()).await;
    assert_eq!(members.scene.state(waiting).await, JobState::Blocked);
    abort(&members, waiting).await;
    assert_eq!(members.scene.state(waiting).await, JobState::Aborted, "aborted while it waits for its group");
    abort(&members, held).await;
    members.until_state(held, JobState::Aborted).await;

    gate.set(false);
    for job in [before, held, waiting] {
        assert_eq!(members.view(job).await.counts.chunks, 0);
        members.operate(job, Verb::Resume).await;
    }
    for job in [before, held, waiting] {
        members.until_state(job, JobState::Succeeded).await;
        members.assert_once_each(job, 20).await;
        members.scene.assert_history_folds(job).await;
    }
    worker.shutdown().await;
}

pub(crate) async fn a_stop_of_one_run_leaves_the_others_alone(members: Members) {
    members.add(0..60).await;
    let [aborted, canceled, other] =
        ["aborted", "canceled", "other"].map(|name| members.notify_as(crawling(name)));
    let mut jobs = Vec::new();
    for bulk in [&aborted, &canceled, &other] {
        jobs.push(members.start(bulk).await);
    }
    let worker = members.worker().bulk(aborted).bulk(canceled).bulk(other).start().await.unwrap();
    for &job in &jobs {
        members.until(job, "a chunk is done", |view| view.counts.chunks > 0).await;
    }
    abort(&members, jobs[0]).await;
    members.operate(jobs[1], Verb::Cancel).await;
    members.until_state(jobs[0], JobState::Aborted).await;
    let view = members.until_state(jobs[1], JobState::Canceled).await;
    assert!(members.notes(jobs[1]).await < 60, "the canceled run processed more chunks: {view:#?}");
    members.hurry(jobs[2]).await;
    members.until_state(jobs[2], JobState::Succeeded).await;
    members.assert_once_each(jobs[2], 60).await;
    for job in jobs {
        members.scene.assert_history_folds(job).await;
    }
    worker.shutdown().await;
}

pub(crate) async fn a_run_that_is_aborted_and_goes_on_is_told(members: Members) {
    members.add(0..60).await;
    let bulk = members.notify_as(crawling("told"));
    want_kinds(&members.scene.store, "audit", &["told"]).await;
    let job = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    members.until(job, "a chunk is done", |view| view.counts.chunks > 0).await;
    abort(&members, job).await;
    members.until_state(job, JobState::Aborted).await;
    members.hurry(job).await;
    members.operate(job, Verb::Resume).await;
    members.until_state(job, JobState::Succeeded).await;
    worker.shutdown().await;
    let states: Vec<String> = events_of(&members.scene.store, "milepost.job.told", job)
        .await
        .into_iter()
        .map(|e| e.event_type)
        .collect();
    for state in ["running", "aborted", "pending", "succeeded"] {
        assert!(states.contains(&format!("milepost.job.{state}")), "{states:?}");
    }
    assert_emitted(&members.scene, job).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hard_abort_rolls_the_chunk_back() {
    let members = Members::on(PostgresHome::fresh().await).await;
    members.add(0..30).await;
    members
        .home
        .tamper("create table public.nap (s int not null); insert into public.nap values (600)")
        .await;
    let apply = "insert into note select :bulk_id, id from chunk
                 where id < 10 or pg_sleep((select s from nap)) is not null";
    let sized = Definition {
        sizing: Sizing { rows_min: 10, rows_max: 10, ..Sizing::default() },
        ..notes::definition("naps", 10)
    };
    let bulk = members.home.bulk(sized, notes::SOURCE, &["id"], apply).unwrap();
    let job = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    members.until(job, "a chunk is done", |view| view.counts.chunks == 1).await;
    wait::until("the second chunk sleeps", || async { sleepers(&members).await == 1 }).await;

    abort(&members, job).await;
    let store = acting(&members.store());
    assert!(store.interrupt_bulk(job).await.unwrap(), "no statement to cancel");
    let view = members.until_state(job, JobState::Aborted).await;
    assert_eq!((view.counts.chunks, members.notes(job).await), (1, 10), "the chunk was rolled back");
    assert_eq!(sleepers(&members).await, 0);
    assert!(!store.interrupt_bulk(job).await.unwrap(), "a statement was canceled although none was running");
    let entry = only_entry(&members.store()).await;
    assert_eq!((entry.what.as_str(), entry.subject), ("bulk.interrupt", Some(job.to_string())));

    members.home.tamper("update public.nap set s = 0").await;
    members.operate(job, Verb::Resume).await;
    members.until_state(job, JobState::Succeeded).await;
    members.assert_once_each(job, 30).await;
    worker.shutdown().await;
}

/// A worker drops a dry run when its job is canceled; so does the end of its process.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_that_is_given_up_ends_in_the_database_too() {
    let members = Members::on(PostgresHome::fresh().await).await;
    members.add(0..30).await;
    let apply = "insert into note select :bulk_id, id from chunk where pg_sleep(600) is not null";
    let definition = notes::definition("naps", 10);
    let work = members.home.bulk_work(&definition, notes::SOURCE, &["id"], Command::Sql(apply)).unwrap();
    let run = Run { job: JobId::new(), token: RunToken(0) };
    let order = Order { run, payload: "{}".to_owned(), nominal_at: None };
    let trial = Trial { rows: 10, chunks: 1, staged: Vec::new() };
    let dry_run = tokio::spawn(async move { work.rehearse(&order, &trial).await });
    wait::until("the chunk sleeps", || async { sleepers(&members).await == 1 }).await;
    dry_run.abort();
    wait::until("its session has ended", || async { sleepers(&members).await == 0 }).await;
}

/// All other writers of a file wait for a dry run.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_of_expensive_rows_applies_only_some_of_them_on_a_file() {
    let members = Members::on(SqliteHome::fresh().await).await;
    members.add(0..5_000).await;
    let apply = "insert into note select :bulk_id, id from chunk where
                 (with recursive n (i) as (select id union all select i + 1 from n where i < 50000) select sum(i) from n) > 0";
    let definition = notes::definition("costs", 10);
    let work = members.home.bulk_work(&definition, notes::SOURCE, &["id"], Command::Sql(apply)).unwrap();
    let run = Run { job: JobId::new(), token: RunToken(0) };
    let order = Order { run, payload: "{}".to_owned(), nominal_at: None };
    let trial = Trial { rows: 5_000, chunks: 3, staged: Vec::new() };
    let rehearsal = work.rehearse(&order, &trial).await.unwrap();
    let [(rows, _)] = rehearsal.chunks[..] else { panic!("{rehearsal:?}") };
    assert!((10..5_000).contains(&rows), "{rehearsal:?}");
}

async fn sleepers(members: &Members) -> i64 {
    let sql = "select count(*) from pg_stat_activity where application_name = 'milepost bulk naps'
               and wait_event = 'PgSleep' and datname = current_database()";
    members.home.count(sql).await
}

/// A second worker takes over the run of a stopped worker, even in the middle of a chunk.
#[tokio::test(flavor = "multi_thread")]
async fn a_takeover_ends_the_chunk_that_the_last_worker_was_in() {
    let home = PostgresHome::fresh().await;
    let members = Members::on(home).await;
    members.add(0..30).await;
    let bulk = members.notify(10);
    let job = members.start(&bulk).await;
    let mut held = members.take(&bulk).await;
    held.survey().await;
    held.chunk(10).await;
    // The process hangs in the middle of a chunk and holds the lock on the run's progress.
    members
        .home
        .tamper("create table public.nap (s int not null); insert into public.nap values (600)")
        .await;
    members.home.tamper("create function public.doze() returns trigger language plpgsql as $$ begin
        if new.run like '%' and exists (select 1 from public.nap where s > 0) then perform pg_sleep(600); end if; return new; end $$;
        create trigger doze before insert on public.note for each row execute function public.doze()").await;
    let chunk = tokio::spawn(async move { (held.run.chunk(10).await, held) });
    wait::until("the chunk waits", || async {
        members.home.count("select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()").await == 1
    })
    .await;
    // The trigger of the hanging chunk continues to sleep; that of other chunks does not sleep any more.
    members.home.tamper("update public.nap set s = 0").await;
    members.rescue().await;
    let worker = Worker::builder(members.store()).bulk(bulk).start().await.unwrap();
    members.until_state(job, JobState::Succeeded).await;
    let (ended, mut held) = chunk.await.unwrap();
    assert!(ended.is_err(), "the chunk of the fenced run was committed: {ended:?}");
    assert!(held.run.chunk(10).await.is_err(), "the fenced run committed another chunk");
    members.assert_once_each(job, 30).await;
    worker.shutdown().await;
    let _: &dyn Home = members.home.as_ref();
}

/// Creates a run by the schedule `nightly`.
async fn run_now(members: &Members) -> JobId {
    match members.store().run_schedule_now("nightly", None).await.unwrap() {
        Made::Job(run) => run.job,
        Made::Batch(batch) => panic!("a batch: {batch:?}"),
    }
}

pub(crate) async fn a_run_of_a_schedule_that_ends_before_its_first_chunk_is_listed(members: Members) {
    let bulk = members.notify_as(Definition { max_attempts: 1, ..notes::definition("early", 10) });
    let store = members.store();
    store.put_bulk(bulk.definition(), Source::Operator).await.map(drop).unwrap();
    let job = bulk.definition().direct(NewJob::new("early", &serde_json::json!({})).unwrap());
    let nightly = Schedule::new("nightly", Spec::cron("0 3 * * *", "UTC").unwrap(), job);
    store.put_schedule(&nightly, Source::Operator).await.map(drop).unwrap();
    let listed = async || {
        let views = store.bulks(&BulkFilter::default()).await.unwrap();
        views.into_iter().map(|view| (view.id, view.state)).collect::<Vec<_>>()
    };
    let stopped = run_now(&members).await;
    members.operate(stopped, Verb::Abort).await;
    assert_eq!(listed().await, [(stopped, JobState::Aborted)]);
    let failed = run_now(&members).await;
    members.claim(&bulk).await;
    members.rescue().await;
    assert_eq!(listed().await, [(failed, JobState::Failed), (stopped, JobState::Aborted)]);
    members.operate(stopped, Verb::Cancel).await;
    assert_eq!(listed().await, [(failed, JobState::Failed), (stopped, JobState::Canceled)]);
    assert_eq!(members.view(stopped).await.state, JobState::Canceled, "it is shown by its ID");
}

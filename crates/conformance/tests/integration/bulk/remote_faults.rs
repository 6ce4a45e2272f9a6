//! Lost workers and sessions, and stopped runs, with targets in another PostgreSQL database.

use std::sync::Arc;
use std::time::Duration;

use milepost::bulk::Bulk;
use milepost::{JobId, JobState, Operation, StoreError, Verb};
use milepost_core::bulk::progress::Step;
use milepost_core::bulk::run::{Parts, Surveyed};
use milepost_core::port::BulkWork;
use milepost_postgres::bulk::Effect;
use milepost_testkit::notes::{self, APPLY};
use milepost_testkit::process::{Process, SHOP, Settings};
use milepost_testkit::proxy::Proxy;
use milepost_testkit::scene::LONG;
use milepost_testkit::wait;

use crate::bulk::shop::{Shop, paced};
use crate::bulk::workers::{has_moved, kill_or_freeze};

milepost_testkit::on_each_home! { crate::bulk::shop::Shop::on =>
    workers_that_die_and_freeze_miss_no_target,
    a_worker_whose_run_was_taken_over_cannot_move_the_cursor,
    a_takeover_ends_the_chunk_that_the_last_worker_is_in,
    the_chunk_of_a_worker_that_is_gone_ends_although_nobody_takes_over,
    a_run_stops_and_goes_on_after_its_cursor,
    a_hard_abort_rolls_the_chunk_in_hand_back,
    a_run_whose_session_is_ended_goes_on_by_itself,
    a_run_whose_network_becomes_silent_goes_on_by_itself,
}

/// With fewer deaths the test covers too little.
const DEATHS_MIN: i64 = 3;
/// More deaths add no coverage, and each takes long on a busy machine.
const DEATHS_MAX: i64 = 8;

/// Starts a worker process whose members are in the shop.
fn worker(shop: &Shop, settings: Settings) -> Process {
    let program = env!("CARGO_BIN_EXE_conformance-worker");
    Process::start_beside(program, &shop.members.home.address(), Some((SHOP, &shop.url)), settings)
}

async fn workers_that_die_and_freeze_miss_no_target(shop: Shop) {
    shop.add(0..60_000).await;
    let bulk = shop.notify(500);
    let settings = Settings::default().bulk_rows(500);
    let worker = || worker(&shop, settings);
    let mut workers = vec![worker(), worker()];
    let mut deaths = 0;
    // On a slow machine, a run can end before there were enough deaths.
    while deaths < DEATHS_MIN {
        let job = shop.members.start(&bulk).await;
        let before = deaths;
        while deaths < DEATHS_MAX && !has_moved(&shop.members, job).await {
            let victim = workers.remove(0);
            workers.push(kill_or_freeze(&shop.members, victim, deaths % 2 == 0, job, worker).await);
            deaths += 1;
        }
        while !has_moved(&shop.members, job).await {}
        assert_no_target_is_missed(&shop, job, 60_000, deaths - before).await;
    }
}

/// Asserts that every member has a note of this run, and that each death repeated at most one chunk of 500.
async fn assert_no_target_is_missed(shop: &Shop, job: JobId, members: u32, deaths: i64) {
    let view = shop.members.until_state(job, JobState::Succeeded).await;
    assert_eq!((view.counts.done, view.counts.failed), (u64::from(members), 0));
    let missed = format!(
        "select count(*) from member m where not exists (select 1 from note n where n.member = m.id and n.run = '{job}')"
    );
    assert_eq!(shop.count(&missed).await, 0, "targets without a note");
    let again = shop.notes(job).await - i64::from(members);
    assert!(again <= deaths * 500, "{again} notes were repeated after {deaths} crashes");
    shop.members.assert_never_back(job).await;
}

async fn a_worker_whose_run_was_taken_over_cannot_move_the_cursor(shop: Shop) {
    shop.add(0..50).await;
    let bulk = shop.notify(10);
    let job = shop.members.start(&bulk).await;
    let order = shop.members.claim(&bulk).await;
    let (_, mut old) = shop.work(shop.members.store(), bulk.definition()).take(&order).await.unwrap();
    while let Surveyed::Held(_) = old.survey().await.unwrap() {}
    old.chunk(10).await.unwrap();
    let before = shop.members.view(job).await;
    shop.members.rescue().await;
    let fenced = |error: StoreError| assert!(matches!(error, StoreError::Fenced(_)), "{error}");
    fenced(old.chunk(10).await.unwrap_err());
    let mut new = shop.take(&bulk).await;
    fenced(old.chunk(10).await.unwrap_err());
    // The old worker had applied a chunk there before it was stopped, and resumes after the takeover.
    let done = Parts { targets: 10, ..Parts::behind(before.upper.clone()) };
    let step = Step { from: before.cursor, parts: done, rows: 10, took: Duration::ZERO };
    fenced(shop.members.store().advance_bulk(order.run, &step).await.unwrap_err());
    fenced(old.end(None).await.unwrap_err());
    for _ in 0..4 {
        new.chunk(10).await;
    }
    assert!(new.chunk(10).await.exhausted);
    new.run.end(None).await.unwrap();
    assert_eq!(shop.members.view(job).await.counts.done, 50);
    shop.assert_noted(job, 50, 0).await;
}

async fn a_takeover_ends_the_chunk_that_the_last_worker_is_in(shop: Shop) {
    shop.add(0..30).await;
    shop.doze_from(10).await;
    let bulk = shop.notify(10);
    let job = shop.members.start(&bulk).await;
    let mut old = shop.take(&bulk).await;
    old.survey().await;
    old.chunk(10).await;
    let standing = tokio::spawn(async move { old.run.chunk(10).await });
    shop.until_asleep().await;
    // The trigger of the hanging chunk continues to sleep; that of other chunks does not sleep any more.
    shop.run("update nap set s = 0").await;
    shop.members.rescue().await;
    let view = shop.members.drain(&bulk, job).await;
    assert_eq!(view.state, JobState::Succeeded, "{view:#?}");
    assert!(standing.await.unwrap().is_err(), "the chunk of the fenced run was committed");
    shop.assert_noted(job, 30, 0).await;
}

async fn the_chunk_of_a_worker_that_is_gone_ends_although_nobody_takes_over(shop: Shop) {
    shop.add(0..30).await;
    shop.doze_from(0).await;
    let bulk = shop.notify(10);
    let job = shop.members.start(&bulk).await;
    let settings = Settings::default().bulk_rows(10);
    let worker = worker(&shop, settings);
    shop.until_asleep().await;
    worker.kill().await;
    let sessions =
        format!("select count(*) from pg_stat_activity where application_name like 'milepost bulk {job} %'");
    wait::until("the session of the run has ended", || async { shop.count(&sessions).await == 0 }).await;
    assert_eq!(shop.notes(job).await, 0);
}

async fn a_run_stops_and_goes_on_after_its_cursor(shop: Shop) {
    // Enough members that the run does not end before it is stopped.
    shop.add(0..20_000).await;
    let bulk = shop.notify_as(paced("notify", 10, 1e6));
    let job = shop.members.start(&bulk).await;
    let worker = shop.members.worker().bulk(bulk).start().await.unwrap();
    for stop in 1..=3_u64 {
        shop.members.until(job, "some chunks are done", |view| view.counts.chunks >= stop * 3).await;
        let operation = Operation::new(Verb::Abort).grace(LONG);
        shop.members.scene.operate(job, operation).await.map(drop).unwrap();
        let acknowledged = shop.members.view(job).await.counts.chunks;
        let view = shop.members.until_state(job, JobState::Aborted).await;
        assert!(view.counts.chunks <= acknowledged + 1, "{} chunks after {acknowledged}", view.counts.chunks);
        assert_eq!(shop.notes(job).await as u64, view.counts.done, "the count matches the effects");
        if stop == 3 {
            shop.members.hurry(job).await;
        }
        shop.members.operate(job, Verb::Resume).await;
    }
    shop.members.until_state(job, JobState::Succeeded).await;
    shop.assert_noted(job, 20_000, 0).await;
    worker.shutdown().await;
}

async fn a_hard_abort_rolls_the_chunk_in_hand_back(shop: Shop) {
    shop.add(0..30).await;
    shop.doze_from(10).await;
    let bulk = shop.notify_as(paced("notify", 10, 10_000.0));
    let job = shop.members.start(&bulk).await;
    let worker = shop.members.worker().bulk(bulk).start().await.unwrap();
    shop.until_asleep().await;
    let operation = Operation::new(Verb::Abort).grace(LONG);
    shop.members.scene.operate(job, operation).await.map(drop).unwrap();
    assert!(shop.shop.interrupt(job).await.unwrap(), "no statement to cancel");
    let view = shop.members.until_state(job, JobState::Aborted).await;
    assert_eq!((view.counts.chunks, shop.notes(job).await), (1, 10), "the chunk was rolled back");
    assert!(!shop.shop.interrupt(job).await.unwrap(), "a statement was canceled although none was running");
    shop.run("update nap set s = 0").await;
    shop.members.operate(job, Verb::Resume).await;
    shop.members.until_state(job, JobState::Succeeded).await;
    shop.assert_noted(job, 30, 0).await;
    worker.shutdown().await;
}

async fn a_run_whose_session_is_ended_goes_on_by_itself(shop: Shop) {
    // So slow that the run does not end before its session has been terminated this often.
    shop.add(0..1_200).await;
    let bulk = shop.notify_as(paced("notify", 10, 30.0));
    let job = shop.members.start(&bulk).await;
    let worker = shop.members.worker().bulk(bulk).start().await.unwrap();
    for _ in 0..5 {
        let at = shop.members.view(job).await.counts.chunks;
        shop.members.until(job, "the run processes more chunks", |view| view.counts.chunks > at + 1).await;
        let ended = format!(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database()
             and application_name like 'milepost bulk {job} %'"
        );
        assert_eq!(shop.count(&ended).await, 1);
    }
    shop.members.hurry(job).await;
    shop.members.until_state(job, JobState::Succeeded).await;
    // If a session is terminated at the moment of its commit, its chunk is applied but not recorded.
    let missed = shop
        .count("select count(*) from member m where not exists (select 1 from note n where n.member = m.id)");
    assert_eq!(missed.await, 0);
    assert!(shop.notes(job).await <= 1_250);
    assert_eq!(shop.members.scene.count(job, Verb::Claim).await, 1, "the run has one attempt");
    worker.shutdown().await;
}

async fn a_run_whose_network_becomes_silent_goes_on_by_itself(shop: Shop) {
    shop.add(0..600).await;
    let (proxy, url) = Proxy::for_url(&shop.url).await;
    let definition = paced("notify", 10, 30.0);
    let effect = Some(Effect::Sql(APPLY.to_owned()));
    let work = notes::remote(&notes::shop(&url), shop.members.store(), &definition, effect);
    let bulk = Bulk::new(definition, Arc::new(work));
    let job = shop.members.start(&bulk).await;
    let worker = shop.members.worker().bulk(bulk).start().await.unwrap();
    shop.members.until(job, "the run processes chunks", |view| view.counts.chunks > 1).await;
    proxy.fall_silent();
    let at = shop.members.view(job).await.counts.chunks;
    shop.members.until(job, "the run processes more chunks", |view| view.counts.chunks > at + 1).await;
    shop.members.hurry(job).await;
    shop.members.until_state(job, JobState::Succeeded).await;
    let missed = shop
        .count("select count(*) from member m where not exists (select 1 from note n where n.member = m.id)");
    assert_eq!(missed.await, 0);
    assert_eq!(shop.members.scene.count(job, Verb::Claim).await, 1, "the run has one attempt");
    worker.shutdown().await;
}

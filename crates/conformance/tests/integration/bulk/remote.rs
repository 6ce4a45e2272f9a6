//! Targets in another PostgreSQL database than the store.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use milepost::bulk::{Bulk, Definition, Effects, EventTemplate, InvalidBulk, Order, Remote, Trial};
use milepost::{JobState, NewJob, Outcome, Run, RunToken, StoreError, Verb, Worker};
use milepost_core::bulk::run::Surveyed;
use milepost_core::port::{BulkWork, Throttle};
use milepost_postgres::bulk::{Database, Effect, Measure, PostgresTargets, ServerThrottle};
use milepost_testkit::faulty::Faulty;
use milepost_testkit::notes::{self, APPLY, SOURCE};
use sqlx::{Connection, Executor, PgConnection};

use crate::bulk::emits::{assert_emitted, notice_event};
use crate::bulk::shop::{Shop, paced};

milepost_testkit::on_each_home! { crate::bulk::shop::Shop::on =>
    every_target_is_applied_on_the_other_database,
    a_chunk_that_the_store_did_not_hear_of_is_done_again_and_no_other,
    bad_rows_are_kept_in_the_store_and_can_be_tried_again,
    what_a_writer_of_the_other_database_commits_late_is_not_missed,
    each_target_has_one_job_although_its_chunk_is_done_again,
    a_target_of_which_no_job_can_be_made_fails_alone,
    each_target_has_one_event_although_its_chunk_is_done_again,
    a_target_that_changes_between_two_tries_has_the_event_of_the_first,
    a_chunk_that_is_done_elsewhere_is_handed_out_again_as_it_was,
    a_rehearsal_leaves_nothing,
    what_the_other_database_does_not_take_or_say_is_told_with_its_name,
}

/// Returns a store that fails to record this number of chunks.
fn deaf(shop: &Shop, chunks: usize) -> Arc<Faulty> {
    let store = Faulty::before(shop.members.store());
    store.advances_failed.store(chunks, Ordering::SeqCst);
    store
}

async fn every_target_is_applied_on_the_other_database(shop: Shop) {
    shop.add(0..1_000).await;
    let bulk = shop.notify(200);
    bulk.check().await.unwrap();
    let definition = bulk.definition();
    assert_eq!(definition.effects, Effects::AtLeastOncePerChunk);
    let place = definition.place.as_deref().unwrap();
    assert!(place.starts_with("database shop (PostgreSQL at 127.0.0.1:"), "{place}");
    shop.members.store().put_bulk(definition, milepost::Source::Config).await.map(drop).unwrap();
    let view = shop.members.run(&bulk).await;
    assert_eq!(view.state, JobState::Succeeded, "{view:#?}");
    assert_eq!((view.counts.done, view.counts.failed, view.total.unwrap().rows), (1_000, 0, 1_000));
    assert!(view.counts.chunks >= 5, "{view:#?}");
    assert_eq!((view.effects, view.place.as_deref()), (Some(Effects::AtLeastOncePerChunk), Some(place)));
    shop.assert_noted(view.id, 1_000, 0).await;
    shop.members.scene.assert_history_folds(view.id).await;
}

async fn a_chunk_that_the_store_did_not_hear_of_is_done_again_and_no_other(shop: Shop) {
    shop.add(0..100).await;
    let definition = paced("notify", 20, 10_000.0);
    let work = shop.work(deaf(&shop, 1), &definition);
    let view = shop.members.run(&Bulk::new(definition, Arc::new(work))).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 100), "{view:#?}");
    shop.assert_noted(view.id, 100, 20).await;
    let doubled = "select max(member) from (select member from note group by member having count(*) > 1) d";
    assert_eq!(
        shop.count(doubled).await,
        19,
        "only the targets of the interrupted chunk were processed twice"
    );
}

async fn bad_rows_are_kept_in_the_store_and_can_be_tried_again(shop: Shop) {
    shop.add(0..200).await;
    shop.run("alter table note add constraint good check (member not in (7, 8, 55, 199))").await;
    let budget = |failures_max| Definition { failures_max, ..notes::definition("notify", 40) };
    let aborted = shop.members.run(&shop.notify_as(budget(1))).await;
    assert_eq!(aborted.state, JobState::Aborted, "more failed than may: {aborted:#?}");
    shop.members.operate(aborted.id, Verb::Cancel).await;

    let bulk = shop.notify_as(budget(10));
    let view = shop.members.run(&bulk).await;
    let counts = (view.counts.done, view.counts.failed);
    assert_eq!((view.state, counts), (JobState::Succeeded, (196, 4)), "{view:#?}");
    assert_eq!(shop.members.failed(view.id).await, ["7", "8", "55", "199"]);
    assert_eq!(shop.members.failures(view.id).await[0].code, "23514");
    shop.assert_noted(view.id, 196, 0).await;

    // One of them fails again: it is identified by its key, not by its position.
    shop.run(
        "alter table note drop constraint good; alter table note add constraint good check (member <> 55)",
    )
    .await;
    let again = shop.members.store().retry_bulk_failures(view.id).await.unwrap().job;
    let retried = shop.members.drain(&bulk, again).await;
    let counts = (retried.counts.done, retried.counts.failed, retried.total.unwrap().rows);
    assert_eq!((retried.state, counts), (JobState::Succeeded, (3, 1, 4)), "{retried:#?}");
    assert_eq!(shop.members.failed(again).await, ["55"]);
    shop.assert_noted(view.id, 199, 0).await;
}

async fn what_a_writer_of_the_other_database_commits_late_is_not_missed(shop: Shop) {
    shop.add(10..50).await;
    let mut writer = PgConnection::connect(&shop.url).await.unwrap();
    writer.execute("begin").await.unwrap();
    writer
        .execute("insert into member values (1, 'x', 'late'), (2, 'x', 'late'), (90, 'x', 'late')")
        .await
        .unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut writer).await.unwrap();
    let bulk = shop.notify(10);
    let job = shop.members.start(&bulk).await;
    // The transactions for which the run waits stay the same, whichever worker has the run.
    let mut first = shop.take(&bulk).await;
    assert!(matches!(first.run.survey().await.unwrap(), Surveyed::Held(_)));
    shop.members.rescue().await;
    let mut later = PgConnection::connect(&shop.url).await.unwrap();
    later.execute("begin").await.unwrap();
    later.execute("insert into member values (3, 'x', 'too late')").await.unwrap();

    let worker = shop.members.worker().bulk(bulk).start().await.unwrap();
    let view =
        shop.members.until(job, "the run reports what it waits for", |view| view.throttle.is_some()).await;
    let why = view.throttle.unwrap();
    assert!(why.contains(&format!("server processes {pid})")), "{why}");
    assert_eq!((view.counts.chunks, view.upper), (0, None));
    writer.execute("commit").await.unwrap();
    let view = shop.members.until_state(job, JobState::Succeeded).await;
    assert_eq!((view.counts.done, view.throttle), (43, None));
    shop.assert_noted(job, 43, 0).await;
    worker.shutdown().await;
}

async fn each_target_has_one_job_although_its_chunk_is_done_again(shop: Shop) {
    shop.add(0..300).await;
    let definition = paced("parents", 100, 100_000.0);
    let template = NewJob::new("child", &()).unwrap().queue("children");
    let remote = notes::remote(&shop.shop, deaf(&shop, 2), &definition, None).enqueue(template);
    let view = shop.members.run(&Bulk::new(definition, Arc::new(remote))).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 300), "{view:#?}");
    let children = "from milepost.job where kind = 'child'";
    let home = &shop.members.home;
    assert_eq!(home.count(&format!("select count(*) {children}")).await, 300);
    assert_eq!(home.count(&format!("select count(distinct payload ->> 'id') {children}")).await, 300);
    shop.members.assert_never_back(view.id).await;
}

async fn a_target_of_which_no_job_can_be_made_fails_alone(shop: Shop) {
    shop.add(0..300).await;
    shop.run("update member set name = repeat('x', 2097152) where id in (5, 150)").await;
    let definition = Definition { failures_max: 10, ..notes::definition("parents", 40) };
    let template = NewJob::new("child", &()).unwrap().queue("children");
    let remote = notes::remote(&shop.shop, shop.members.store(), &definition, None).enqueue(template);
    let bulk = Bulk::new(definition, Arc::new(remote));
    let view = shop.members.run(&bulk).await;
    let counts = (view.counts.done, view.counts.failed);
    assert_eq!((view.state, counts), (JobState::Succeeded, (298, 2)), "{view:#?}");
    assert_eq!(shop.members.failed(view.id).await, ["5", "150"]);

    shop.run("update member set name = 'short' where id = 5").await;
    let again = shop.members.store().retry_bulk_failures(view.id).await.unwrap().job;
    let view = shop.members.drain(&bulk, again).await;
    assert_eq!((view.counts.done, view.counts.failed), (1, 1), "{view:#?}");
    assert_eq!(shop.members.failed(again).await, ["150"]);
    let children = "select count(*) from milepost.job where kind = 'child'";
    assert_eq!(shop.members.home.count(children).await, 299);
}

async fn each_target_has_one_event_although_its_chunk_is_done_again(shop: Shop) {
    shop.add(0..300).await;
    shop.run("update member set place = '' where id = 5").await;
    let definition = Definition { failures_max: 1, ..paced("tell", 100, 100_000.0) };
    let remote = notes::remote(&shop.shop, deaf(&shop, 2), &definition, None).emit(notice_event());
    let bulk = Bulk::new(definition, Arc::new(remote));
    let view = shop.members.run(&bulk).await;
    let counts = (view.counts.done, view.counts.failed);
    assert_eq!((view.state, counts), (JobState::Succeeded, (299, 1)), "{view:#?}");
    assert_eq!(shop.members.failed(view.id).await, ["5"]);
    assert_emitted(&shop.members, 299).await;
    shop.members.assert_never_back(view.id).await;

    let lacks = EventTemplate { aggregate_id: "customer".to_owned(), ..notice_event() };
    let targets = PostgresTargets::new(&shop.shop, SOURCE, &["id".to_owned()], None).unwrap();
    let targets = targets.reading(lacks.columns());
    let refused = milepost_core::port::BulkTargets::check(&targets).await;
    assert!(matches!(refused, Err(StoreError::Bulk(InvalidBulk::NoColumn { .. }))), "{refused:?}");
}

async fn a_target_that_changes_between_two_tries_has_the_event_of_the_first(shop: Shop) {
    shop.add(0..40).await;
    let definition = paced("tell", 40, 100_000.0);
    let run = |store| notes::remote(&shop.shop, store, &definition, None).emit(notice_event());
    let bulk = Bulk::new(definition.clone(), Arc::new(run(shop.members.store())));
    let job = shop.members.start(&bulk).await;
    let order = shop.members.claim(&bulk).await;
    let (_, mut first) = BulkWork::take(&run(deaf(&shop, 1)), &order).await.unwrap();
    while let Surveyed::Held(_) = first.survey().await.unwrap() {}
    assert!(first.chunk(40).await.is_err(), "the store must not receive the result");
    drop(first);
    shop.run("update member set name = 'another' where id = 7").await;
    shop.members.rescue().await;
    let view = shop.members.drain(&bulk, job).await;
    let counts = (view.counts.done, view.counts.failed);
    assert_eq!((view.state, counts), (JobState::Succeeded, (40, 0)), "{view:#?}");
    assert_emitted(&shop.members, 40).await;
    let renamed = "select count(*) from milepost.event where payload ->> 'name' = 'another'";
    assert_eq!(shop.members.home.count(renamed).await, 0);
}

async fn a_chunk_that_is_done_elsewhere_is_handed_out_again_as_it_was(shop: Shop) {
    shop.add(0..100).await;
    let definition = paced("push", 40, 100_000.0);
    let rows = notes::remote(&shop.shop, deaf(&shop, 1), &definition, None);
    let journal = Arc::new(Mutex::new(Vec::new()));
    let of_function = journal.clone();
    let bulk = Bulk::elsewhere(definition, Arc::new(rows), move |context| {
        let payload: serde_json::Value = serde_json::from_str(&context.job().payload).unwrap();
        let rows = payload["rows"].as_array().unwrap().len();
        of_function.lock().unwrap().push((context.idempotency_key(), rows));
        std::future::ready(Ok(Outcome::Done))
    });
    assert!(bulk.definition().place.is_some());
    let view = shop.members.run(&bulk).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 100), "{view:#?}");
    let journal = journal.lock().unwrap().clone();
    let sizes: Vec<usize> = journal.iter().map(|(_, rows)| *rows).collect();
    assert_eq!((sizes, &journal[0].0), (vec![40, 40, 40, 20], &journal[1].0), "{journal:?}");
}

async fn a_rehearsal_leaves_nothing(shop: Shop) {
    shop.add(0..300).await;
    let definition = notes::definition("notify", 40);
    let work = shop.work(shop.members.store(), &definition);
    let run = Run { job: milepost::JobId::new(), token: RunToken(0) };
    let order = Order { run, payload: "{}".to_owned(), nominal_at: None };
    let rehearsal = work.rehearse(&order, &Trial { rows: 100, chunks: 2, staged: Vec::new() }).await.unwrap();
    let rows: Vec<u32> = rehearsal.chunks.iter().map(|(rows, _)| *rows).collect();
    assert_eq!((rows, rehearsal.total.unwrap().rows), (vec![100, 100], 300));
    assert_eq!(shop.count("select count(*) from note").await, 0);
}

async fn what_the_other_database_does_not_take_or_say_is_told_with_its_name(shop: Shop) {
    let definition = notes::definition("notify", 40);
    let store = shop.members.store();
    let targets = |database: &Database, source: &str| {
        let effect = Some(Effect::Sql(APPLY.to_owned()));
        let targets = PostgresTargets::new(database, source, &["id".to_owned()], effect).unwrap();
        Remote::new(store.clone(), &definition, Arc::new(targets))
    };
    let unknown = targets(&shop.shop, &SOURCE.replace("member", "membre"));
    match BulkWork::check(&unknown).await {
        Err(StoreError::Bulk(InvalidBulk::NotPrepared { part: "source", why })) => {
            assert!(why.contains("membre"))
        }
        other => panic!("{other:?}"),
    }
    shop.run("create table loose (id bigint, place text, name text); insert into loose values (1)").await;
    let sorts = targets(&shop.shop, &SOURCE.replace("member", "loose"));
    let refused = BulkWork::check(&sorts).await;
    assert!(matches!(refused, Err(StoreError::Bulk(InvalidBulk::NoIndex { .. }))), "{refused:?}");

    let gone = Database::new("gone", "postgres://app:s3cret@127.0.0.1:1/gone").unwrap();
    let words = BulkWork::check(&targets(&gone, SOURCE)).await.unwrap_err().chain();
    assert!(
        words.starts_with("database gone (PostgreSQL at 127.0.0.1:1/gone) cannot be used now"),
        "{words}"
    );
    assert!(!format!("{words} {gone:?}").contains("s3cret"));
    // A run reports this, too, and is retried later.
    let bulk = Bulk::new(definition.clone(), Arc::new(targets(&gone, SOURCE)));
    let job = shop.members.start(&bulk).await;
    let worker = Worker::builder(store.clone()).bulk(bulk).start().await.unwrap();
    shop.members.until_state(job, JobState::RetryWait).await;
    let entry = shop.members.scene.history(job).await.pop().unwrap();
    let message = format!("{entry:?}");
    assert!(message.contains("database gone (PostgreSQL at 127.0.0.1:1/gone)"), "{message}");
    worker.shutdown().await;

    let probe = |sql: &str| ServerThrottle::on(&shop.shop, Measure::Sql(sql.to_owned()));
    assert_eq!(probe("select exists (select from loose)").holds().await, None);
    let held = probe("select count(*) > 5 from loose").holds().await;
    assert_eq!(held.as_deref(), Some("sql probe: it returned false"));
}

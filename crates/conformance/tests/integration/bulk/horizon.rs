//! Transactions that were writing when a run began (PostgreSQL).

use std::time::Duration;

use milepost::{JobState, Operation, Verb};
use milepost_core::bulk::run::Surveyed;
use milepost_testkit::home::PostgresHome;
use sqlx::{Connection, Executor, PgConnection};

use crate::bulk::members::Members;

const LATE: &str = "insert into public.member (id, place, name) values (1, 'x', 'late'), (2, 'x', 'late'), (90, 'x', 'late')";

/// Returns members from 10 to 49, and a session of another client.
async fn stage() -> (Members, PgConnection) {
    let members = Members::on(PostgresHome::fresh().await).await;
    members.add(10..50).await;
    let other = PgConnection::connect(&members.home.address()).await.unwrap();
    (members, other)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_writer_commits_late_is_not_missed_however_low_its_keys_are() {
    let (members, mut writer) = stage().await;
    writer.execute("begin").await.unwrap();
    writer.execute(LATE).await.unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut writer).await.unwrap();
    let bulk = members.notify(10);
    let job = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    let view = members.until(job, "the run reports what it waits for", |view| view.throttle.is_some()).await;
    let why = view.throttle.unwrap();
    assert!(
        why.contains("transactions that were writing when it began") && why.contains(&pid.to_string()),
        "{why}"
    );
    assert_eq!((view.counts.chunks, view.upper), (0, None));

    writer.execute("commit").await.unwrap();
    let view = members.until_state(job, JobState::Succeeded).await;
    assert_eq!((view.counts.done, view.throttle), (43, None));
    members.assert_once_each(job, 43).await;
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_is_not_missed_if_no_later_transaction_ended_before_the_run_began() {
    let (members, mut writer) = stage().await;
    let bulk = members.notify(10);
    let job = members.start(&bulk).await;
    let order = members.claim(&bulk).await;
    // From here on, no transaction with a higher id ends, at least in this database.
    writer.execute("begin").await.unwrap();
    writer.execute(LATE).await.unwrap();
    let mut held = members.take_claimed(&bulk, &order).await;
    let surveyed = held.run.survey().await.unwrap();
    assert!(matches!(surveyed, Surveyed::Held(_)), "the survey waits for the writer: {surveyed:?}");
    writer.execute("commit").await.unwrap();
    held.survey().await;
    drop(held);
    members.rescue().await;
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 43));
    members.assert_once_each(job, 43).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_transaction_is_waited_for_and_named_in_history_when_it_takes_long() {
    let (members, mut writer) = stage().await;
    let gid = format!("late-{}", uuid::Uuid::now_v7());
    writer.execute("begin").await.unwrap();
    writer.execute(LATE).await.unwrap();
    writer.execute(sqlx::AssertSqlSafe(format!("prepare transaction '{gid}'"))).await.unwrap();
    let bulk = members.notify(10);
    let job = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    let view = members
        .until(job, "the run releases its worker", |view| view.state == JobState::Pending && view.held_ms > 0)
        .await;
    assert!(view.throttle.as_ref().is_some_and(|why| why.contains(&gid)), "{view:#?}");
    assert!(view.held_ms >= 9_000 && view.due_at.is_some(), "{view:#?}");
    // On a busy machine, the run may be claimed again before the test reads it.
    let entry = members.scene.history(job).await.into_iter().find(|entry| entry.verb == Verb::Yield).unwrap();
    assert!(entry.note.as_ref().is_some_and(|note| note.contains(&gid)), "{entry:?}");
    let row = members.scene.view(job).await.row;
    assert_eq!(row.attempt, u32::from(row.state == JobState::Running), "no attempt is counted");

    writer.execute(sqlx::AssertSqlSafe(format!("commit prepared '{gid}'"))).await.unwrap();
    // Makes the run due immediately, unless it has already been claimed again.
    let now = Operation::new(Verb::Snooze).delay(Duration::ZERO);
    drop(members.scene.operate(job, now).await);
    members.until_state(job, JobState::Succeeded).await;
    members.assert_once_each(job, 43).await;
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_begins_to_write_later_is_not_waited_for() {
    let (members, mut writer) = stage().await;
    let bulk = members.notify(10);
    let job = members.start(&bulk).await;
    let mut held = members.take(&bulk).await;
    writer.execute("begin").await.unwrap();
    writer.execute(LATE).await.unwrap();
    held.survey().await;
    held.chunk(10).await;
    drop(held);
    members.rescue().await;
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 40));
    writer.execute("commit").await.unwrap();
    members.assert_once_each(job, 40).await;
}

//! Targets that cannot be applied.

use milepost::bulk::{Definition, InvalidBulk};
use milepost::{JobState, StoreError, Verb};
use milepost_conformance::audit::acting;
use milepost_core::bulk::run::Parts;
use milepost_testkit::home::Command;
use milepost_testkit::notes::{self, SOURCE};

use crate::bulk::members::Members;

/// Returns a definition that allows this number of failed targets.
fn with_budget(name: &str, rows_max: u32, failures_max: u64) -> Definition {
    Definition { failures_max, ..notes::definition(name, rows_max) }
}

/// Adds notes for all members that are not barred.
const UNLESS_BARRED: &str = "insert into note (run, member) select :bulk_id,
    case when exists (select 1 from barred b where b.member = chunk.id and b.which = :which) then null else id end from chunk";

async fn bar(members: &Members, which: i64, ids: &[i64]) {
    let rows: Vec<String> = ids.iter().map(|id| format!("({which}, {id})")).collect();
    members.home.tamper(&format!("insert into public.barred values {}", rows.join(", "))).await;
}

async fn with_bars(members: &Members) {
    members
        .home
        .tamper("create table public.barred (which bigint, member bigint, primary key (which, member)); alter table public.note add column extra text")
        .await;
}

pub(crate) async fn exactly_the_bad_rows_among_a_hundred_thousand_fail(members: Members) {
    members.add(0..100_000).await;
    with_bars(&members).await;
    let bulk = members.home.bulk(with_budget("notify", 1_000, 200), SOURCE, &["id"], UNLESS_BARRED).unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    for count in [1, 20, 200] {
        // The first and the last target, two neighbours, and others at random positions.
        let mut bad: std::collections::BTreeSet<i64> = [50_000].into();
        if count > 1 {
            bad.extend([0, 99_999, 50_001]);
        }
        while bad.len() < count {
            bad.insert(random.i64(0..100_000));
        }
        let bad: Vec<i64> = bad.into_iter().collect();
        bar(&members, count as i64, &bad).await;
        let job = members.start_with(&bulk, serde_json::json!({ "which": count })).await;
        let view = members.drain(&bulk, job).await;
        assert_eq!(view.state, JobState::Succeeded, "{view:#?}");
        let words: Vec<String> = bad.iter().map(i64::to_string).collect();
        assert_eq!(members.failed(job).await, words);
        assert_eq!((view.counts.done, view.counts.failed), (100_000 - count as u64, count as u64));
        members.assert_once_each(job, 100_000 - count as i64).await;
    }
}

pub(crate) async fn more_failures_than_the_budget_abort_the_run_and_say_why(members: Members) {
    members.add(0..200).await;
    with_bars(&members).await;
    bar(&members, 1, &(100..130).collect::<Vec<_>>()).await;
    let bulk = |failures_max| {
        members.home.bulk(with_budget("notify", 50, failures_max), SOURCE, &["id"], UNLESS_BARRED).unwrap()
    };
    let job = members.start_with(&bulk(3), serde_json::json!({ "which": 1 })).await;
    let view = members.drain(&bulk(3), job).await;
    assert_eq!(view.state, JobState::Aborted, "{view:#?}");
    let failed = view.counts.failed;
    // The size of a chunk depends on the duration of the previous ones, so the last chunk may follow one whose failures are within the budget.
    let most = 3 + Parts::FAILURES_MAX as u64;
    assert!((4..=most).contains(&failed), "the run stops after the chunk that exceeds the budget: {failed}");
    let notes: Vec<String> =
        members.scene.history(job).await.into_iter().filter_map(|entry| entry.note).collect();
    let why = format!("failed targets: {failed}, more than error_budget = 3 allows");
    assert!(notes.iter().any(|note| note.contains(&why)), "{notes:?}");
    members.assert_once_each(job, 100).await;

    members.operate(job, Verb::Resume).await;
    let view = members.drain(&bulk(30), job).await;
    assert_eq!(
        (view.state, view.counts.done, view.counts.failed),
        (JobState::Succeeded, 170, 30),
        "{view:#?}"
    );
    members.assert_once_each(job, 170).await;
    members.scene.assert_history_folds(job).await;
}

pub(crate) async fn a_run_all_of_whose_targets_are_bad_ends_with_each_of_them(members: Members) {
    members.add(0..60).await;
    with_bars(&members).await;
    bar(&members, 1, &(0..60).collect::<Vec<_>>()).await;
    let bulk = members.home.bulk(with_budget("notify", 25, 60), SOURCE, &["id"], UNLESS_BARRED).unwrap();
    let job = members.start_with(&bulk, serde_json::json!({ "which": 1 })).await;
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.done, view.counts.failed), (JobState::Succeeded, 0, 60), "{view:#?}");
    assert_eq!(members.failed(job).await, (0..60).map(|id| id.to_string()).collect::<Vec<_>>());
}

pub(crate) async fn failures_are_tried_again_and_again_until_their_cause_is_gone(members: Members) {
    members.add(0..200).await;
    with_bars(&members).await;
    bar(&members, 1, &[0, 7, 8, 150, 199]).await;
    for (name, deed) in [("sql", Command::Sql(UNLESS_BARRED)), ("rust", Command::Function)] {
        members
            .home
            .tamper("update public.member set name = 'bad' where id in (select member from public.barred)")
            .await;
        let definition = with_budget(name, 40, 10);
        let work = members.home.bulk_work(&definition, SOURCE, &["id"], deed).unwrap();
        let bulk = milepost::bulk::Bulk::new(definition, work);
        let job = members.start_with(&bulk, serde_json::json!({ "which": 1 })).await;
        members.drain(&bulk, job).await;
        assert_eq!(members.failed(job).await, ["0", "7", "8", "150", "199"], "{name}");

        members.home.tamper("update public.member set name = 'good' where id in (0, 150)").await;
        members.home.tamper("delete from public.barred where member in (0, 150)").await;
        let again = members.store().retry_bulk_failures(job).await.unwrap().job;
        let nothing_left = members.store().retry_bulk_failures(job).await.unwrap_err();
        assert!(matches!(nothing_left, StoreError::Bulk(InvalidBulk::NoFailures { .. })), "{nothing_left}");
        let view = members.drain(&bulk, again).await;
        assert_eq!(
            (view.state, view.counts.done, view.counts.failed),
            (JobState::Succeeded, 2, 3),
            "{name}: {view:#?}"
        );
        assert_eq!((view.retry_of, view.total.unwrap().rows), (Some(job), 5));
        assert_eq!(
            members.failed(again).await,
            ["7", "8", "199"],
            "{name}: a target that failed again is stored for the new run"
        );
        assert!(members.failures(job).await.iter().all(|failure| failure.retried_by == Some(again)));

        members.home.tamper("update public.member set name = 'good'").await;
        members.home.tamper("delete from public.barred").await;
        // A target that was deleted after the first run is not retried.
        members.home.tamper("delete from public.member where id = 8").await;
        let third = members.store().retry_bulk_failures(again).await.unwrap().job;
        let view = members.drain(&bulk, third).await;
        assert_eq!(
            (view.state, view.counts.done, view.counts.failed),
            (JobState::Succeeded, 2, 0),
            "{name}: {view:#?}"
        );
        // All notes belong to the first run.
        assert_eq!(members.notes(job).await, 199, "{name}");
        members.home.tamper("insert into public.member (id, place, name) values (8, 'x', 'bad')").await;
        bar(&members, 1, &[0, 7, 8, 150, 199]).await;
    }
}

pub(crate) async fn failures_that_many_ask_to_retry_at_once_are_retried_by_one_run(members: Members) {
    members.add(0..20).await;
    with_bars(&members).await;
    bar(&members, 1, &[3, 4, 5]).await;
    let bulk = members.home.bulk(with_budget("notify", 40, 10), SOURCE, &["id"], UNLESS_BARRED).unwrap();
    let job = members.start_with(&bulk, serde_json::json!({ "which": 1 })).await;
    members.drain(&bulk, job).await;
    let store = acting(&members.store());
    let asked = futures::future::join_all((0..8).map(|_| store.retry_bulk_failures(job))).await;
    let made: Vec<_> = asked.iter().filter_map(|asked| asked.as_ref().ok()).collect();
    assert_eq!(made.len(), 1, "{asked:?}");
    let runs = "select count(*) from milepost.job where kind = 'notify'";
    assert_eq!(members.home.count(runs).await, 2, "a refused call leaves no run");
    assert_eq!(members.home.count("select count(*) from milepost.audit").await, 1);
}

pub(crate) async fn failures_that_a_canceled_run_did_not_come_to_can_be_tried_again(members: Members) {
    members.add(0..20).await;
    with_bars(&members).await;
    bar(&members, 1, &[3, 4, 5]).await;
    let bulk = members.home.bulk(with_budget("notify", 40, 10), SOURCE, &["id"], UNLESS_BARRED).unwrap();
    let job = members.start_with(&bulk, serde_json::json!({ "which": 1 })).await;
    members.drain(&bulk, job).await;
    members.home.tamper("delete from public.barred").await;
    let canceled = members.store().retry_bulk_failures(job).await.unwrap().job;
    members.operate(canceled, Verb::Cancel).await;
    let again = members.store().retry_bulk_failures(job).await.unwrap().job;
    let view = members.drain(&bulk, again).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 3), "{view:#?}");
    members.assert_once_each(job, 20).await;
}

/// Runs a source and an apply statement for which target 5 is bad.
async fn one_is_bad(members: &Members, name: &str, source: &str, apply: &str) {
    let bulk = members.home.bulk(with_budget(name, 8, 3), source, &["id"], apply).unwrap();
    bulk.check().await.unwrap();
    let view = members.run(&bulk).await;
    assert_eq!(
        (view.state, view.counts.done, view.counts.failed),
        (JobState::Succeeded, 19, 1),
        "{name}: {view:#?}"
    );
    let failures = members.failures(view.id).await;
    assert_eq!(failures[0].key.to_string(), "5", "{name}");
    assert!(!failures[0].code.is_empty() && !failures[0].message.is_empty(), "{failures:?}");
    members.assert_once_each(view.id, 19).await;
}

pub(crate) async fn every_error_about_data_is_found_to_be_its_targets(members: Members) {
    members.add(0..20).await;
    members
        .home
        .tamper(
            "update public.member set name = '{}'; update public.member set name = 'no json' where id = 5",
        )
        .await;
    let insert = "insert into note (run, member) select :bulk_id, id from chunk";
    if members.is_sqlite() {
        let json = "insert into note (run, member) select :bulk_id, iif(json_extract(name, '$.a') is null, id, 0) from chunk";
        one_is_bad(&members, "apply", SOURCE, json).await;
        let source = "select id, json_extract(name, '$.a') as a from member where id > :cursor order by id limit :limit";
        let reads = "insert into note (run, member) select :bulk_id, iif(a is null, id, 0) from chunk";
        one_is_bad(&members, "source", source, reads).await;
        members.home.tamper("create trigger no_five before insert on note when new.member = 5 begin select raise(abort, 'not five'); end").await;
        one_is_bad(&members, "trigger", SOURCE, insert).await;
        members
            .home
            .tamper("drop trigger no_five; create table picky (member int check (member <> 5))")
            .await;
        let both = "insert into note (run, member) select :bulk_id, id from chunk";
        members
            .home
            .tamper(
                "create trigger picky after insert on note begin insert into picky values (new.member); end",
            )
            .await;
        one_is_bad(&members, "constraint", SOURCE, both).await;
        return;
    }
    let cast = "insert into note (run, member) select :bulk_id, case when name::jsonb is not null then id end from chunk";
    one_is_bad(&members, "apply", SOURCE, cast).await;
    let source = "select id, name::jsonb as name from member where id > :cursor order by id limit :limit";
    one_is_bad(&members, "source", source, insert).await;
    members
        .home
        .tamper(
            "create function public.no_five() returns trigger language plpgsql as $$ begin
             if new.member = 5 then raise exception 'not five'; end if; return new; end $$;
             create constraint trigger no_five after insert on public.note deferrable initially deferred
             for each row execute function public.no_five()",
        )
        .await;
    one_is_bad(&members, "trigger", SOURCE, insert).await;
    members
        .home
        .tamper(
            "drop trigger no_five on public.note; alter table public.note add check (member <> 5) not valid",
        )
        .await;
    one_is_bad(&members, "constraint", SOURCE, insert).await;
}

pub(crate) async fn what_no_target_is_to_blame_for_makes_none_a_failure(members: Members) {
    members.add(0..100).await;
    let bulk = members.notify(30);
    let job = members.start(&bulk).await;
    let mut held = members.take(&bulk).await;
    held.survey().await;
    held.chunk(30).await;
    members.home.tamper("alter table public.note rename to notes_elsewhere").await;
    let error = held.run.chunk(30).await.unwrap_err();
    assert!(error.chain().contains("note"), "{}", error.chain());
    assert_eq!(members.failures(job).await.len(), 0);
    members.home.tamper("alter table public.notes_elsewhere rename to note").await;
    drop(held);
    members.rescue().await;
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.failed), (JobState::Succeeded, 0));
    members.assert_once_each(job, 100).await;
}

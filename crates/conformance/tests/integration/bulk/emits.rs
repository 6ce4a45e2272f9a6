//! Bulk jobs that emit an event for every target.

use milepost::bulk::{Bulk, Definition, EventTemplate, InvalidBulk, Order, Trial};
use milepost::{JobId, JobState, Run, RunToken, StoreError, Verb};
use milepost_testkit::home::Command;
use milepost_testkit::notes::{self, SOURCE};

use crate::bulk::members::{Held, Members};

/// Emits an event for each member under its place; there are seven places.
pub(crate) fn notice_event() -> EventTemplate {
    EventTemplate {
        aggregate_type: "place".to_owned(),
        aggregate_id: "place".to_owned(),
        event_type: "member.noticed".to_owned(),
        payload: Some(vec!["id".to_owned(), "name".to_owned()]),
        headers: [("member".to_owned(), "id".to_owned())].into(),
    }
}

fn bulk_as(members: &Members, definition: Definition, template: EventTemplate) -> Bulk {
    let work = members.home.bulk_work(&definition, SOURCE, &["id"], Command::Events(template)).unwrap();
    Bulk::new(definition, work)
}

fn bulk(members: &Members, rows_max: u32) -> Bulk {
    let definition = Definition { failures_max: 10, ..notes::definition("tell", rows_max) };
    bulk_as(members, definition, notice_event())
}

/// Claims the only ready run and takes it over, as a worker does.
async fn take(members: &Members, bulk: &Bulk) -> Held {
    let order = members.claim(bulk).await;
    let work =
        members.home.bulk_work(bulk.definition(), SOURCE, &["id"], Command::Events(notice_event())).unwrap();
    let (_, run) = work.take(&order).await.unwrap();
    Held { run }
}

/// Asserts that `count` members have one event each, and that the events of each place are numbered without gaps.
pub(crate) async fn assert_emitted(members: &Members, count: i64) {
    let number = async |sql: &str| members.home.count(sql).await;
    let emitted = "from milepost.event where event_type = 'member.noticed'";
    assert_eq!(number(&format!("select count(*) {emitted}")).await, count);
    assert_eq!(number(&format!("select count(distinct payload ->> 'id') {emitted}")).await, count);
    let gaps = "select count(*) from (select count(*) as events, max(aggregate_seq) as last, min(aggregate_seq) as first
                from milepost.event group by aggregate_type, aggregate_id) a where first <> 1 or last <> events";
    assert_eq!(number(gaps).await, 0, "sequences with gaps");
}

/// Asserts that the events of each place are in the order of the keys.
async fn assert_in_order(members: &Members) {
    let out_of_order = "select count(*) from (select aggregate_seq, row_number() over (
        partition by aggregate_id order by cast(payload ->> 'id' as bigint)) as place from milepost.event) e
        where aggregate_seq <> place";
    assert_eq!(members.home.count(out_of_order).await, 0, "events out of the order of the keys");
}

pub(crate) async fn each_target_has_its_event_once_in_the_order_of_keys(members: Members) {
    members.add(0..300).await;
    let bulk = bulk(&members, 40);
    bulk.check().await.unwrap();
    let view = members.run(&bulk).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 300), "{view:#?}");
    assert_emitted(&members, 300).await;
    assert_in_order(&members).await;
    let header =
        "select count(*) from milepost.event where headers ->> 'member' = cast(payload ->> 'id' as text)";
    assert_eq!(members.home.count(header).await, 300);
    // Another run emits events for all members again.
    let view = members.run(&bulk).await;
    assert_eq!(view.counts.done, 300);
    assert_eq!(members.home.count("select count(distinct event_id) from milepost.event").await, 600);
}

pub(crate) async fn a_target_of_which_no_event_can_be_made_fails_alone(members: Members) {
    members.add(0..300).await;
    let long = if members.is_sqlite() { "hex(zeroblob(1048576))" } else { "repeat('x', 2097152)" };
    members.home.tamper(&format!("update public.member set name = {long} where id = 150")).await;
    members.home.tamper("update public.member set place = '' where id in (5, 6)").await;
    let bulk = bulk(&members, 40);
    let job = members.start(&bulk).await;
    let view = members.drain(&bulk, job).await;
    let counts = (view.counts.done, view.counts.failed);
    assert_eq!((view.state, counts), (JobState::Succeeded, (297, 3)), "{view:#?}");
    assert_eq!(members.failed(job).await, ["5", "6", "150"]);
    let failure = members.failures(job).await.remove(0);
    assert!(
        failure.code == "invalid_event" && failure.message.contains("id of the aggregate"),
        "{failure:?}"
    );
    assert_emitted(&members, 297).await;
    assert_in_order(&members).await;

    members
        .home
        .tamper("update public.member set name = 'short', place = 'place 1' where id in (5, 6, 150)")
        .await;
    let again = members.store().retry_bulk_failures(job).await.unwrap().job;
    let view = members.drain(&bulk, again).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 3), "{view:#?}");
    assert_emitted(&members, 300).await;

    let strict = bulk_as(&members, notes::definition("strict", 40), notice_event());
    members.home.tamper("update public.member set place = '' where id = 7").await;
    let view = members.run(&strict).await;
    assert_eq!(
        (view.state, view.counts.failed),
        (JobState::Aborted, 1),
        "the run with error_budget = 0 is aborted: {view:#?}"
    );
}

pub(crate) async fn events_are_emitted_once_although_workers_die_and_operators_abort(members: Members) {
    members.add(0..200).await;
    let bulk = bulk(&members, 40);
    let job = members.start(&bulk).await;
    for _ in 0..2 {
        let mut held = take(&members, &bulk).await;
        if members.view(job).await.upper.is_none() {
            held.survey().await;
        }
        held.chunk(40).await;
        drop(held);
        members.rescue().await;
    }
    members.operate(job, Verb::Abort).await;
    assert_eq!(members.view(job).await.counts.done, 80);
    assert_emitted(&members, 80).await;
    members.operate(job, Verb::Resume).await;
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 200), "{view:#?}");
    assert_emitted(&members, 200).await;
    assert_in_order(&members).await;
    members.assert_never_back(job).await;
}

pub(crate) async fn a_rehearsal_emits_nothing(members: Members) {
    members.add(0..100).await;
    let definition = notes::definition("tell", 40);
    let work = members.home.bulk_work(&definition, SOURCE, &["id"], Command::Events(notice_event())).unwrap();
    let run = Run { job: JobId::new(), token: RunToken(0) };
    let order = Order { run, payload: "{}".to_owned(), nominal_at: None };
    let rehearsal = work.rehearse(&order, &Trial { rows: 40, chunks: 2, staged: Vec::new() }).await.unwrap();
    assert_eq!(rehearsal.chunks.iter().map(|(rows, _)| *rows).collect::<Vec<_>>(), [40, 40]);
    assert_emitted(&members, 0).await;
    assert_eq!(members.home.count("select count(*) from milepost.aggregate").await, 0);
}

pub(crate) async fn a_source_that_lacks_a_column_of_the_events_is_refused(members: Members) {
    let template = EventTemplate { aggregate_id: "customer".to_owned(), ..notice_event() };
    let refused = bulk_as(&members, notes::definition("tell", 40), template).check().await;
    match refused {
        Err(StoreError::Bulk(InvalidBulk::NoColumn { column, selected })) => {
            assert_eq!((column.as_str(), selected.as_str()), ("customer", "id, place, name"));
        }
        other => panic!("{other:?}"),
    }
}

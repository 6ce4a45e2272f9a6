//! Parameters of runs, and which of them are rejected.

use milepost::bulk::{Bulk, Definition};
use milepost::{JobState, NewJob};
use milepost_core::transition::Verb;
use milepost_testkit::notes;
use serde_json::json;

use crate::bulk::members::Members;

pub(crate) async fn parameters_of_every_json_type_reach_the_statements(members: Members) {
    members.add(0..3).await;
    members
        .home
        .tamper("create table public.got (word text, number bigint, part double precision, truth boolean, list text, thing text, none_at_all text, tick text)")
        .await;
    let source = "select id from member where id > :cursor and id < :below order by id limit :limit";
    let apply = if members.is_sqlite() {
        "insert into got select :word, :number, :part, :truth, :list, :thing, :nothing, :nominal_at from chunk"
    } else {
        "insert into got select :word, :number::bigint, :part::float8, :truth::boolean, :list, :thing, :nothing, \
         :nominal_at from chunk"
    };
    let bulk = members.home.bulk(notes::definition("params", 20), source, &["id"], apply).unwrap();
    bulk.check().await.unwrap();
    let params = json!({ "below": 1, "word": "it's \"ü\" :x $1 ?", "number": -7, "part": 0.1, "truth": true,
                         "list": [1, "a"], "thing": { "a": null }, "nothing": null, "unused": 1 });
    let job = members.start_with(&bulk, params).await;
    let view = members.drain(&bulk, job).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 1), "{view:#?}");
    let right = "select count(*) from public.got where word = 'it''s \"ü\" :x $1 ?' and number = -7 and part = 0.1
                 and truth and list = '[1,\"a\"]' and thing = '{\"a\":null}' and none_at_all is null and tick is null";
    assert_eq!(members.home.count(right).await, 1);
}

pub(crate) async fn numbers_keep_all_their_digits(members: Members) {
    members.add(0..1).await;
    members.home.tamper("create table public.digits (large text, small text)").await;
    let source = "select id from member where id > :cursor order by id limit :limit";
    let apply = "insert into digits select :large, :small from chunk";
    let bulk = members.home.bulk(notes::definition("digits", 20), source, &["id"], apply).unwrap();
    let payload = r#"{"large": 100000000000000000001, "small": 0.10000000000000000001}"#.to_owned();
    let job = bulk.definition().direct(NewJob::from_json("digits", payload).unwrap());
    let job = members.store().start_bulk(&job).await.unwrap().job;
    let view = members.drain(&bulk, job).await;
    assert_eq!(view.state, JobState::Succeeded, "{view:#?}");
    let right = "select count(*) from public.digits where large = '100000000000000000001' and small = '0.10000000000000000001'";
    assert_eq!(members.home.count(right).await, 1);
}

/// Starts a run that must fail without a chunk. Returns the error.
async fn refused(members: &Members, bulk: &Bulk, job: NewJob) -> String {
    let job = members.store().start_bulk(&job).await.unwrap().job;
    let view = members.drain(bulk, job).await;
    assert_eq!((view.state, view.counts.chunks), (JobState::Failed, 0), "{view:#?}");
    let history = members.scene.history(job).await;
    members.operate(job, Verb::Cancel).await;
    history.into_iter().find_map(|entry| entry.error_message).expect("a reason")
}

pub(crate) async fn what_cannot_run_is_refused_before_any_chunk(members: Members) {
    members.add(0..10).await;
    let source = "select id from member where id > :cursor and place <> :place order by id limit :limit";
    let apply = "insert into note select :who, id from chunk";
    let bulk = members.home.bulk(notes::definition("params", 20), source, &["id"], apply).unwrap();
    let job = |params| bulk.definition().direct(NewJob::new("params", &params).unwrap());
    let why = refused(&members, &bulk, job(json!({ "who": "x" }))).await;
    assert!(why.contains("no \"place\", which the SQL of the bulk job uses"), "{why}");
    let why = refused(&members, &bulk, job(json!({ "place": "x" }))).await;
    assert!(why.contains("no \"who\", which the SQL of the bulk job uses"), "{why}");
    let why = refused(&members, &bulk, job(json!(["place"]))).await;
    assert!(why.contains("JSON object"), "{why}");

    if !members.is_sqlite() {
        let apply = "insert into note select :who, id + :more from chunk";
        let typed = members.home.bulk(bulk.definition().clone(), source, &["id"], apply).unwrap();
        let why = refused(&members, &typed, job(json!({ "place": "x", "who": "x", "more": "many" }))).await;
        assert!(why.contains("a parameter of the payload") && why.contains("bigint: \"many\""), "{why}");
    }

    let outside = NewJob { group: Some("other".to_owned()), ..job(json!({ "place": "x", "who": "x" })) };
    let why = refused(&members, &bulk, outside).await;
    assert!(why.contains("params"), "{why}");
    assert_eq!(members.home.count("select count(*) from public.note").await, 0);
}

pub(crate) async fn a_run_goes_on_only_with_the_definition_it_began_with(members: Members) {
    members.add(0..100).await;
    let bulk = members.notify(30);
    let job = members.start(&bulk).await;
    let mut held = members.take(&bulk).await;
    held.survey().await;
    held.chunk(30).await;
    drop(held);
    members.rescue().await;

    let changed =
        members.notify_as(Definition { fingerprint: "another".to_owned(), ..bulk.definition().clone() });
    let view = members.drain(&changed, job).await;
    assert_eq!((view.state, view.counts.done), (JobState::Failed, 30), "{view:#?}");
    let history = members.scene.history(job).await;
    let why = history.last().unwrap().error_message.clone().unwrap();
    assert!(why.contains("the definition changed"), "{why}");

    members.operate(job, Verb::RetryNow).await;
    let view = members.drain(&bulk, job).await;
    assert_eq!(view.state, JobState::Succeeded);
    members.assert_once_each(job, 100).await;

    members.operate(job, Verb::Rerun).await;
    let view = members.drain(&bulk, job).await;
    assert_eq!(view.state, JobState::Failed, "a completed run cannot be repeated");
    let history = members.scene.history(job).await;
    assert!(
        history.last().unwrap().error_message.as_deref().unwrap().contains("has finished"),
        "{history:#?}"
    );
    members.assert_once_each(job, 100).await;
}

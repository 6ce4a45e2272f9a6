//! Definitions and starts that are rejected by checks.

use jiff::Timestamp;
use milepost::bulk::{Bulk, InvalidBulk};
use milepost::{NewJob, Schedule, Source, Spec, StoreError};
use milepost_testkit::home::PostgresHome;
use milepost_testkit::notes::{self, APPLY, SOURCE};
use sqlx::{Connection, PgConnection, Row};

use crate::bulk::members::Members;

async fn refused(bulk: Bulk) -> InvalidBulk {
    match bulk.check().await {
        Err(StoreError::Bulk(invalid)) => invalid,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn what_the_database_does_not_take_is_refused_in_its_words(members: Members) {
    let bulk = |source: &str, key: &[&str], apply: &str| {
        members.home.bulk(notes::definition("notify", 10), source, key, apply).unwrap()
    };
    bulk(SOURCE, &["id"], APPLY).check().await.unwrap();
    let invalid =
        refused(bulk("select id from nobody where id > :cursor order by id limit :limit", &["id"], APPLY))
            .await;
    assert!(
        matches!(&invalid, InvalidBulk::NotPrepared { part: "source", why } if why.contains("nobody")),
        "{invalid}"
    );
    let invalid = refused(bulk(SOURCE, &["id"], "insert into nowhere select id from chunk")).await;
    assert!(
        matches!(&invalid, InvalidBulk::NotPrepared { part: "apply", why } if why.contains("nowhere")),
        "{invalid}"
    );
    let invalid =
        refused(bulk(SOURCE, &["id"], "insert into note (run, member) select :bulk_id, gone from chunk"))
            .await;
    assert!(
        matches!(&invalid, InvalidBulk::NotPrepared { part: "apply", why } if why.contains("gone")),
        "{invalid}"
    );
    let no_key = "select m.place, m.name from member m where m.id > :cursor order by m.id limit :limit";
    let invalid =
        refused(bulk(no_key, &["id"], "insert into note (run, member) select :bulk_id, 1 from chunk")).await;
    assert!(
        matches!(&invalid, InvalidBulk::NoKeyColumn { column, selected } if column == "id" && selected == "place, name"),
        "{invalid}"
    );
    assert_eq!(members.home.count("select count(*) from public.note").await, 0);
}

pub(crate) async fn no_job_is_enqueued_of_a_kind_that_is_a_bulk_job(members: Members) {
    let store = members.store();
    let of = |kind: &str| NewJob::new(kind, &()).unwrap();
    store.enqueue(&of("notify")).await.unwrap();
    let bulk = members.notify(10);
    store.put_bulk(bulk.definition(), Source::Config).await.map(drop).unwrap();
    let kept = store.bulk_definition("notify").await.unwrap().unwrap();
    assert_eq!(&kept, bulk.definition());
    let statements = kept.statements.unwrap();
    assert_eq!((statements.source.as_deref(), statements.effect.as_deref()), (Some(SOURCE), Some(APPLY)));
    let refused = store.enqueue_many(&[of("mail"), of("notify")]).await.unwrap_err();
    let StoreError::Invalid { index: 1, invalid } = &refused else { panic!("{refused:?}") };
    let words = invalid.to_string();
    assert!(words.contains("notify") && words.contains("is a bulk job"), "{words}");
    let jobs = "select count(*) from milepost.job";
    assert_eq!(members.home.count(jobs).await, 1, "no job of the call was created");

    let schedule = Schedule::new("nightly", Spec::cron("0 3 * * *", "UTC").unwrap(), of("notify"));
    let order = schedule.tick(Timestamp::now()).unwrap();
    store.make("nightly", &order).await.unwrap();
    store.start_bulk(&bulk.definition().direct(of("notify"))).await.unwrap();
    assert_eq!(members.home.count(jobs).await, 3, "the tick and the start each created a run");
}

pub(crate) async fn a_source_that_sorts_for_every_chunk_is_refused(members: Members) {
    members.home.tamper("create table public.loose (id bigint not null, place text); insert into public.loose values (1, 'x')").await;
    let source = "select id from loose where id > :cursor order by id limit :limit";
    let bulk = || members.home.bulk(notes::definition("notify", 10), source, &["id"], APPLY).unwrap();
    let invalid = refused(bulk()).await;
    let InvalidBulk::NoIndex { problem, key, plan } = &invalid else { panic!("{invalid}") };
    assert!(problem == "sorts" && key == "id" && !plan.is_empty(), "{invalid}");
    members.home.tamper("create index loose_id on public.loose (id)").await;
    bulk().check().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_reads_a_large_table_whole_is_refused() {
    let members = Members::on(PostgresHome::fresh().await).await;
    members
        .home
        .tamper("create table public.fact (member bigint, word text); insert into public.fact select 1, 'x'; analyze public.fact")
        .await;
    // An index provides the order; the other table can only be read completely.
    let source = "select m.id from member m where m.id > :cursor
                  and exists (select 1 from fact f where f.word = m.name) order by m.id limit :limit";
    let bulk = || members.home.bulk(notes::definition("notify", 10), source, &["id"], APPLY).unwrap();
    bulk().check().await.unwrap();
    members
        .home
        .tamper("insert into public.fact select n, repeat('x', 100) from generate_series(1, 100000) n; analyze public.fact")
        .await;
    let invalid = refused(bulk()).await;
    assert!(
        matches!(&invalid, InvalidBulk::NoIndex { problem, .. } if problem.contains("reads all of") && problem.contains("fact")),
        "{invalid}"
    );
    members.home.tamper("create index fact_word on public.fact (word)").await;
    bulk().check().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_jobs_are_started_in_sql_by_the_name_that_workers_told() {
    let members = Members::on(PostgresHome::fresh().await).await;
    members.add(0..20).await;
    let mut session = PgConnection::connect(&members.home.address()).await.unwrap();
    let start =
        "select job_id, duplicate from milepost.start_bulk('notify', '{}', key => 'today', priority => 1)";
    let unknown = sqlx::query(start).fetch_one(&mut session).await.unwrap_err();
    let unknown = unknown.as_database_error().unwrap();
    assert_eq!(unknown.code().as_deref(), Some("MP007"), "{unknown}");
    assert!(unknown.message().contains("notify"));

    let bulk = members.notify(10);
    members.store().put_bulk(bulk.definition(), Source::Config).await.map(drop).unwrap();
    let mut made = Vec::new();
    for _ in 0..2 {
        let row = sqlx::query(start).fetch_one(&mut session).await.unwrap();
        made.push((milepost::JobId(row.get(0)), row.get::<bool, _>(1)));
    }
    assert_eq!((made[0].0, made[0].1, made[1].1), (made[1].0, false, true));
    let direct = sqlx::query("select milepost.enqueue('notify')").execute(&mut session).await.unwrap_err();
    let direct = direct.as_database_error().unwrap();
    assert_eq!(direct.code().as_deref(), Some("MP001"), "{direct}");
    let view = members.view(made[0].0).await;
    assert_eq!((view.name.as_str(), view.group.as_deref(), view.priority), ("notify", Some("notify"), 1));
    let view = members.drain(&bulk, view.id).await;
    assert_eq!(view.counts.done, 20);
    members.assert_once_each(view.id, 20).await;
}

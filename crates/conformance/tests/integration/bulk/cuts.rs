//! Bulk runs whose PostgreSQL connections break at each of their messages.

use std::sync::Arc;

use futures::{StreamExt, stream};
use milepost::bulk::{Bulk, Sizing};
use milepost::{JobState, Worker};
use milepost_postgres::bulk::{Effect, SqlBulk};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::home::PostgresHome;
use milepost_testkit::notes::{self, APPLY, SOURCE};
use milepost_testkit::proxy::{Moment, Proxy};

use crate::bulk::members::Members;

const MEMBERS: i64 = 30;

/// Runs a bulk job whose connection breaks once. Returns whether the connection was cut.
async fn run_with_a_cut(members: &Members, request: usize, moment: Moment) -> bool {
    let (proxy, url) = Proxy::for_url(&members.home.address()).await;
    proxy.cut("milepost bulk", request, moment);
    let options = PostgresOptions { connections_max: 2, ..PostgresOptions::default() };
    let store = PostgresStore::connect(&url, options).await.unwrap();
    let name = format!("cut-{request}-{moment:?}");
    let mut definition = notes::definition(&name, 20);
    definition.sizing = Sizing { rows_min: 20, ..definition.sizing };
    let effect = Effect::Sql(APPLY.to_owned());
    let work = SqlBulk::new(&store, &definition, SOURCE, &["id".to_owned()], effect).unwrap();
    let next = notes::definition(&format!("{name}-next"), 20);
    let bulk = Bulk::new(definition, Arc::new(work)).then(next.clone());

    let job = members.start(&bulk).await;
    let worker = Worker::builder(Arc::new(store)).bulk(bulk).start().await.unwrap();
    members.until_state(job, JobState::Succeeded).await;
    worker.shutdown().await;
    members.assert_once_each(job, MEMBERS).await;
    assert_eq!(members.view(job).await.counts.done, MEMBERS as u64);
    let follows = format!("select count(*) from milepost.job where kind = '{}'", next.name);
    assert_eq!(members.home.count(&follows).await, 1, "the following run was created once");
    proxy.has_cut()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_at_any_message_neither_loses_nor_doubles_a_target() {
    let members = Members::on(PostgresHome::fresh().await).await;
    members.add(0..MEMBERS).await;
    for moment in [Moment::BeforeSend, Moment::AfterSend, Moment::AfterReply] {
        let members = &members;
        let cuts = stream::iter(0..200).map(|request| run_with_a_cut(members, request, moment)).buffered(16);
        let reached = cuts.take_while(|cut| std::future::ready(*cut)).count().await;
        // Taking over, the survey, two chunks and the end need more messages than this.
        assert!((30..200).contains(&reached), "{moment:?}: {reached} messages were cut");
    }
}

//! Members to be notified, and what they got.

use std::sync::Arc;
use std::time::Duration;

use milepost::bulk::{Bulk, BulkFilter, BulkView, Definition, Sizing};
use milepost::{JobId, NewJob, Worker, WorkerBuilder};
use milepost_testkit::home::Home;
use milepost_testkit::wait;

/// Goes through all members by their ids.
pub(crate) const SOURCE: &str = "select id, place from member where id > :cursor order by id limit :limit";
/// Gives each a note.
pub(crate) const APPLY: &str = "insert into note (run, member) select :bulk_id, id from chunk";

/// A home with members.
pub(crate) struct Members {
    pub(crate) home: Arc<dyn Home>,
}

impl Members {
    pub(crate) async fn on(home: impl Home + 'static) -> Self {
        home.tamper(
            "create table public.member (id bigint primary key, place text not null, name text not null);
             create index member_place on public.member (place, id);
             create table public.note (run text not null, member bigint not null);
             create index note_member on public.note (run, member)",
        )
        .await;
        Self { home: Arc::new(home) }
    }

    /// Adds members with ids of this range.
    pub(crate) async fn add(&self, ids: std::ops::Range<i64>) {
        let (from, to) = (ids.start, ids.end);
        let sql = format!(
            "with recursive n(id) as (select {from} union all select id + 1 from n where id + 1 < {to})
             insert into public.member (id, place, name) select id, 'place ' || (id % 7), 'member ' || id from n"
        );
        self.home.tamper(&sql).await;
    }

    /// A definition with small chunks.
    pub(crate) fn definition(name: &str) -> Definition {
        Definition {
            sizing: Sizing { target: Duration::from_millis(50), rows_min: 10, rows_max: 200 },
            ..Definition::new(name)
        }
    }

    /// One that gives every member a note.
    pub(crate) fn notify(&self) -> Bulk {
        self.home.bulk(Self::definition("notify"), SOURCE, &["id"], APPLY).unwrap()
    }

    pub(crate) async fn start(&self, bulk: &Bulk) -> JobId {
        self.start_with(bulk, serde_json::json!({})).await
    }

    pub(crate) async fn start_with(&self, bulk: &Bulk, params: serde_json::Value) -> JobId {
        let job = NewJob::new(&bulk.definition().name, &params).unwrap();
        self.home.store().start_bulk(&bulk.definition().direct(job)).await.unwrap().job
    }

    pub(crate) fn worker(&self) -> WorkerBuilder {
        Worker::builder(self.home.store())
    }

    pub(crate) async fn view(&self, job: JobId) -> BulkView {
        let filter = BulkFilter { job: Some(job), ..BulkFilter::default() };
        self.home.store().bulks(&filter).await.unwrap().pop().expect("a bulk job")
    }

    /// Waits until what a look at the run shows is so.
    pub(crate) async fn until(&self, job: JobId, what: &str, so: impl Fn(&BulkView) -> bool) -> BulkView {
        wait::until(what, || async { so(&self.view(job).await) }).await;
        self.view(job).await
    }

    /// Asserts that every member up to this id has exactly one note of the run.
    pub(crate) async fn assert_once_each(&self, job: JobId, members: i64) {
        let of_run = format!("from public.note where run = '{job}'");
        assert_eq!(self.home.count(&format!("select count(*) {of_run}")).await, members, "notes");
        assert_eq!(self.home.count(&format!("select count(distinct member) {of_run}")).await, members);
    }
}

//! Fixture for bulk tests: members to be notified, and their notes.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use milepost::bulk::{Bulk, BulkFilter, BulkView, Definition, Settings, TargetFailure, Throttle};
use milepost::{JobId, JobState, NewJob, Worker, WorkerBuilder};
use milepost_core::bulk::run::{ChunkDone, Chunked, Order, Surveyed};
use milepost_core::claim::Claim;
use milepost_core::port::{BulkRun, Operation, Store};
use milepost_core::transition::Verb;
use milepost_core::worker::NewWorker;
use milepost_testkit::home::{Command, Home};
use milepost_testkit::notes::{self, APPLY, SOURCE};
use milepost_testkit::{Scene, wait};

/// A home with members.
#[derive(Clone)]
pub(crate) struct Members {
    pub(crate) home: Arc<dyn Home>,
    pub(crate) scene: Scene,
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
        let scene = Scene::on(home.store()).await;
        let members = Self { home: Arc::new(home), scene };
        members.follow().await;
        members
    }

    /// Records every position of the cursor.
    async fn follow(&self) {
        let place =
            if self.is_sqlite() { "integer primary key" } else { "bigint generated always as identity" };
        let columns = "run text, cursor text, passed bigint, chunks bigint";
        self.home.tamper(&format!("create table public.trail (pos {place}, {columns})")).await;
        self.home
            .tamper(if self.is_sqlite() {
                "create trigger trail after update of cursor_key on milepost.bulk begin
                 insert into trail (run, cursor, passed, chunks) values (lower(hex(new.job_id)), new.cursor_key ->> 0, new.done + new.failed,
                                           new.chunks); end"
            } else {
                "create function public.trail() returns trigger language plpgsql as $$ begin
                 insert into public.trail (run, cursor, passed, chunks) values (replace(new.job_id::text, '-', ''), new.cursor_key ->> 0,
                                                  new.done + new.failed, new.chunks); return null; end $$;
                 create trigger trail after update of cursor_key on milepost.bulk for each row
                 execute function public.trail()"
            })
            .await;
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.home.address().starts_with("sqlite:")
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.home.store()
    }

    /// Adds members with these ids.
    pub(crate) async fn add(&self, ids: Range<i64>) {
        let (from, to) = (ids.start, ids.end);
        let sql = format!(
            "with recursive n(id) as (select {from} union all select id + 1 from n where id + 1 < {to})
             insert into public.member (id, place, name) select id, 'place ' || (id % 7), 'member ' || id from n"
        );
        self.home.tamper(&sql).await;
    }

    /// Returns a bulk job that adds a note for every member, in chunks of at most `rows_max` rows.
    pub(crate) fn notify(&self, rows_max: u32) -> Bulk {
        notes::notify(self.home.as_ref(), rows_max)
    }

    /// Returns the same with another definition.
    pub(crate) fn notify_as(&self, definition: Definition) -> Bulk {
        self.home.bulk(definition, SOURCE, &["id"], APPLY).unwrap()
    }

    pub(crate) async fn start(&self, bulk: &Bulk) -> JobId {
        self.start_with(bulk, serde_json::json!({})).await
    }

    pub(crate) async fn start_with(&self, bulk: &Bulk, params: serde_json::Value) -> JobId {
        let job = NewJob::new(&bulk.definition().name, &params).unwrap();
        self.store().start_bulk(&bulk.definition().direct(job)).await.unwrap().job
    }

    pub(crate) fn worker(&self) -> WorkerBuilder {
        Worker::builder(self.store())
    }

    /// Starts a run, works until no work is left, and returns the run.
    pub(crate) async fn run(&self, bulk: &Bulk) -> BulkView {
        let job = self.start(bulk).await;
        self.drain(bulk, job).await
    }

    /// Works until no work is left, and returns the run.
    pub(crate) async fn drain(&self, bulk: &Bulk, job: JobId) -> BulkView {
        self.worker().bulk(bulk.clone()).drain().await.unwrap();
        self.view(job).await
    }

    pub(crate) async fn view(&self, job: JobId) -> BulkView {
        let filter = BulkFilter { job: Some(job), ..BulkFilter::default() };
        self.store().bulks(&filter).await.unwrap().pop().expect("a bulk job")
    }

    /// Waits until the run satisfies `so`. Returns the run as it was then.
    pub(crate) async fn until(&self, job: JobId, what: &str, so: impl Fn(&BulkView) -> bool) -> BulkView {
        let seen = Mutex::new(None);
        wait::until(what, || async {
            let view = self.view(job).await;
            let is_so = so(&view);
            *seen.lock().unwrap() = Some(view);
            is_so
        })
        .await;
        seen.into_inner().unwrap().expect("the run was never read")
    }

    pub(crate) async fn until_state(&self, job: JobId, state: JobState) -> BulkView {
        self.until(job, &format!("run {job} is {state}"), |view| view.state == state).await
    }

    pub(crate) async fn operate(&self, job: JobId, verb: Verb) {
        self.scene.operate(job, Operation::new(verb)).await.map(drop).unwrap();
    }

    /// Expires the leases of all workers in the store. Workers that are still running register again.
    pub(crate) async fn expire_leases(&self) {
        self.home.expire_leases(self.scene.worker).await;
    }

    /// Removes the rate limit of a run.
    pub(crate) async fn hurry(&self, job: JobId) {
        let settings = Settings {
            rows_per_s: Some(1e6),
            chunk_rows_min: Some(1_000),
            chunk_rows_max: Some(1_000),
            ..Settings::default()
        };
        self.store().set_bulk(job, &settings.into()).await.unwrap();
    }

    /// Takes back the jobs of all workers, to be claimed immediately.
    pub(crate) async fn rescue(&self) {
        self.expire_leases().await;
        self.store().rescue_expired(100, &|_, _, _| Duration::ZERO).await.unwrap();
    }

    /// Returns all failures of a run.
    pub(crate) async fn failures(&self, job: JobId) -> Vec<TargetFailure> {
        self.store().bulk_failures(job, 0, 10_000).await.unwrap()
    }

    /// Returns the keys, of one column, of its failures.
    pub(crate) async fn failed(&self, job: JobId) -> Vec<String> {
        let word =
            |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.failures(job).await.iter().map(|failure| word(&failure.key.0[0])).collect()
    }

    /// Returns how many notes a run has added.
    pub(crate) async fn notes(&self, job: JobId) -> i64 {
        self.home.count(&format!("select count(*) from public.note where run = '{job}'")).await
    }

    /// Returns the runs in the order in which their chunks were committed. Consecutive chunks of a run count once.
    pub(crate) async fn turns(&self, runs: &[JobId]) -> Vec<JobId> {
        let mut turns: Vec<(i64, JobId)> = Vec::new();
        let chunks = self.home.count("select count(*) from public.trail").await;
        for &run in runs {
            let of_run = format!(
                "from public.trail t where run = '{}' and not exists (
                     select 1 from public.trail before where before.run = t.run and before.pos = t.pos - 1)",
                run.0.simple()
            );
            let blocks = self.home.count(&format!("select count(*) {of_run}")).await;
            for block in 0..blocks {
                let begin = format!("select t.pos {of_run} order by t.pos limit 1 offset {block}");
                turns.push((self.home.count(&begin).await, run));
            }
        }
        assert!(turns.len() as i64 <= chunks);
        turns.sort_unstable();
        turns.into_iter().map(|(_, run)| run).collect()
    }

    /// Asserts that this number of members have exactly one note of the run each, and that its cursor never moved back.
    pub(crate) async fn assert_once_each(&self, job: JobId, members: i64) {
        let of_run = format!("from public.note where run = '{job}'");
        assert_eq!(self.notes(job).await, members, "notes");
        assert_eq!(self.home.count(&format!("select count(distinct member) {of_run}")).await, members);
        self.assert_never_back(job).await;
    }

    /// Asserts that the cursor, a number, never moved back, and that each chunk was counted once.
    pub(crate) async fn assert_never_back(&self, job: JobId) {
        let of_run = format!("public.trail where run = '{}'", job.0.simple());
        let back = format!(
            "select count(*) from (select cast(cursor as bigint) as cursor, passed,
                 lag(cast(cursor as bigint)) over (order by chunks) as cursor_before,
                 lag(passed) over (order by chunks) as passed_before from {of_run}) as step
             where cursor < cursor_before or passed < passed_before"
        );
        assert_eq!(self.home.count(&back).await, 0, "the cursor moved back");
        let doubled = format!("select count(*) - count(distinct chunks) from {of_run}");
        assert_eq!(self.home.count(&doubled).await, 0, "a chunk was counted twice");
    }
}

/// A throttle that holds runs until the test opens it.
#[derive(Default)]
pub(crate) struct Gate(AtomicBool);

impl Gate {
    pub(crate) fn closed() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }

    pub(crate) fn set(&self, closed: bool) {
        self.0.store(closed, Ordering::SeqCst);
    }
}

#[async_trait]
impl Throttle for Gate {
    async fn holds(&self) -> Option<String> {
        self.0.load(Ordering::SeqCst).then(|| "gate: closed by the test".to_owned())
    }
}

/// A run that the test executes itself.
pub(crate) struct Held {
    pub(crate) run: Box<dyn BulkRun>,
}

impl Members {
    /// Claims the only ready run and takes it over, as a worker does.
    pub(crate) async fn take(&self, bulk: &Bulk) -> Held {
        self.take_claimed(bulk, &self.claim(bulk).await).await
    }

    pub(crate) async fn take_claimed(&self, bulk: &Bulk, order: &Order) -> Held {
        let work = self.home.bulk_work(bulk.definition(), SOURCE, &["id"], Command::Sql(APPLY)).unwrap();
        let (_, run) = work.take(order).await.unwrap();
        Held { run }
    }

    /// Claims the only ready run for a new worker.
    pub(crate) async fn claim(&self, bulk: &Bulk) -> Order {
        let definition = bulk.definition();
        let (queues, kinds) = (vec![definition.queue.clone()], vec![definition.name.clone()]);
        let worker = NewWorker {
            name: "holder".to_owned(),
            queues: queues.clone(),
            kinds: kinds.clone(),
            lease: Duration::from_secs(600),
            ..NewWorker::default()
        };
        let worker = self.store().register_worker(&worker).await.unwrap();
        let claim_id = fastrand::i32(1..);
        let claim = Claim { worker, claim_id, queues, kinds, limit: 1, thorough: true };
        let job = self.store().claim(&claim).await.unwrap().pop().expect("no run is ready");
        Order { run: job.run, payload: job.payload, nominal_at: job.nominal_at }
    }
}

impl Held {
    /// Surveys the run; waits for concurrent writers, including those of other tests.
    pub(crate) async fn survey(&mut self) {
        while let Surveyed::Held(_) = self.run.survey().await.unwrap() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn chunk(&mut self, rows: u32) -> ChunkDone {
        match self.run.chunk(rows).await.unwrap() {
            Chunked::Done(done) => done,
            Chunked::Stopped(verb) => panic!("the run was stopped: {verb}"),
        }
    }
}

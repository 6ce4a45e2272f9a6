//! Every pair of verbs, run concurrently on the same batches, jobs and groups (PostgreSQL): none fails because of another, and there are no deadlocks.

use std::sync::Arc;
use std::time::Duration;

use milepost::{JobFilter, NewJob, StoreError};
use milepost_conformance::batches::{Batches, job};
use milepost_core::batch::operation::BatchVerb;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::TaskState;
use milepost_core::finish::{End, Finish};
use milepost_core::ident::BatchId;
use milepost_core::limit::Limit;
use milepost_core::port::{Operation, StoreResult};
use milepost_core::schedule::Source;
use milepost_core::transition::Verb;
use milepost_testkit::database::{self, Database};
use milepost_testkit::scene::{self, KIND, Scene, failure};
use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};

/// A verb on a job, a batch or the whole store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Start,
    Enqueue,
    End,
    EndAsOperator(Verb),
    Batch(BatchAct),
    Advance,
    StopOverdue,
    Rescue,
    FillGroups,
    Limit,
    Prune,
}

/// A verb on a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchAct {
    Abort,
    Resume,
    Cancel,
    Mark,
    Rerun,
    RerunFailed,
}

const ACTS: [Act; 19] = [
    Act::Start,
    Act::Enqueue,
    Act::End,
    Act::EndAsOperator(Verb::Cancel),
    Act::EndAsOperator(Verb::Abort),
    Act::EndAsOperator(Verb::RetryNow),
    Act::EndAsOperator(Verb::Mark),
    Act::Batch(BatchAct::Abort),
    Act::Batch(BatchAct::Resume),
    Act::Batch(BatchAct::Cancel),
    Act::Batch(BatchAct::Mark),
    Act::Batch(BatchAct::Rerun),
    Act::Batch(BatchAct::RerunFailed),
    Act::Advance,
    Act::StopOverdue,
    Act::Rescue,
    Act::FillGroups,
    Act::Limit,
    Act::Prune,
];
/// How often each pair runs, with each verb twice at the same time.
const ROUNDS: u32 = 4;
/// From how many batches one is chosen.
const MEETING: usize = 4;

struct Stage {
    batches: Batches,
}

impl Stage {
    async fn set(database: &Database) -> Self {
        let batches = Batches::on(Arc::new(database::open(&database.url()).await)).await;
        let grouped = || Task { group: Some("g".to_owned()), ..job() };
        let leaf =
            Definition::new("leaf").task("a", grouped()).task("b", job()).task("c", job().after(["a", "b"]));
        let middle = Definition::new("middle")
            .task("a", grouped())
            .task("in", Task::batch("leaf").after(["a"]))
            .task("z", job().after(["in"]));
        let outer = Definition::new("outer")
            .task("a", job())
            .task("in", Task::batch("middle").after(["a"]))
            .task("by", Task::batch("leaf"))
            .task("list", Task::each(KIND, "[1, 2, 3]").payload(json!("${ item }")))
            .task("z", job().after(["in", "by", "list"]));
        for dag in [leaf, middle, outer] {
            batches.define(dag).await;
        }
        let stage = Self { batches };
        stage.limit(3).await.unwrap();
        for _ in 0..3 {
            stage.start().await.unwrap();
        }
        stage
    }

    const fn scene(&self) -> &Scene {
        &self.batches.scene
    }

    async fn limit(&self, slots: u32) -> StoreResult<()> {
        self.scene().store.put_limit(&Limit::group("g").slots(slots), Source::Operator).await.map(drop)
    }

    async fn start(&self) -> StoreResult<()> {
        self.batches.start("outer", json!({})).await;
        self.scene().store.advance_batches().await.map(drop)
    }

    /// Returns one of the newest open batches, so that verbs meet on the same batch.
    async fn any_batch(&self) -> BatchId {
        let all = self.batches.all().await;
        let open: Vec<BatchId> =
            all.iter().filter(|batch| !batch.state.is_ended()).map(|batch| batch.id).take(MEETING).collect();
        match fastrand::choice(&open) {
            Some(batch) => *batch,
            None => self.batches.start("outer", json!({})).await,
        }
    }

    async fn act(&self, act: Act) -> StoreResult<()> {
        let store = &self.scene().store;
        match act {
            Act::Start => self.start().await,
            Act::Enqueue => {
                let of = |n: u32| Scene::job().group("g").key(n.to_string());
                let jobs: Vec<NewJob> = (0..3).map(|_| of(fastrand::u32(0..9))).collect();
                store.enqueue_many(&jobs).await.map(drop)
            }
            Act::End => self.end().await,
            Act::EndAsOperator(verb) => {
                let jobs =
                    store.jobs(&JobFilter { limit: 2 * MEETING as u32, ..JobFilter::default() }).await?;
                let Some(job) = fastrand::choice(&jobs) else { return Ok(()) };
                store.operate(job.id, &Operation::new(verb)).await.map(drop)
            }
            Act::Batch(deed) => self.operate(deed).await,
            Act::Advance => store.advance_batches().await.map(drop),
            Act::StopOverdue => store.stop_overdue(100).await.map(drop),
            Act::Rescue => {
                let worker = scene::register(store, Duration::from_millis(1)).await;
                self.scene().claim_for(worker, 3).await.or_else(none_if_lost)?;
                store.rescue_expired(100, &|_, _, _| Duration::ZERO).await.map(drop)
            }
            Act::FillGroups => store.fill_groups().await.map(drop),
            Act::Limit => self.limit(fastrand::u32(1..5)).await,
            Act::Prune => {
                self.batches.prune_jobs().await;
                store.prune_batches(Duration::ZERO).await.map(drop)
            }
        }
    }

    /// Ends some jobs in one call.
    async fn end(&self) -> StoreResult<()> {
        let worker = self.scene().worker;
        let claimed = self.scene().claim_for(worker, 4).await?;
        let ends: Vec<Finish> = claimed
            .iter()
            .map(|job| Finish {
                run: job.run,
                end: match fastrand::u8(0..4) {
                    0 => End::Fail { failure: failure() },
                    _ => End::Succeed { result: None },
                },
                grouped: job.group.is_some(),
                task: job.batch.is_some(),
            })
            .collect();
        self.scene().store.finish_many(worker, &ends).await.map(drop)
    }

    async fn operate(&self, deed: BatchAct) -> StoreResult<()> {
        let batch = self.any_batch().await;
        let task = fastrand::u32(0..3);
        let what = match deed {
            BatchAct::Abort => BatchVerb::Abort,
            BatchAct::Resume => BatchVerb::Resume,
            BatchAct::Cancel => BatchVerb::Cancel { tasks: vec![task] },
            BatchAct::Mark => BatchVerb::Mark { task, state: TaskState::Succeeded },
            BatchAct::Rerun => BatchVerb::Rerun { tasks: vec![task] },
            BatchAct::RerunFailed => return self.batches.try_rerun_failed(batch).await.map(drop),
        };
        self.batches.try_operate(batch, what).await.map(drop)
    }
}

fn none_if_lost<T: Default>(error: StoreError) -> StoreResult<T> {
    match error {
        StoreError::WorkerLost(_) => Ok(T::default()),
        other => Err(other),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_verb_fails_because_of_another_one_at_the_same_time() {
    let database = Database::migrated().await;
    let mut admin = PgConnection::connect(&database.url()).await.unwrap();
    let soon = "do $$ begin execute format('alter database %I set deadlock_timeout = ''10ms''', current_database()); end $$";
    admin.execute(soon).await.unwrap();
    let stage = Stage::set(&database).await;
    let mut found = Vec::new();
    for (at, first) in ACTS.into_iter().enumerate() {
        for second in ACTS.into_iter().skip(at) {
            for _ in 0..ROUNDS {
                let answers =
                    tokio::join!(stage.act(first), stage.act(second), stage.act(first), stage.act(second));
                for error in [answers.0, answers.1, answers.2, answers.3].into_iter().filter_map(Result::err)
                {
                    match error.chain() {
                        words if words.contains("deadlock") => {
                            found.push(format!("{first:?} and {second:?}: {words}"))
                        }
                        // The operation is not allowed in the present state of the batch or job.
                        _ if !error.is_transient() => {}
                        words => panic!("{first:?} and {second:?}: {words}"),
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "{} of {found:#?}", found.len());
    // A verb may retry internally, so also check the server's counter.
    let counted = "select deadlocks from pg_stat_database where datname = current_database()";
    let deadlocks: i64 = sqlx::query_scalar(counted).fetch_one(&mut admin).await.unwrap();
    assert_eq!(deadlocks, 0);
}

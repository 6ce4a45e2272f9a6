//! Conformance suite for batches, which are DAGs of jobs.

pub mod changes;
pub mod data;
pub mod ends;
pub mod inner;
pub mod inside;
pub mod large;
pub mod model;
pub mod operations;
pub mod random_inside;
pub mod random_versions;
pub mod reruns;
pub mod skips;
pub mod starts;
mod suite;
pub mod ticks;
pub mod versions;
pub mod versions_inside;
pub mod waits;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::{BatchEntry, BatchFilter, BatchView, TaskFilter, TaskView};
use milepost_core::batch::operation::{BatchOperated, BatchOperation, BatchVerb};
use milepost_core::batch::start::NewBatch;
use milepost_core::claim::ClaimedJob;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::rule::Tally;
use milepost_core::dag::state::{BatchState, Counts, TaskState};
use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finish, Finished};
use milepost_core::ident::BatchId;
use milepost_core::port::{Store, StoreResult};
use milepost_core::retention::RetentionPolicy;
use serde_json::{Value, json};

use milepost_testkit::scene::{KIND, Scene, failure, is_to_be_repeated};

/// Fixture for batch tests: a store, and common operations.
pub struct Batches {
    /// The store and a worker.
    pub scene: Scene,
    /// The same store.
    pub store: Arc<dyn Store>,
}

/// Returns a task of the kind that scenes use.
pub fn job() -> Task {
    Task::job(KIND)
}

/// Returns a DAG of jobs. Each key is listed with the keys of its predecessors.
pub fn graph(name: &str, tasks: &[(&str, &[&str])]) -> Definition {
    tasks
        .iter()
        .fold(Definition::new(name), |dag, (key, after)| dag.task(*key, job().after(after.iter().copied())))
}

/// Returns success without a result.
pub const fn done() -> End {
    End::Succeed { result: None }
}

/// Returns success with a result.
pub fn gives(result: &Value) -> End {
    End::Succeed { result: Some(result.to_string()) }
}

/// Returns a permanent failure.
pub fn fails() -> End {
    End::Fail { failure: failure() }
}

/// Returns the error of a rejected batch operation.
pub fn invalid<T: std::fmt::Debug>(answer: StoreResult<T>) -> InvalidBatch {
    match answer {
        Err(StoreError::Batch(invalid)) => invalid,
        other => panic!("not refused as a batch: {other:?}"),
    }
}

impl Batches {
    /// Creates the fixture on a fresh, migrated store.
    pub async fn on(store: Arc<dyn Store>) -> Self {
        Self { scene: Scene::on(store.clone()).await, store }
    }

    /// Checks and stores a definition.
    pub async fn define(&self, definition: Definition) -> Dag {
        let dag = Dag::check(definition).expect("invalid DAG");
        self.store.define_dag(&dag).await.expect("stored");
        dag
    }

    /// Stores a definition and starts a batch of it.
    pub async fn run(&self, definition: Definition, input: Value) -> BatchId {
        let dag = self.define(definition).await;
        self.start(&dag.definition().name, input).await
    }

    /// Starts a batch of the latest version.
    pub async fn start(&self, dag: &str, input: Value) -> BatchId {
        let batch = NewBatch::new(dag, &input).expect("JSON");
        let batch = self.store.start_batch(&batch).await.expect("started").batch;
        // A store may start a batch in several transactions, because each has a time limit; on a busy machine each does less.
        self.advance().await;
        batch
    }

    /// Processes all due work of batches; returns how many tasks were examined. Each call of the store makes progress while anything is due.
    pub async fn advance(&self) -> u64 {
        let mut looked = 0;
        loop {
            match self.store.advance_batches().await {
                Ok(0) => return looked,
                Ok(more) => looked += more,
                Err(error) => assert!(is_to_be_repeated(&error), "{}", error.chain()),
            }
        }
    }

    /// Returns all tasks of a batch.
    pub async fn tasks(&self, batch: BatchId) -> Vec<TaskView> {
        let filter = TaskFilter { limit: u32::MAX >> 1, ..TaskFilter::default() };
        self.store.batch_tasks(batch, &filter).await.expect("answered")
    }

    /// Returns a task by its key.
    pub async fn task(&self, batch: BatchId, key: &str) -> TaskView {
        let found = self.tasks(batch).await.into_iter().find(|task| task.key == key);
        found.unwrap_or_else(|| panic!("there is no task {key}"))
    }

    /// Returns the states of the tasks of a batch.
    pub async fn states(&self, batch: BatchId) -> BTreeMap<String, TaskState> {
        self.tasks(batch).await.into_iter().map(|task| (task.key, task.state)).collect()
    }

    /// Asserts the states of the tasks of a batch: `a succeeded, b active`.
    pub async fn assert_states(&self, batch: BatchId, expected: &str) {
        let states = self.states(batch).await;
        let told: Vec<_> = states.iter().map(|(key, state)| format!("{key} {state}")).collect();
        assert_eq!(told.join(", "), expected);
        self.assert_sound(batch).await;
    }

    /// Returns a batch as lists show it.
    pub async fn view(&self, batch: BatchId) -> BatchView {
        self.store.batch(batch).await.expect("answered").expect("the batch does not exist").row
    }

    /// Returns the state of a batch.
    pub async fn state(&self, batch: BatchId) -> BatchState {
        self.view(batch).await.state
    }

    /// Returns all batches, including inner ones.
    pub async fn all(&self) -> Vec<BatchView> {
        let filter = BatchFilter { inner: true, limit: 1000, ..BatchFilter::default() };
        self.store.batches(&filter).await.expect("answered")
    }

    /// Returns the history of a batch and of its tasks without jobs.
    pub async fn history(&self, batch: BatchId) -> Vec<BatchEntry> {
        self.store.batch_history(batch, 0, 10_000).await.expect("answered")
    }

    /// Claims all ready jobs. Returns those of this batch by task key.
    pub async fn claim(&self, batch: BatchId) -> BTreeMap<String, ClaimedJob> {
        let claimed = self.scene.claim(1000).await;
        let tasks = self.tasks(batch).await;
        claimed
            .into_iter()
            .map(|job| {
                assert_eq!(job.batch, Some(batch), "the claimed job has the id of its batch");
                let task =
                    tasks.iter().find(|task| task.job == Some(job.run.job)).expect("a task of the job");
                (task.key.clone(), job)
            })
            .collect()
    }

    /// Ends a run.
    pub async fn finish(&self, job: &ClaimedJob, end: End) {
        assert_eq!(self.scene.finish(job, end).await, Finished::Accepted);
    }

    /// Processes due work, claims the jobs of exactly these tasks, and ends them with `end`; then processes due work again.
    pub async fn step(&self, batch: BatchId, keys: &[&str], end: End) {
        self.advance().await;
        let claimed = self.claim(batch).await;
        assert_eq!(claimed.keys().map(String::as_str).collect::<Vec<_>>(), keys, "keys of the claimed tasks");
        for job in claimed.values() {
            self.finish(job, end.clone()).await;
        }
        self.advance().await;
    }

    /// Claims and ends the jobs of all batches until none is left. `end` returns the end of each. Returns how many jobs were ended.
    pub async fn work(&self, end: impl Fn(&ClaimedJob) -> End) -> usize {
        let mut worked = 0;
        loop {
            let claimed = self.scene.claim(1000).await;
            for job in &claimed {
                self.finish(job, end(job)).await;
            }
            worked += claimed.len();
            if self.advance().await == 0 && claimed.is_empty() {
                return worked;
            }
        }
    }

    /// Claims jobs until none is left, and ends up to a thousand in one call. Returns how many jobs were ended.
    pub async fn work_together(&self, end: impl Fn() -> End) -> usize {
        let mut worked = 0;
        loop {
            let claimed = self.scene.claim(1000).await;
            let finish = |job: &ClaimedJob| Finish { run: job.run, end: end(), grouped: false, task: true };
            let ends: Vec<Finish> = claimed.iter().map(finish).collect();
            let answers = self.store.finish_many(self.scene.worker, &ends).await.expect("answered");
            assert!(answers.iter().all(|answer| *answer == Finished::Accepted), "{answers:?}");
            worked += claimed.len();
            if self.advance().await == 0 && claimed.is_empty() {
                return worked;
            }
        }
    }

    /// Performs an operation on a batch.
    pub async fn try_operate(&self, batch: BatchId, what: BatchVerb) -> StoreResult<BatchOperated> {
        let note = Some("by a test".to_owned());
        let operation = BatchOperation { batch, generation: None, grace: Duration::ZERO, note, what };
        self.store.operate_batch(&operation).await
    }

    /// Performs an operation that must succeed, then processes due work.
    pub async fn operate(&self, batch: BatchId, what: BatchVerb) -> BatchOperated {
        let operated = self.try_operate(batch, what).await.expect("done");
        self.advance().await;
        operated
    }

    /// Returns the numbers of tasks.
    pub async fn numbers(&self, batch: BatchId, keys: &[&str]) -> Vec<u32> {
        let tasks = self.tasks(batch).await;
        let number = |key: &&str| tasks.iter().find(|task| task.key == **key).expect("a task").task;
        keys.iter().map(number).collect()
    }

    /// Asserts that the counters of a batch match its tasks, and that no work is due.
    pub async fn assert_sound(&self, batch: BatchId) {
        let (view, tasks) = (self.view(batch).await, self.tasks(batch).await);
        let counts: Counts = tasks.iter().map(|task| task.state).collect();
        assert_eq!(view.counts, counts, "the counts of the batch");
        assert_eq!(view.state, counts.state(view.stopped), "{counts:?}");
        assert_eq!(view.ended_at.is_some(), view.state.is_ended());
        if view.parent.as_ref().is_some_and(|parent| parent.items) {
            return;
        }
        let (_, definition) =
            self.store.dag(&view.dag, Some(view.version)).await.expect("the version does not exist");
        let states: BTreeMap<&str, TaskState> =
            tasks.iter().map(|task| (task.key.as_str(), task.state)).collect();
        for task in &tasks {
            let (_, spec) = definition.tasks.iter().find(|(key, _)| *key == task.key).expect("its task");
            let mut tally = Tally::new(u32::try_from(spec.after.len()).expect("few"));
            spec.after.iter().filter_map(|key| states[key.as_str()].outcome()).for_each(|end| tally.add(end));
            assert_eq!(task.pre_cnt, tally.open(), "predecessors of {} that have not ended", task.key);
        }
    }

    /// Deletes all jobs that may be deleted.
    pub async fn prune_jobs(&self) -> u64 {
        use milepost_core::retention::{Keep, Pace};
        let now = Keep::For(Duration::ZERO);
        let policy = RetentionPolicy {
            succeeded: now,
            canceled: now,
            failed: now,
            keys: now,
            ..RetentionPolicy::default()
        };
        let mut forgotten = 0;
        loop {
            let pruned = self.scene.store.prune(&policy, Pace { limit: 100, rest: 0 }).await.expect("pruned");
            let what = pruned.what;
            forgotten += what.succeeded + what.canceled + what.failed;
            if !pruned.more && pruned.rows == 0 {
                return forgotten;
            }
        }
    }
}

/// Returns an input for the conditions of tests.
pub fn answers() -> Value {
    json!({ "yes": true, "no": false })
}

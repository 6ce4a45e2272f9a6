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
pub mod ticks;
pub mod versions;

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

/// Generates a test from every function of the batch suite. `$fresh` is an async function without parameters that returns a guard and an `Arc<dyn
/// Store>` on a fresh, migrated store.
#[macro_export]
macro_rules! batch_conformance {
    ($fresh:path) => {
        $crate::batch_conformance! { $fresh:
            starts {
                a_start_makes_the_jobs_of_the_first_tasks_and_no_others
                a_key_has_one_batch_and_a_start_is_repeated_safely
                what_cannot_be_started_says_why
                the_same_content_is_the_same_version_and_the_latest_again
                a_definition_that_changes_during_a_run_changes_nothing_in_it
                a_batch_has_the_version_that_it_names
                batches_are_listed_newest_first_in_pages
            }
            ends {
                a_diamond_runs_in_order
                every_rule_does_what_its_table_says
                a_failed_task_holds_the_batch_until_its_job_is_tried_again
                attempts_that_are_tried_again_change_nothing
                a_rescue_of_the_last_attempt_goes_on
                a_hub_with_more_successors_than_a_page_releases_all
                ends_of_a_hub_stand_in_line
                a_batch_has_not_failed_while_ends_stand_in_line
                many_ends_at_once_are_counted_in_a_join
                ends_told_twice_count_once
                tasks_of_a_group_wait_for_one_another
                an_operator_of_jobs_moves_the_batch_too
            }
            skips {
                a_false_condition_skips_what_follows_and_makes_no_job
                a_condition_without_a_value_fails_the_task_until_it_is_rerun
                a_task_that_cleans_up_runs_after_a_skip
            }
            data {
                results_go_along_the_edges
                payloads_come_as_they_were_written
                a_result_over_the_limit_is_refused
                a_result_that_nobody_could_read_is_refused
                numbers_keep_all_their_digits
                an_input_that_nobody_could_read_is_refused
                a_task_that_reads_too_much_fails
                jobs_of_a_batch_are_kept_as_long_as_it
                jobs_of_a_batch_are_of_its_trace
            }
            inner {
                a_list_is_joined_once
                an_empty_list_succeeds_at_once
                items_that_fail_fail_the_task_until_they_are_tried_again
                a_batch_in_a_batch_leaves_the_results_of_its_last_tasks
                a_batch_that_cannot_start_fails_its_task
                batches_do_not_lie_deeper_than_they_may
                a_bulk_job_is_a_task
                a_kind_that_is_a_bulk_job_is_refused_in_dags_and_schedules
                a_stop_reaches_into_inner_batches
                a_cancel_leaves_the_clearing_up_of_inner_batches
                an_inner_batch_that_failed_can_be_stopped_and_go_on
                a_rerun_of_a_task_that_is_a_batch_starts_another_one
            }
            operations {
                an_abort_stops_everything_and_a_resume_goes_on
                a_stopped_batch_makes_no_jobs
                a_batch_whose_tasks_still_run_can_be_aborted_again_with_less_grace
                a_running_batch_can_be_resumed_for_the_sake_of_one_aborted_task
                a_cancel_ends_all_but_what_it_does_not_name
                tasks_canceled_together_are_none_skipped_for_another
                a_running_task_is_asked_to_stop
                a_requested_cancel_of_a_task_outlives_an_abort_and_a_resume
                a_resume_withdraws_the_abort_of_a_running_task
                a_mark_says_how_a_task_ended
                what_cannot_be_done_names_the_task
                what_lists_and_inner_batches_come_to_is_not_marked
                an_operator_who_was_overtaken_is_told
                history_tells_what_happened_to_the_batch
            }
            reruns {
                a_rerun_of_what_failed_goes_on
                a_rerun_from_a_task_on_runs_all_that_follows_again
                a_rerun_of_one_task_leaves_what_follows
                a_job_of_a_batch_is_not_rerun_by_itself
                a_rerun_of_a_hub_takes_back_what_stood_in_line
            }
            inside {
                only_items_that_failed_run_again
                what_failed_runs_again_at_any_depth
                what_failed_runs_again_while_other_items_run
                an_inner_batch_that_was_stopped_goes_on
                a_rerun_within_a_stopped_batch_waits_for_its_resume
                an_inner_batch_that_was_rerun_meanwhile_is_told
                a_task_that_failed_waits_for_the_list_before_it
                what_went_on_from_a_failure_does_not_run_again
                a_list_that_fails_again_at_once_has_failed
                a_list_goes_on_in_another_version_unless_it_is_defined_differently
                a_batch_in_which_nothing_failed_is_not_rerun
                items_end_while_operators_rerun_what_failed
            }
            random_inside {
                random_batches_in_batches_come_to_their_ends
            }
            large {
                a_task_that_reads_much_becomes_what_it_says
                tasks_that_read_the_same_large_results_are_all_evaluated
                tasks_that_read_more_than_a_round_loads_are_all_evaluated
                a_task_that_takes_too_much_fails_alone
                a_list_that_takes_much_keeps_no_other_batch_waiting
            }
            versions {
                a_mended_definition_brings_a_failed_batch_to_its_end
                tasks_keep_what_they_have_although_all_numbers_change
                a_task_that_is_added_runs
                a_task_that_is_gone_is_given_up
                a_task_that_comes_back_has_its_history
                an_input_that_does_not_fit_another_version_changes_nothing
                a_batch_of_which_something_runs_stays_in_its_version
                the_version_that_a_batch_has_is_no_other
                ends_that_stand_in_line_are_counted_in_the_other_version
                batches_in_a_batch_stay_with_their_tasks
                a_batch_that_was_given_up_with_its_task_skips_nothing
                jobs_of_tasks_that_are_gone_are_kept_as_long_as_the_batch
                a_task_is_decided_once_when_reruns_and_skips_meet
            }
            random_versions {
                random_batches_go_over_to_random_versions
                random_batches_that_once_failed_go_over_to_random_versions
            }
            ticks {
                a_tick_starts_one_batch_whoever_looks
                jobs_of_a_tick_know_it
                ticks_that_were_missed_start_their_batches_in_order
                a_batch_that_cannot_start_does_not_stop_its_schedule
                a_schedule_of_batches_comes_back_as_it_was_put
                run_now_starts_a_batch_beside_the_ticks
                expressions_know_the_tick_and_its_date
                a_batch_without_a_tick_has_none_in_expressions
                a_batch_that_an_operator_starts_can_have_a_tick
                a_daily_settlement_knows_its_day
                an_input_of_a_schedule_keeps_the_digits_of_its_numbers
                an_input_of_a_schedule_reads_its_tick_and_nothing_else
            }
            changes {
                a_batch_and_its_tasks_are_told
                what_operators_do_to_a_batch_is_told
                an_inner_batch_says_whose_it_is
                batches_of_other_dags_make_no_events
            }
            model {
                random_batches_go_as_the_model
            }
        }
    };
    ($fresh:path: $($topic:ident { $($test:ident)+ })+) => {
        $(mod $topic {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let (_guard, store) = $fresh().await;
                let batches = $crate::batches::Batches::on(store).await;
                $crate::batches::$topic::$test(batches).await;
            })+
        })+
    };
}

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

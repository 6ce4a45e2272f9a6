//! Random batches, compared with a model in memory.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use milepost_core::batch::operation::BatchVerb;
use milepost_core::claim::ClaimedJob;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::model::{Model, Script};
use milepost_core::dag::rule::{Outcome, Rule};
use milepost_core::dag::state::TaskState;
use milepost_core::finish::Finished;
use milepost_core::history::HistoryEntry;
use milepost_core::ident::BatchId;
use milepost_core::port::Operation;
use milepost_core::search::JobFilter;
use milepost_core::transition::Verb;

use super::{Batches, answers, done, fails, job};
use milepost_testkit::scene::retry;

/// Number of batches.
const CASES: u64 = 25;

/// A DAG with a script for each task.
struct Case {
    dag: Dag,
    rules: Vec<Rule>,
    scripts: Vec<Script>,
}

impl Case {
    fn random(name: &str, random: &mut fastrand::Rng) -> Self {
        let tasks = random.usize(1..25);
        let mut definition = Definition::new(name);
        let mut scripts = Vec::new();
        for at in 0..tasks {
            let after: BTreeSet<usize> =
                (0..random.usize(0..4)).filter(|_| at > 0).map(|_| random.usize(0..at.max(1))).collect();
            let rule = *random.choice(Rule::ALL).unwrap();
            let rule = if after.is_empty() && !rule.holds_for_roots() { Rule::default() } else { rule };
            let script = Script {
                failures: random.u32(0..3),
                max_attempts: random.u32(1..4),
                when: random.u32(0..100) < 85,
            };
            let task = Task { max_attempts: script.max_attempts, ..job() };
            let task = task.rule(rule).after(after.iter().map(|before| format!("t{before:02}")));
            // Tasks without a condition need no evaluation.
            let task = match (script.when, random.bool()) {
                (true, true) => task,
                (true, false) => task.when("input.yes"),
                (false, _) => task.when("input.no"),
            };
            definition = definition.task(format!("t{at:02}"), task);
            scripts.push(script);
        }
        let dag = Dag::check(definition).expect("invalid DAG");
        let rules = dag.rules();
        Self { dag, rules, scripts }
    }
}

/// A batch in the store and its model, in the same state.
struct Pair<'a> {
    batches: &'a Batches,
    batch: BatchId,
    case: &'a Case,
    model: Model<'a>,
    held: BTreeMap<u32, ClaimedJob>,
    attempts: Vec<u32>,
    again: HashSet<u32>,
}

pub async fn random_batches_go_as_the_model(batches: Batches) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    for number in 0..CASES {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_add(number));
        let case = Case::random(&format!("random{number}"), &mut random);
        batches.store.define_dag(&case.dag).await.expect("stored");
        let batch = batches.start(&case.dag.definition().name, answers()).await;
        let model = Model::start(case.dag.graph(), &case.rules, &case.scripts);
        let attempts = vec![0; case.scripts.len()];
        let held = BTreeMap::new();
        let mut pair =
            Pair { batches: &batches, batch, case: &case, model, held, attempts, again: HashSet::new() };
        pair.go(&mut random).await;
        pair.assert_each_job_was_made_once_and_in_time().await;
    }
}

impl Pair<'_> {
    async fn go(&mut self, random: &mut fastrand::Rng) {
        let cancels = random.u32(0..3) == 0;
        let mut retries = 2;
        loop {
            self.batches.advance().await;
            self.hold().await;
            if self.model.ready().is_empty() {
                if retries == 0 || !self.try_failed_again().await {
                    return;
                }
                retries -= 1;
            } else if cancels && random.u32(0..10) == 0 {
                self.cancel(random).await;
            } else {
                self.attempt(random.usize(0..self.model.ready().len())).await;
            }
        }
    }

    /// Claims all ready jobs. Asserts that the model has the same ready tasks and the same states.
    async fn hold(&mut self) {
        let tasks = self.batches.tasks(self.batch).await;
        for job in self.batches.scene.claim(1000).await {
            let task = tasks.iter().find(|task| task.job == Some(job.run.job)).expect("a task of the batch");
            self.held.insert(task.task, job);
        }
        let mut ready = self.model.ready().to_vec();
        ready.sort_unstable();
        assert_eq!(self.held.keys().copied().collect::<Vec<_>>(), ready, "ready tasks");
        let states: Vec<TaskState> = tasks.iter().map(|task| task.state).collect();
        assert_eq!(states, self.model.states());
        self.batches.assert_sound(self.batch).await;
    }

    async fn attempt(&mut self, place: usize) {
        let task = self.model.ready()[place];
        let script = self.case.scripts[task as usize];
        let attempts = &mut self.attempts[task as usize];
        *attempts += 1;
        let end = if *attempts > script.failures || self.again.contains(&task) {
            done()
        } else if *attempts < script.max_attempts {
            retry(Duration::ZERO)
        } else {
            fails()
        };
        let job = self.held.remove(&task).expect("the task is not held");
        self.batches.finish(&job, end).await;
        assert_eq!(self.model.attempt(place), task);
    }

    async fn cancel(&mut self, random: &mut fastrand::Rng) {
        let all: Vec<u32> = (0..self.attempts.len()).map(|task| u32::try_from(task).unwrap()).collect();
        let tasks: Vec<u32> = all.into_iter().filter(|_| random.u32(0..5) == 0).collect();
        self.batches.operate(self.batch, BatchVerb::Cancel { tasks: tasks.clone() }).await;
        for task in &tasks {
            if let Some(job) = self.held.remove(task) {
                let said = self.batches.scene.finish(&job, done()).await;
                assert_eq!(said, Finished::Fenced, "a run that is canceled without a grace period is fenced");
            }
        }
        self.model.cancel(&tasks);
    }

    /// Retries all failed tasks. Returns whether there were any.
    async fn try_failed_again(&mut self) -> bool {
        let failed: Vec<_> = self
            .batches
            .tasks(self.batch)
            .await
            .into_iter()
            .filter(|task| task.state == TaskState::Failed)
            .collect();
        for task in &failed {
            assert_eq!(self.model.progress().outcome(task.task), Some(Outcome::Failed));
            let job = task.job.expect("the failed task has no job");
            self.batches.scene.operate(job, Operation::new(Verb::RetryNow)).await.expect("tried again");
            self.model.try_again(task.task);
            self.again.insert(task.task);
        }
        !failed.is_empty()
    }

    async fn assert_each_job_was_made_once_and_in_time(&self) {
        let tasks = self.batches.tasks(self.batch).await;
        let mut histories: BTreeMap<u32, Vec<HistoryEntry>> = BTreeMap::new();
        for task in &tasks {
            if let Some(job) = task.job {
                self.batches.scene.assert_history_folds(job).await;
                histories.insert(task.task, self.batches.scene.history(job).await);
            }
        }
        for (&task, history) in &histories {
            let made: Vec<_> = history.iter().filter(|entry| entry.verb == Verb::Create).collect();
            assert_eq!(made.len(), 1);
            for before in self.case.dag.graph().predecessors(task) {
                let Some(before) = histories.get(before) else { continue };
                let ended = |entry: &&HistoryEntry| Outcome::of(entry.to).is_some();
                let first_end = before.iter().find(ended).expect("no end in the history");
                assert!(first_end.pos < made[0].pos, "a job is created after its predecessors have ended");
            }
        }
        let filter = JobFilter { limit: 10_000, ..JobFilter::default() };
        let all = self.batches.scene.store.jobs(&filter).await.expect("answered");
        let of_this = all.iter().filter(|job| tasks.iter().any(|task| task.job == Some(job.id)));
        assert_eq!(of_this.count(), histories.len());
    }
}

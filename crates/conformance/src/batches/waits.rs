//! Tasks that wait for signals and times.

use std::time::Duration;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::operation::BatchVerb;
use milepost_core::batch::start::NewBatch;
use milepost_core::batch::wait::{NewSignal, SignalResult};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::dag::wait::{OnTimeout, Wait};
use milepost_core::ident::BatchId;
use serde_json::{Value, json};

use super::{Batches, done, gives, invalid, job};
use milepost_testkit::examine::examine;
use milepost_testkit::wait::until;

/// The shortest time of a wait.
const SHORT: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_hours(24);

/// Returns a DAG in which `send` follows the task `ask`, which waits, and reads its output.
fn ask(wait: Wait) -> Definition {
    Definition::new("d").task("ask", Task::wait(wait)).task("send", send())
}

fn send() -> Task {
    job().payload(json!({ "answer": "${ tasks.ask.output }" })).after(["ask"])
}

fn approved() -> Wait {
    Wait::signal("approved")
}

impl Batches {
    /// Sends a signal and processes due work.
    async fn signal(&self, batch: BatchId, id: &str, payload: Value) -> SignalResult {
        let result = self.try_signal(batch, id, payload).await;
        self.advance().await;
        result
    }

    /// Sends a signal.
    async fn try_signal(&self, batch: BatchId, id: &str, payload: Value) -> SignalResult {
        let signal = NewSignal::new(batch, "approved").payload(&payload).unwrap().id(id);
        self.store.signal_batch(&signal).await.unwrap()
    }

    /// Returns the payload of the job of task `send`, which is then claimed.
    async fn sent(&self, batch: BatchId) -> Value {
        let claimed = self.claim(batch).await;
        serde_json::from_str(&claimed["send"].payload).unwrap()
    }

    /// Processes due work until a task is no longer active.
    async fn until_ended(&self, batch: BatchId, key: &str) {
        until("the wait ends", async || {
            self.advance().await;
            self.task(batch, key).await.state != TaskState::Active
        })
        .await;
    }

    /// Continues a batch in a new version of its DAG. No task is rerun.
    async fn rerun_in(&self, batch: BatchId, dag: Definition) {
        let version = self.define(dag).await.version();
        self.operate(batch, BatchVerb::RerunIn { version, tasks: Vec::new(), inside: None }).await;
    }

    /// Returns how often the task changed to another state than active, from active.
    async fn ends(&self, batch: BatchId, key: &str) -> usize {
        let history = self.history(batch).await;
        let is_end = |from: &Option<String>| from.as_deref() == Some("active");
        history.iter().filter(|entry| entry.key.as_deref() == Some(key) && is_end(&entry.from)).count()
    }
}

pub async fn a_signal_ends_a_wait_and_its_payload_is_the_output(batches: Batches) {
    let dag = ask(approved().choices(["yes", "no"]))
        .task("stop", job().when("tasks.ask.output.choice == 'no'").after(["ask"]));
    let batch = batches.run(dag, json!({})).await;
    batches.assert_states(batch, "ask active, send waiting, stop waiting").await;
    assert!(batches.scene.claim(10).await.is_empty(), "a task that waits has no job");
    assert_eq!(
        batches.signal(batch, "1", json!({"choice": "yes", "by": "ann"})).await,
        SignalResult::Accepted
    );
    batches.assert_states(batch, "ask succeeded, send active, stop skipped").await;
    assert_eq!(batches.sent(batch).await, json!({"answer": {"choice": "yes", "by": "ann"}}));
    let history = batches.history(batch).await;
    let notes: Vec<&str> = history.iter().filter_map(|entry| entry.note.as_deref()).collect();
    assert_eq!(
        notes[..2],
        ["waits for the signal approved", "the signal approved (1) arrived"],
        "{history:?}"
    );
}

pub async fn a_signal_before_the_wait_is_kept(batches: Batches) {
    let dag = Definition::new("d")
        .task("a", job())
        .task("ask", Task::wait(approved()).after(["a"]))
        .task("send", send());
    let batch = batches.run(dag, json!({})).await;
    for (id, payload) in [("1", json!("first")), ("2", json!("second"))] {
        assert_eq!(batches.signal(batch, id, payload).await, SignalResult::Accepted);
    }
    batches.assert_states(batch, "a active, ask waiting, send waiting").await;
    batches.step(batch, &["a"], done()).await;
    batches.assert_states(batch, "a succeeded, ask succeeded, send active").await;
    assert_eq!(batches.sent(batch).await, json!({"answer": "first"}));
}

pub async fn a_signal_with_the_same_id_counts_once(batches: Batches) {
    let batch = batches.run(ask(approved()), json!({})).await;
    assert_eq!(batches.try_signal(batch, "1", json!(1)).await, SignalResult::Accepted);
    assert_eq!(batches.try_signal(batch, "1", json!(2)).await, SignalResult::Duplicate);
    batches.advance().await;
    assert_eq!(batches.sent(batch).await, json!({"answer": 1}));
    assert_eq!(batches.signal(batch, "1", json!(1)).await, SignalResult::Duplicate, "also after the wait");
    assert_eq!(batches.signal(batch, "2", json!(1)).await, SignalResult::Late);
    batches.assert_states(batch, "ask succeeded, send active").await;
    // In another batch, it is another signal.
    let other = batches.start("d", json!({})).await;
    assert_eq!(batches.signal(other, "1", json!(1)).await, SignalResult::Accepted);
}

pub async fn a_timeout_does_what_the_definition_says(batches: Batches) {
    for (on_timeout, states) in [
        (OnTimeout::Fail, "ask failed, send waiting"),
        (OnTimeout::Skip, "ask skipped, send skipped"),
        (OnTimeout::Succeed, "ask succeeded, send active"),
    ] {
        let batch = batches.run(ask(approved().timeout(SHORT, on_timeout)), json!({})).await;
        batches.until_ended(batch, "ask").await;
        batches.assert_states(batch, states).await;
        if on_timeout == OnTimeout::Fail {
            let error = batches.task(batch, "ask").await.error.unwrap();
            assert_eq!(error, "timeout: the signal approved did not arrive in time");
            assert_eq!(batches.state(batch).await, BatchState::Failed);
        }
        if on_timeout == OnTimeout::Succeed {
            assert_eq!(batches.sent(batch).await, json!({"answer": null}));
        }
        assert_eq!(batches.signal(batch, "1", json!(1)).await, SignalResult::Late);
        assert_eq!(batches.ends(batch, "ask").await, 1);
    }
}

pub async fn a_wait_for_a_time_ends_by_itself(batches: Batches) {
    let dag = Definition::new("d")
        .task("ask", Task::wait(Wait::time(SHORT)))
        .task("then", Task::wait(Wait::until("${ input.at }")).after(["ask"]))
        .task("send", job().after(["then"]));
    let batch = batches.run(dag, json!({"at": "2020-01-01T00:00:00+01:00"})).await;
    batches.until_ended(batch, "ask").await;
    batches.until_ended(batch, "then").await;
    batches.assert_states(batch, "ask succeeded, send active, then succeeded").await;
    let later = batches.start("d", json!({"at": "2099-01-01T00:00:00Z"})).await;
    batches.until_ended(later, "ask").await;
    batches.assert_states(later, "ask succeeded, send waiting, then active").await;
    let wait = batches.task(later, "then").await.wait.unwrap();
    assert_eq!((wait.signal, wait.until.unwrap().to_string()), (None, "2099-01-01T00:00:00Z".to_owned()));
    let odd = batches.start("d", json!({"at": "tomorrow"})).await;
    batches.until_ended(odd, "ask").await;
    batches.assert_states(odd, "ask succeeded, send waiting, then failed").await;
    let error = batches.task(odd, "then").await.error.unwrap();
    assert!(error.starts_with("expression: until = ") && error.contains("is not a time"), "{error}");
}

pub async fn a_stored_signal_precedes_the_timeout(batches: Batches) {
    let dag = Dag::check(ask(approved().timeout(SHORT, OnTimeout::Fail))).unwrap();
    batches.store.define_dag(&dag).await.unwrap();
    // Its time is over before its first check, which is in `advance`.
    let batch = batches.store.start_batch(&NewBatch::new("d", &json!({})).unwrap()).await.unwrap().batch;
    assert_eq!(batches.try_signal(batch, "1", json!(1)).await, SignalResult::Accepted);
    batches.advance().await;
    batches.assert_states(batch, "ask succeeded, send active").await;
}

pub async fn a_signal_and_a_timeout_at_the_same_time_have_one_winner(batches: Batches) {
    const BATCHES: usize = 40;
    let dag = ask(approved().timeout(SHORT, OnTimeout::Skip));
    batches.define(dag).await;
    let mut started = Vec::new();
    for _ in 0..BATCHES {
        let batch = NewBatch::new("d", &json!({})).unwrap();
        started.push(batches.store.start_batch(&batch).await.unwrap().batch);
    }
    let signals = async {
        let mut results = Vec::new();
        for &batch in &started {
            results.push(batches.try_signal(batch, "1", json!(1)).await);
        }
        results
    };
    let advance = async || {
        for _ in 0..BATCHES {
            batches.advance().await;
        }
    };
    let (results, (), ()) = tokio::join!(signals, advance(), advance());
    for (&batch, result) in started.iter().zip(results) {
        batches.until_ended(batch, "ask").await;
        assert_eq!(batches.ends(batch, "ask").await, 1, "one end of the wait");
        let state = batches.task(batch, "ask").await.state;
        assert!(
            state == TaskState::Skipped || result == SignalResult::Accepted && state == TaskState::Succeeded,
            "{result} {state}"
        );
        batches.assert_sound(batch).await;
    }
}

pub async fn a_wait_can_be_canceled_and_marked(batches: Batches) {
    batches.define(ask(approved())).await;
    let batch = batches.start("d", json!({})).await;
    let tasks = batches.numbers(batch, &["ask", "send"]).await;
    assert_eq!(batches.operate(batch, BatchVerb::Cancel { tasks: tasks.clone() }).await.changed, 2);
    batches.assert_states(batch, "ask canceled, send canceled").await;
    assert_eq!(batches.signal(batch, "1", json!(1)).await, SignalResult::Late);
    assert_eq!(batches.state(batch).await, BatchState::Canceled);
    for (state, states) in [
        (TaskState::Succeeded, "ask succeeded, send active"),
        (TaskState::Skipped, "ask skipped, send skipped"),
        (TaskState::Failed, "ask failed, send waiting"),
    ] {
        let batch = batches.start("d", json!({})).await;
        batches.operate(batch, BatchVerb::Mark { task: tasks[0], state }).await;
        batches.assert_states(batch, states).await;
    }
}

pub async fn a_wait_that_is_aborted_continues_with_its_deadline(batches: Batches) {
    let batch = batches.run(ask(approved().timeout(DAY, OnTimeout::Fail)), json!({})).await;
    let until = batches.task(batch, "ask").await.wait.unwrap().until;
    assert_eq!(batches.operate(batch, BatchVerb::Abort).await.changed, 1);
    batches.assert_states(batch, "ask aborted, send waiting").await;
    assert_eq!(batches.state(batch).await, BatchState::Aborted);
    assert_eq!(batches.signal(batch, "1", json!(1)).await, SignalResult::Accepted);
    batches.assert_states(batch, "ask aborted, send waiting").await;
    assert_eq!(batches.task(batch, "ask").await.wait.unwrap().until, until);
    assert_eq!(batches.operate(batch, BatchVerb::Resume).await.changed, 1);
    batches.assert_states(batch, "ask succeeded, send active").await;
    assert_eq!(batches.sent(batch).await, json!({"answer": 1}));
}

pub async fn a_rerun_waits_for_a_new_signal(batches: Batches) {
    let batch = batches.run(ask(approved()), json!({})).await;
    for id in ["1", "2"] {
        assert_eq!(batches.try_signal(batch, id, json!(id)).await, SignalResult::Accepted);
    }
    batches.advance().await;
    batches.assert_states(batch, "ask succeeded, send active").await;
    let tasks = batches.numbers(batch, &["ask"]).await;
    batches.operate(batch, BatchVerb::Rerun { tasks: tasks.clone() }).await;
    batches.assert_states(batch, "ask active, send active").await;
    let refused = invalid(batches.try_operate(batch, BatchVerb::Rerun { tasks }).await);
    assert!(matches!(refused, InvalidBatch::Task { state: TaskState::Active, .. }), "{refused:?}");
    assert_eq!(batches.signal(batch, "2", json!(1)).await, SignalResult::Duplicate);
    batches.assert_states(batch, "ask active, send active").await;
    assert_eq!(batches.signal(batch, "3", json!(1)).await, SignalResult::Accepted);
    batches.assert_states(batch, "ask succeeded, send active").await;
}

pub async fn a_wait_in_an_inner_batch_gives_its_output(batches: Batches) {
    batches.define(Definition::new("inner").task("ask", Task::wait(approved()))).await;
    let outer = Definition::new("d").task("ask", Task::batch("inner")).task("send", send());
    let batch = batches.run(outer, json!({})).await;
    let inner = batches.task(batch, "ask").await.batch.unwrap();
    let refused = invalid(batches.store.signal_batch(&NewSignal::new(batch, "approved")).await);
    assert_eq!(refused, InvalidBatch::NoSuchSignal { batch, name: "approved".to_owned(), known: Vec::new() });
    assert_eq!(
        batches.signal(inner, "1", json!({"n": 12345678901234567890_u64})).await,
        SignalResult::Accepted
    );
    batches.assert_states(batch, "ask succeeded, send active").await;
    assert_eq!(batches.sent(batch).await, json!({"answer": {"ask": {"n": 12345678901234567890_u64}}}));
}

pub async fn a_wait_moves_with_its_task_to_another_version(batches: Batches) {
    let batch = batches.run(ask(approved()), json!({})).await;
    batches.operate(batch, BatchVerb::Abort).await;
    // Its number changes.
    batches.rerun_in(batch, ask(approved()).task("a", job())).await;
    batches.operate(batch, BatchVerb::Resume).await;
    batches.assert_states(batch, "a active, ask active, send waiting").await;
    assert_eq!(batches.signal(batch, "1", json!(1)).await, SignalResult::Accepted);
    batches.assert_states(batch, "a active, ask succeeded, send active").await;
}

pub async fn a_wait_that_another_version_defines_differently_begins_again(batches: Batches) {
    let batch = batches.run(ask(approved().timeout(DAY, OnTimeout::Fail)), json!({})).await;
    batches.operate(batch, BatchVerb::Abort).await;
    // Its number changes, too.
    let renamed = ask(Wait::signal("signed").choices(["yes"])).task("a", job());
    batches.rerun_in(batch, renamed).await;
    batches.assert_states(batch, "a due, ask due, send waiting").await;
    batches.operate(batch, BatchVerb::Resume).await;
    batches.assert_states(batch, "a active, ask active, send waiting").await;
    let wait = batches.task(batch, "ask").await.wait.unwrap();
    assert_eq!((wait.signal.as_deref(), wait.until), (Some("signed"), None));
    let refused = invalid(batches.store.signal_batch(&NewSignal::new(batch, "approved")).await);
    assert!(matches!(refused, InvalidBatch::NoSuchSignal { .. }), "{refused:?}");
    let signed = NewSignal::new(batch, "signed").payload(&json!({"choice": "yes"})).unwrap();
    assert_eq!(batches.store.signal_batch(&signed).await.unwrap(), SignalResult::Accepted);
    batches.advance().await;
    batches.assert_states(batch, "a active, ask succeeded, send active").await;
    assert_eq!(examine(&batches.store).await, []);
}

pub async fn a_wait_can_become_a_job_in_another_version(batches: Batches) {
    let batch = batches.run(ask(approved()), json!({})).await;
    batches.operate(batch, BatchVerb::Abort).await;
    batches.rerun_in(batch, Definition::new("d").task("ask", job()).task("send", send())).await;
    batches.operate(batch, BatchVerb::Resume).await;
    batches.step(batch, &["ask"], gives(&json!(7))).await;
    assert_eq!(batches.sent(batch).await, json!({"answer": 7}));
}

pub async fn another_version_gives_no_wait_a_signal_that_was_for_another_task_or_choice(batches: Batches) {
    let dag = |key: &'static str, wait: Wait| {
        Definition::new("d").task("a", job()).task(key, Task::wait(wait).after(["a"]))
    };
    let choices = |its: [&str; 2]| approved().choices(its);
    for (before, after, kept) in [
        (dag("ask", approved()), dag("check", approved()), false),
        (dag("ask", choices(["yes", "no"])), dag("ask", choices(["on", "off"])), false),
        (dag("ask", approved()), dag("ask", approved().timeout(DAY, OnTimeout::Skip)), true),
    ] {
        let key = after.tasks.last().unwrap().0.clone();
        let batch = batches.run(before, json!({})).await;
        assert_eq!(batches.try_signal(batch, "1", json!({"choice": "yes"})).await, SignalResult::Accepted);
        batches.operate(batch, BatchVerb::Abort).await;
        batches.rerun_in(batch, after).await;
        batches.operate(batch, BatchVerb::Resume).await;
        batches.step(batch, &["a"], done()).await;
        let state = if kept { TaskState::Succeeded } else { TaskState::Active };
        assert_eq!(batches.task(batch, &key).await.state, state, "{key}");
    }
}

pub async fn a_view_says_what_is_awaited(batches: Batches) {
    let schema = json!({"type": "object"});
    let wait = approved().timeout(DAY, OnTimeout::Skip).choices(["yes", "no"]).schema(schema.clone());
    let batch = batches.run(ask(wait), json!({})).await;
    let task = batches.task(batch, "ask").await;
    let wait = task.wait.unwrap();
    assert_eq!((wait.signal.as_deref(), wait.on_timeout), (Some("approved"), OnTimeout::Skip));
    assert_eq!((wait.choices, wait.schema), (vec!["yes".to_owned(), "no".to_owned()], Some(schema)));
    assert_eq!(wait.until.unwrap().duration_since(wait.since).unsigned_abs(), DAY);
    assert_eq!(task.started_at, Some(wait.since));
    assert!(batches.task(batch, "send").await.wait.is_none());
    assert_eq!(examine(&batches.store).await, [], "a wait is no finding");
}

pub async fn what_cannot_be_signaled_says_why(batches: Batches) {
    let schema = json!({"required": ["by"]});
    let dag = ask(approved().choices(["yes", "no"]).schema(schema)).task("b", Task::wait(Wait::signal("b")));
    let batch = batches.run(dag, json!({})).await;
    let refused = async |signal: NewSignal| invalid(batches.store.signal_batch(&signal).await);
    let missing = BatchId::new();
    assert_eq!(refused(NewSignal::new(missing, "approved")).await, InvalidBatch::NoSuchBatch(missing));
    let known = vec!["approved".to_owned(), "b".to_owned()];
    assert_eq!(
        refused(NewSignal::new(batch, "aproved")).await,
        InvalidBatch::NoSuchSignal { batch, name: "aproved".to_owned(), known }
    );
    for (payload, why) in [
        (json!(null), "must be one of: yes, no"),
        (json!({"choice": "maybe", "by": "ann"}), "must be one of: yes, no"),
        (json!({"choice": "yes"}), "does not match the schema"),
    ] {
        let signal = NewSignal::new(batch, "approved").payload(&payload).unwrap();
        let words = refused(signal).await.to_string();
        assert!(words.contains(why), "{words}");
    }
    batches.advance().await;
    batches.assert_states(batch, "ask active, b active, send waiting").await;
}

pub async fn a_batch_keeps_a_limited_number_of_signals(batches: Batches) {
    let dag = Definition::new("d")
        .task("a", job())
        .task("ask", Task::wait(approved()).after(["a"]))
        .task("b", Task::wait(Wait::signal("b")).after(["a"]));
    let batch = batches.run(dag, json!({})).await;
    for id in 0..100 {
        assert_eq!(batches.try_signal(batch, &id.to_string(), json!(null)).await, SignalResult::Accepted);
    }
    let refused = invalid(batches.store.signal_batch(&NewSignal::new(batch, "approved")).await);
    assert_eq!(refused, InvalidBatch::TooManySignals(batch));
    // Those of one wait do not exclude those of another.
    batches.store.signal_batch(&NewSignal::new(batch, "b")).await.unwrap();
    batches.step(batch, &["a"], gives(&json!(1))).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    // Signals and waits are deleted with their batch.
    while batches.store.prune_batches(Duration::ZERO).await.unwrap() > 0 {}
    assert!(batches.store.batch(batch).await.unwrap().is_none());
    assert_eq!(examine(&batches.store).await, []);
}

//! For each promise: a record that keeps it, and records that break it.

use std::fs;

use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb, transition};

use super::*;
use crate::record::{AskedJob, Change, Effect, EndAnswer, Job, Operation, Outcome, Row, Task, What};

/// A change of a record that breaks a promise.
type Break = fn(&mut Record);

/// Records that break a promise: its number, what happened, and how.
const CASES: &[(u8, &str, Break)] = &[
    (1, "an acknowledged job is missing", |record| remove_job(record, "a")),
    (1, "a refused job is there", |record| {
        record.operations.push(asked(Outcome::Failed, &[("late", None)]));
        record.rows.extend(done("late", 90));
    }),
    (1, "half of an unanswered call is there", |record| {
        record.operations.push(asked(Outcome::Unknown, &[("half", None), ("other half", None)]));
        record.rows.extend(done("half", 90));
    }),
    (2, "two jobs have one key", |record| {
        record.rows.extend(done("twin", 90));
        with_job(record, "twin", |job| {
            job.kind = "recorded".to_owned();
            job.key = Some("k".to_owned());
        });
    }),
    (2, "one key was answered with two jobs", |record| {
        record.rows.extend(done("other", 90));
        record.operations.push(asked(Outcome::Ok, &[("other", Some("k"))]));
    }),
    (3, "two ends of a run were accepted", |record| record.operations.push(end("a", 1, "fail"))),
    (3, "an accepted end is not in the history", |record| {
        record.operations.push(end("b", 1, "succeed"));
    }),
    (3, "an effect happened twice", |record| {
        record.rows.push(Row::Effect { job: "g1".to_owned(), token: 1 });
    }),
    (3, "an effect is missing", |record| record.rows.retain(|row| !matches!(row, Row::Effect { .. }))),
    (4, "a token was given out twice", |record| {
        with_changes(record, "a", |change| {
            if change.verb == "claim" {
                change.token = 0;
            }
        });
    }),
    (4, "a run was taken away within its lease", |record| {
        with_changes(record, "b", |change| {
            if change.verb == "retry" {
                change.at_ms -= 1_000;
            }
        });
    }),
    (5, "an ended job ran again", |record| {
        record.rows.push(change(91, "a", "claim", Some("succeeded"), "running", 2));
    }),
    (6, "a change is missing", |record| {
        record
            .rows
            .retain(|row| !matches!(row, Row::Change(change) if change.job == "a" && change.verb == "claim"));
    }),
    (6, "the state is not that of the history", |record| {
        with_job(record, "a", |job| job.state = "failed".to_owned());
    }),
    (7, "two jobs of a group ran at once", |record| {
        record.effects.push(Effect::Began { job: "g2".to_owned(), token: 1, at_ms: 225 });
    }),
    (7, "a kind started faster than its rate", |record| {
        record.rows.push(Row::Rate { kind: "k".to_owned(), per_s: 0.001, burst: 1 });
    }),
    (8, "a retry began too early", |record| {
        with_changes(record, "b", |change| {
            if change.verb == "retry" {
                change.ready_at_ms = Some(1_000_000);
            }
        });
    }),
    (8, "a job had too many attempts", |record| with_job(record, "b", |job| job.max_attempts = 1)),
    (9, "a job is still running", |record| with_job(record, "a", |job| job.state = "running".to_owned())),
    (10, "a tick made two jobs", |record| {
        record.rows.extend(done("tick again", 90));
        with_job(record, "tick again", |job| job.tick = Some("nightly 10:00".to_owned()));
    }),
    (10, "a tick made no job", |record| {
        record.rows.push(Row::Schedule { name: "nightly".to_owned(), due: vec!["11:00".to_owned()] });
    }),
    (11, "a job that waited was deleted", |record| {
        record.rows.push(Row::Retention);
        remove_job(record, "b");
    }),
    (12, "the old store accepted a job after the move", |record| {
        let late = asked(Outcome::Ok, &[("a", None)]);
        record.operations.push(Operation { store: Some("old".to_owned()), began_ms: 900, ..late });
    }),
    (13, "a target was missed", |record| {
        record.effects.retain(|effect| !matches!(effect, Effect::Target { key, .. } if key == "1"));
    }),
    (13, "a target was applied twice", |record| record.effects.push(target("1"))),
    (13, "something else was applied", |record| record.effects.push(target("99"))),
    (14, "a chunk began after the abort", |record| {
        record.effects.push(Effect::Chunk { run: "r".to_owned(), at_ms: 330 });
    }),
    (15, "a task began before its predecessor had ended", |record| {
        record.effects.push(Effect::Began { job: "t2".to_owned(), token: 1, at_ms: 1 });
    }),
    (15, "a task was released twice", |record| {
        record.rows.push(change(92, "t2", "release", Some("succeeded"), "pending", 1));
    }),
    (15, "a batch is done, a task is not", |record| {
        for row in &mut record.rows {
            if let Row::Task(task) = row {
                "blocked".clone_into(&mut task.state);
            }
        }
    }),
    (16, "a batch has another version", |record| {
        for row in &mut record.rows {
            if let Row::Batch { version, .. } = row {
                *version = 2;
            }
        }
    }),
    (17, "an emitted event is missing", |record| remove_event(record, "e2")),
    (17, "an event that was rolled back is there", |record| {
        record.operations.push(emit("e9", Outcome::Failed));
        record.rows.push(event("e9", 3, None));
    }),
    (17, "numbers are not in the order of the commits", |record| {
        for row in &mut record.rows {
            if let Row::Event { id, sequence, change: None, .. } = row {
                *sequence = if id == "e1" { 2 } else { 1 };
            }
        }
    }),
    (18, "a consumer had an effect twice", |record| record.effects.push(consumed("e2"))),
    (18, "a consumer missed an event", |record| {
        record.effects.retain(|effect| !matches!(effect, Effect::Consumed { event, .. } if event == "e2"));
    }),
    (19, "an event was never delivered", |record| {
        record.effects.retain(|effect| !matches!(effect, Effect::Delivered { event, .. } if event == "e2"));
    }),
    (19, "events were delivered in the wrong order", |record| {
        record.effects.insert(0, delivered("e2"));
    }),
    (19, "an event was delivered that never was", |record| record.effects.push(delivered("phantom"))),
    (20, "a change is two events", |record| record.rows.push(event("again", 9, Some(1)))),
    (20, "a change is no event", |record| remove_event(record, "c1")),
    (21, "a change has no entry", |record| {
        record.rows.retain(|row| !matches!(row, Row::Audit { .. }));
    }),
    (21, "a refused action has an entry", |record| {
        record.operations.push(act("refused", Outcome::Failed));
        record.rows.push(Row::Audit { mark: "refused".to_owned() });
    }),
    (22, "a watcher received a change twice", |record| {
        record.effects.push(Effect::Watched { watcher: "w".to_owned(), pos: 3 });
    }),
    (22, "a watcher missed a change", |record| {
        record.effects.retain(|effect| !matches!(effect, Effect::Watched { pos: 2, .. }));
    }),
];

#[test]
fn a_record_without_faults_keeps_every_promise() {
    for verdict in check(&good()) {
        assert!(verdict.is_kept(), "{verdict}");
    }
}

#[test]
fn nothing_is_said_about_promises_that_a_record_does_not_show() {
    for verdict in check(&Record::default()) {
        assert!(!verdict.is_kept() && verdict.violated == 0, "{verdict}");
    }
}

#[test]
fn every_broken_promise_is_found() {
    for (number, name, break_it) in CASES {
        let mut record = good();
        break_it(&mut record);
        let verdicts = check(&record);
        let verdict = &verdicts[usize::from(*number) - 1];
        assert_eq!(verdict.number, *number);
        assert!(verdict.violated > 0, "{name}: {verdict}");
    }
    for number in 1..=22 {
        assert!(CASES.iter().any(|(case, ..)| *case == number), "promise {number} is never broken");
    }
}

#[test]
fn the_allowed_changes_are_those_of_the_product() {
    let states = JobState::ALL.iter().map(|state| Some(*state)).chain([None]);
    for from in states {
        for verb in Verb::ALL {
            for readiness in [Readiness::Ready, Readiness::Held] {
                let Ok(to) = transition(from, *verb, readiness) else { continue };
                let from = from.map(JobState::as_str);
                assert!(states::is_allowed(verb.as_str(), from, to.as_str()), "{verb} from {from:?} to {to}");
            }
            for to in JobState::ALL {
                let is_possible = [Readiness::Ready, Readiness::Held]
                    .iter()
                    .any(|readiness| transition(from, *verb, *readiness) == Ok(*to));
                let from = from.map(JobState::as_str);
                let is_allowed = states::is_allowed(verb.as_str(), from, to.as_str());
                assert_eq!(is_allowed, is_possible, "{verb} from {from:?} to {to}");
            }
        }
    }
}

#[test]
fn the_promises_are_those_of_the_guarantees() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/GUARANTEES.md");
    let text = fs::read_to_string(path).unwrap();
    let promises = text.split("## Failover").next().unwrap();
    let numbers: Vec<usize> =
        promises.lines().filter_map(|line| line.split_once(". ")?.0.parse().ok()).collect();
    assert_eq!(numbers, (1..=PROMISES.len()).collect::<Vec<_>>());
}

/// A record that shows every promise, kept.
fn good() -> Record {
    let mut rows = vec![
        Row::GroupLimit { group: "g".to_owned(), slots: 1 },
        Row::Rate { kind: "k".to_owned(), per_s: 1_000.0, burst: 100 },
        Row::Schedule { name: "nightly".to_owned(), due: vec!["10:00".to_owned()] },
        Row::Recorded { kind: "recorded".to_owned() },
        Row::Subscription { name: "s".to_owned(), changes: false },
        Row::Consumer { name: "c".to_owned() },
        Row::Audit { mark: "m".to_owned() },
        Row::Batch { id: "batch".to_owned(), state: "done".to_owned(), version: 1 },
        event("e1", 1, None),
        event("e2", 2, None),
        event("c1", 1, Some(1)),
        event("c2", 2, Some(2)),
        event("c3", 3, Some(3)),
    ];
    for (index, id) in (0..).zip(["a", "tick", "g1", "g2", "t1"]) {
        rows.extend(done(id, index * 10 + 1));
    }
    rows.push(Row::Effectful { kind: "effect".to_owned() });
    rows.push(Row::Effect { job: "g1".to_owned(), token: 1 });
    rows.extend(retried("b", 60));
    rows.extend(released("t2", 70));
    let mut record = Record { operations: operations(), effects: effects(), rows };
    with_job(&mut record, "a", |job| {
        job.key = Some("k".to_owned());
        job.kind = "recorded".to_owned();
    });
    with_job(&mut record, "g1", |job| job.kind = "effect".to_owned());
    with_job(&mut record, "tick", |job| job.tick = Some("nightly 10:00".to_owned()));
    for id in ["g1", "g2"] {
        with_job(&mut record, id, |job| job.group = Some("g".to_owned()));
    }
    for (task, after) in [("t1", vec![]), ("t2", vec!["t1".to_owned()])] {
        record.rows.push(Row::Task(Task {
            batch: "batch".to_owned(),
            task: task.to_owned(),
            job: Some(task.to_owned()),
            after,
            open_predecessors: 0,
            state: "succeeded".to_owned(),
        }));
    }
    // The aggregate of the state changes of a job is another one than that of the emitted events.
    for row in &mut record.rows {
        if let Row::Event { aggregate, change: Some(_), .. } = row {
            "job a".clone_into(aggregate);
        }
    }
    record
}

fn operations() -> Vec<Operation> {
    let targets = vec!["1".to_owned(), "2".to_owned()];
    let start =
        What::StartBulk { run: "r".to_owned(), targets, optional: vec!["3".to_owned()], in_store: true };
    let batch = What::StartBatch { batch: "batch".to_owned(), key: Some("day".to_owned()), version: 1 };
    vec![
        asked(Outcome::Ok, &[("a", Some("k")), ("b", None)]),
        end("a", 1, "succeed"),
        operation(100, Outcome::Ok, What::Lease { job: "b".to_owned(), token: 1, until_ms: 500 }),
        operation(300, Outcome::Ok, start),
        operation(310, Outcome::Ok, What::AbortBulk { run: "r".to_owned() }),
        operation(340, Outcome::Ok, What::ResumeBulk { run: "r".to_owned() }),
        operation(350, Outcome::Ok, batch),
        Operation { began_ms: 400, ended_ms: Some(401), ..emit("e1", Outcome::Ok) },
        Operation { began_ms: 410, ended_ms: Some(411), ..emit("e2", Outcome::Ok) },
        act("m", Outcome::Ok),
        Operation { store: Some("new".to_owned()), ..operation(800, Outcome::Ok, What::Move) },
    ]
}

fn effects() -> Vec<Effect> {
    let mut effects = Vec::new();
    for (job, at_ms) in [("a", 21), ("g1", 221), ("g2", 321), ("t1", 421), ("t2", 721)] {
        effects.push(Effect::Began { job: job.to_owned(), token: 1, at_ms });
        effects.push(Effect::Finished { job: job.to_owned(), token: 1, at_ms: at_ms + 8 });
    }
    effects.push(Effect::Chunk { run: "r".to_owned(), at_ms: 305 });
    effects.push(Effect::Chunk { run: "r".to_owned(), at_ms: 345 });
    effects.extend(["1", "2", "3"].map(target));
    effects.extend(["e1", "e2", "e1"].map(delivered));
    effects.extend(["e1", "e2"].map(consumed));
    effects.extend([1, 2, 3].map(|pos| Effect::Watched { watcher: "w".to_owned(), pos }));
    effects
}

fn operation(began_ms: i64, outcome: Outcome, what: What) -> Operation {
    Operation {
        client: "client".to_owned(),
        began_ms,
        ended_ms: Some(began_ms + 1),
        outcome,
        store: None,
        what,
    }
}

fn asked(outcome: Outcome, jobs: &[(&str, Option<&str>)]) -> Operation {
    let jobs = jobs.iter().map(|(id, key)| AskedJob {
        id: (*id).to_owned(),
        kind: "recorded".to_owned(),
        key: key.map(str::to_owned),
        answer: None,
    });
    operation(0, outcome, What::Enqueue { jobs: jobs.collect() })
}

fn end(job: &str, token: u64, verb: &str) -> Operation {
    let (job, verb) = (job.to_owned(), verb.to_owned());
    operation(40, Outcome::Ok, What::End { job, token, verb, answer: Some(EndAnswer::Accepted) })
}

fn emit(event: &str, outcome: Outcome) -> Operation {
    let (event, aggregate, payload) = (event.to_owned(), "order".to_owned(), "{}".to_owned());
    operation(400, outcome, What::Emit { event, aggregate, payload })
}

fn act(mark: &str, outcome: Outcome) -> Operation {
    operation(500, outcome, What::Act { mark: mark.to_owned(), changed: true })
}

fn target(key: &str) -> Effect {
    Effect::Target { run: "r".to_owned(), key: key.to_owned() }
}

fn delivered(event: &str) -> Effect {
    Effect::Delivered { subscription: "s".to_owned(), event: event.to_owned() }
}

fn consumed(event: &str) -> Effect {
    Effect::Consumed { consumer: "c".to_owned(), event: event.to_owned(), in_order: true }
}

fn event(id: &str, sequence: u64, change: Option<i64>) -> Row {
    let (id, aggregate, payload) = (id.to_owned(), "order".to_owned(), "{}".to_owned());
    Row::Event { id, aggregate, sequence, payload, change }
}

fn change(pos: i64, job: &str, verb: &str, from: Option<&str>, to: &str, token: u64) -> Row {
    Row::Change(Change {
        pos,
        job: job.to_owned(),
        verb: verb.to_owned(),
        from: from.map(str::to_owned),
        to: to.to_owned(),
        attempt: u32::try_from(token).unwrap(),
        token,
        at_ms: pos * 10,
        ready_at_ms: None,
        error_code: None,
    })
}

fn job(id: &str, token: u64) -> Row {
    Row::Job(Job {
        id: id.to_owned(),
        kind: "k".to_owned(),
        key: None,
        group: None,
        tick: None,
        state: "succeeded".to_owned(),
        token,
        max_attempts: 2,
    })
}

/// A job that succeeded at once, with its history from this position.
fn done(id: &str, pos: i64) -> Vec<Row> {
    vec![
        job(id, 1),
        change(pos, id, "create", None, "pending", 0),
        change(pos + 1, id, "claim", Some("pending"), "running", 1),
        change(pos + 2, id, "succeed", Some("running"), "succeeded", 1),
    ]
}

/// A job whose worker lost its lease once.
fn retried(id: &str, pos: i64) -> Vec<Row> {
    let mut lost = change(pos + 2, id, "retry", Some("running"), "retry_wait", 1);
    if let Row::Change(lost) = &mut lost {
        (lost.error_code, lost.ready_at_ms) = (Some("lease_lost".to_owned()), Some(lost.at_ms + 5));
    }
    vec![
        job(id, 2),
        change(pos, id, "create", None, "pending", 0),
        change(pos + 1, id, "claim", Some("pending"), "running", 1),
        lost,
        change(pos + 3, id, "claim", Some("retry_wait"), "running", 2),
        change(pos + 4, id, "succeed", Some("running"), "succeeded", 2),
    ]
}

/// A task that waited for its predecessor.
fn released(id: &str, pos: i64) -> Vec<Row> {
    vec![
        job(id, 1),
        change(pos, id, "create", None, "blocked", 0),
        change(pos + 1, id, "release", Some("blocked"), "pending", 0),
        change(pos + 2, id, "claim", Some("pending"), "running", 1),
        change(pos + 3, id, "succeed", Some("running"), "succeeded", 1),
    ]
}

fn with_job(record: &mut Record, id: &str, edit: impl FnOnce(&mut Job)) {
    let job = record.rows.iter_mut().find_map(|row| match row {
        Row::Job(job) if job.id == id => Some(job),
        _ => None,
    });
    edit(job.expect("no such job"));
}

fn with_changes(record: &mut Record, id: &str, edit: impl Fn(&mut Change)) {
    for row in &mut record.rows {
        if let Row::Change(change) = row
            && change.job == id
        {
            edit(change);
        }
    }
}

fn remove_job(record: &mut Record, id: &str) {
    record.rows.retain(|row| match row {
        Row::Job(job) => job.id != id,
        Row::Change(change) => change.job != id,
        _ => true,
    });
}

fn remove_event(record: &mut Record, id: &str) {
    record.rows.retain(|row| !matches!(row, Row::Event { id: other, .. } if other == id));
}

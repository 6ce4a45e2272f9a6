//! A record that keeps every promise, and its parts.

use crate::record::{AskedJob, Change, Effect, EndAnswer, Job, Operation, Outcome, Record, Row, Task, What};

/// A record that shows every promise, kept.
pub(super) fn good() -> Record {
    let mut rows = vec![
        Row::GroupLimit { group: "g".to_owned(), slots: 1 },
        Row::Rate { kind: "k".to_owned(), per_s: 1_000.0, burst: 100 },
        Row::Schedule { name: "nightly".to_owned(), due: vec!["10:00".to_owned()] },
        Row::Recorded { kind: "recorded".to_owned() },
        Row::Subscription { name: "s".to_owned(), changes: false },
        Row::Consumer { name: "c".to_owned() },
        Row::Starter { name: "w".to_owned() },
        started("e1"),
        started("e2"),
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

pub(super) fn operations() -> Vec<Operation> {
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
        operation(355, Outcome::Ok, What::Signal { batch: "batch".to_owned(), task: "t1".to_owned() }),
        Operation { began_ms: 400, ended_ms: Some(401), ..emit("e1", Outcome::Ok) },
        Operation { began_ms: 410, ended_ms: Some(411), ..emit("e2", Outcome::Ok) },
        act("m", Outcome::Ok),
        Operation { store: Some("new".to_owned()), ..operation(800, Outcome::Ok, What::Move) },
    ]
}

pub(super) fn effects() -> Vec<Effect> {
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

pub(super) fn operation(began_ms: i64, outcome: Outcome, what: What) -> Operation {
    Operation {
        client: "client".to_owned(),
        began_ms,
        ended_ms: Some(began_ms + 1),
        outcome,
        store: None,
        what,
    }
}

pub(super) fn asked(outcome: Outcome, jobs: &[(&str, Option<&str>)]) -> Operation {
    let jobs = jobs.iter().map(|(id, key)| AskedJob {
        id: (*id).to_owned(),
        kind: "recorded".to_owned(),
        key: key.map(str::to_owned),
        answer: None,
    });
    operation(0, outcome, What::Enqueue { jobs: jobs.collect() })
}

pub(super) fn end(job: &str, token: u64, verb: &str) -> Operation {
    let (job, verb) = (job.to_owned(), verb.to_owned());
    operation(40, Outcome::Ok, What::End { job, token, verb, answer: Some(EndAnswer::Accepted) })
}

pub(super) fn emit(event: &str, outcome: Outcome) -> Operation {
    let (event, aggregate, payload) = (event.to_owned(), "order".to_owned(), "{}".to_owned());
    operation(400, outcome, What::Emit { event, aggregate, payload })
}

pub(super) fn act(mark: &str, outcome: Outcome) -> Operation {
    operation(500, outcome, What::Act { mark: mark.to_owned(), changed: true, revived: None })
}

pub(super) fn target(key: &str) -> Effect {
    Effect::Target { run: "r".to_owned(), key: key.to_owned() }
}

pub(super) fn delivered(event: &str) -> Effect {
    Effect::Delivered { subscription: "s".to_owned(), event: event.to_owned() }
}

pub(super) fn consumed(event: &str) -> Effect {
    Effect::Consumed { consumer: "c".to_owned(), event: event.to_owned(), in_order: true }
}

pub(super) fn started(event: &str) -> Row {
    Row::Started { by: "w".to_owned(), event: event.to_owned() }
}

pub(super) fn event(id: &str, sequence: u64, change: Option<i64>) -> Row {
    let (id, aggregate, payload) = (id.to_owned(), "order".to_owned(), "{}".to_owned());
    Row::Event { id, aggregate, sequence, payload, change }
}

pub(super) fn change(pos: i64, job: &str, verb: &str, from: Option<&str>, to: &str, token: u64) -> Row {
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

pub(super) fn job(id: &str, token: u64) -> Row {
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
pub(super) fn done(id: &str, pos: i64) -> Vec<Row> {
    vec![
        job(id, 1),
        change(pos, id, "create", None, "pending", 0),
        change(pos + 1, id, "claim", Some("pending"), "running", 1),
        change(pos + 2, id, "succeed", Some("running"), "succeeded", 1),
    ]
}

/// A job whose worker lost its lease once.
pub(super) fn retried(id: &str, pos: i64) -> Vec<Row> {
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
pub(super) fn released(id: &str, pos: i64) -> Vec<Row> {
    vec![
        job(id, 1),
        change(pos, id, "create", None, "blocked", 0),
        change(pos + 1, id, "release", Some("blocked"), "pending", 0),
        change(pos + 2, id, "claim", Some("pending"), "running", 1),
        change(pos + 3, id, "succeed", Some("running"), "succeeded", 1),
    ]
}

pub(super) fn with_job(record: &mut Record, id: &str, edit: impl FnOnce(&mut Job)) {
    let job = record.rows.iter_mut().find_map(|row| match row {
        Row::Job(job) if job.id == id => Some(job),
        _ => None,
    });
    edit(job.expect("no such job"));
}

pub(super) fn with_changes(record: &mut Record, id: &str, edit: impl Fn(&mut Change)) {
    for row in &mut record.rows {
        if let Row::Change(change) = row
            && change.job == id
        {
            edit(change);
        }
    }
}

pub(super) fn remove_job(record: &mut Record, id: &str) {
    record.rows.retain(|row| match row {
        Row::Job(job) => job.id != id,
        Row::Change(change) => change.job != id,
        _ => true,
    });
}

pub(super) fn remove_event(record: &mut Record, id: &str) {
    record.rows.retain(|row| !matches!(row, Row::Event { id: other, .. } if other == id));
}

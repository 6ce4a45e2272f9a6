//! Changes of a good record, each of which breaks a promise.

use super::good::*;
use crate::record::{Effect, Operation, Outcome, Record, Row, What};

/// A change of a record that breaks a promise.
pub(super) type Break = fn(&mut Record);

/// Records that break a promise: its number, what happened, and how.
pub(super) const CASES: &[(u8, &str, Break)] = &[
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
    (3, "a run succeeded while its handler was working", |record| {
        for effect in &mut record.effects {
            if let Effect::Finished { job, at_ms, .. } = effect
                && job == "a"
            {
                *at_ms += 1_000;
            }
        }
    }),
    (3, "a run succeeded whose handler has not ended", |record| {
        record.effects.retain(|effect| !matches!(effect, Effect::Finished { job, .. } if job == "t1"));
    }),
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
    (11, "a job that ran again was deleted", |record| {
        record.rows.push(Row::Retention);
        remove_job(record, "a");
        let revived = Some("a".to_owned());
        let what = What::Act { mark: "m2".to_owned(), changed: true, revived };
        record.operations.push(operation(900, Outcome::Ok, what));
        record.rows.push(Row::Audit { mark: "m2".to_owned() });
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
    (15, "a signal was acknowledged, and its task still waits", |record| {
        let signal = What::Signal { batch: "batch".to_owned(), task: "t2".to_owned() };
        record.operations.push(operation(360, Outcome::Ok, signal));
        for row in &mut record.rows {
            match row {
                Row::Task(task) if task.task == "t2" => "active".clone_into(&mut task.state),
                Row::Batch { state, .. } => "running".clone_into(state),
                _ => {}
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
    (19, "an event has started two jobs", |record| record.rows.push(started("e2"))),
    (19, "an event has started no job", |record| {
        record.rows.retain(|row| !matches!(row, Row::Started { event, .. } if event == "e2"));
    }),
    (19, "a job was started by an event that never was", |record| record.rows.push(started("phantom"))),
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

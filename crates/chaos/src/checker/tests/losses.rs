//! Records with a loss of commits: what it explains, and what it does not.

use super::good::*;
use super::*;
use crate::record::{Effect, EndAnswer, Loss, LostRow, Row};

/// When the calls of these records began, within the loss.
const DURING_MS: i64 = 2_050;

/// Something acknowledged that is missing: the promise, what it is, how it gets into the record, and the row that was lost.
type Missing = (u8, &'static str, fn(&mut Record), fn() -> LostRow);

/// The promises about calls: each is broken without the loss.
const MISSING: &[Missing] = &[
    (
        1,
        "a job",
        |record| record.operations.push(during(asked(Outcome::Ok, &[("gone", None)]))),
        || lost_job("gone"),
    ),
    (
        2,
        "the job of a key",
        |record| {
            record.operations.push(during(asked(Outcome::Ok, &[("gone", Some("key"))])));
            record.operations.push(asked(Outcome::Ok, &[("b", Some("key"))]));
        },
        || lost_job("gone"),
    ),
    (
        3,
        "an end",
        |record| record.operations.push(during(end("b", 1, "succeed"))),
        || lost_change("b", 90, "succeed", 1),
    ),
    (
        11,
        "a job that waits",
        |record| record.operations.push(during(asked(Outcome::Ok, &[("gone", None)]))),
        || lost_job("gone"),
    ),
    (
        13,
        "a bulk run",
        |record| {
            let (run, targets) = ("gone".to_owned(), vec!["1".to_owned()]);
            let start = What::StartBulk { run, targets, optional: Vec::new(), in_store: true };
            record.operations.push(operation(DURING_MS, Outcome::Ok, start));
        },
        || lost_job("gone"),
    ),
    (
        14,
        "an abort of a bulk run",
        |record| {
            let abort = What::AbortBulk { run: "r".to_owned() };
            record.operations.push(operation(DURING_MS, Outcome::Ok, abort));
            record.effects.push(Effect::Chunk { run: "r".to_owned(), at_ms: DURING_MS + 10 });
        },
        // An abort leaves no row: only its time counts.
        || lost_job("other"),
    ),
    (
        16,
        "a batch",
        |record| {
            let start = |batch: &str| What::StartBatch {
                batch: batch.to_owned(),
                key: Some("day".to_owned()),
                version: 1,
            };
            record.operations.push(operation(DURING_MS, Outcome::Ok, start("gone")));
        },
        || LostRow::Batch { batch: "gone".to_owned() },
    ),
    (17, "an event", |record| record.operations.push(during(emit("gone", Outcome::Ok))), lost_event),
    (
        21,
        "an entry of the audit",
        |record| record.operations.push(during(act("gone", Outcome::Ok))),
        || LostRow::Audit { mark: "gone".to_owned() },
    ),
];

/// Effects of work that was lost: each breaks the promise without the loss.
const EFFECTS: &[Missing] = &[
    (
        7,
        "a run of a group",
        |record| {
            let (job, token) = ("g2".to_owned(), 9);
            record.effects.push(Effect::Began { job: job.clone(), token, at_ms: 225 });
            record.effects.push(Effect::Finished { job, token, at_ms: 240 });
        },
        || lost_change("g2", 90, "claim", 9),
    ),
    (
        15,
        "a run of a task",
        |record| record.effects.push(Effect::Began { job: "t2".to_owned(), token: 9, at_ms: 1 }),
        || lost_change("t2", 90, "claim", 9),
    ),
    (18, "an event that a consumer took in", |record| record.effects.push(consumed("order 9")), lost_event),
    (19, "an event that was delivered", |record| record.effects.push(delivered("gone")), lost_event),
];

fn lost_job(id: &str) -> LostRow {
    LostRow::Job { job: id.to_owned() }
}

fn lost_change(job: &str, pos: i64, verb: &str, token: u64) -> LostRow {
    let is_end = verb != "claim";
    LostRow::Change { pos, job: job.to_owned(), verb: verb.to_owned(), token, is_end }
}

fn lost_event() -> LostRow {
    LostRow::Event { event: "gone".to_owned(), aggregate: "order".to_owned(), sequence: 9 }
}

fn during(call: Operation) -> Operation {
    Operation { began_ms: DURING_MS, ended_ms: Some(DURING_MS + 1), ..call }
}

fn loss(rows: Vec<LostRow>) -> Row {
    Row::Loss(Loss { number: 1, since_ms: 2_000, until_ms: 2_100, last_pos: 80, rows })
}

fn verdict(record: &Record, number: u8) -> Verdict {
    check(record).swap_remove(usize::from(number) - 1)
}

#[test]
fn what_a_loss_removed_breaks_no_promise() {
    for (number, name, add, lost) in MISSING.iter().chain(EFFECTS) {
        let mut record = good();
        add(&mut record);
        record.rows.push(loss(vec![lost()]));
        let verdict = verdict(&record, *number);
        assert!(verdict.is_kept(), "{name}: {verdict}");
    }
}

#[test]
fn what_is_missing_without_a_loss_breaks_a_promise() {
    for (number, name, add, _) in MISSING.iter().chain(EFFECTS) {
        let mut record = good();
        add(&mut record);
        assert!(verdict(&record, *number).violated > 0, "{name}");
    }
}

#[test]
fn what_the_lost_server_had_not_stored_breaks_a_promise() {
    for (number, name, add, _) in MISSING.iter().filter(|(number, ..)| *number != 14).chain(EFFECTS) {
        let mut record = good();
        add(&mut record);
        record.rows.push(loss(vec![lost_job("other"), lost_change("other", 91, "claim", 1)]));
        assert!(verdict(&record, *number).violated > 0, "{name}");
    }
}

#[test]
fn what_was_acknowledged_before_or_after_a_loss_is_not_excused_by_it() {
    for (number, name, add, lost) in MISSING {
        for by_ms in [-1_000, 1_000] {
            let mut record = good();
            let known = record.operations.len();
            add(&mut record);
            for call in &mut record.operations[known..] {
                (call.began_ms, call.ended_ms) = (call.began_ms + by_ms, call.ended_ms.map(|ms| ms + by_ms));
            }
            for effect in &mut record.effects {
                if let Effect::Chunk { at_ms, .. } = effect
                    && *at_ms > DURING_MS
                {
                    *at_ms += by_ms;
                }
            }
            record.rows.push(loss(vec![lost()]));
            assert!(verdict(&record, *number).violated > 0, "{name}");
        }
    }
}

#[test]
fn a_run_token_of_a_lost_claim_is_never_given_out_again() {
    let mut record = good();
    record.rows.push(loss(vec![lost_change("a", 90, "claim", 2)]));
    assert!(verdict(&record, 4).is_kept());
    record.rows.push(loss(vec![lost_change("a", 90, "claim", 1)]));
    assert!(verdict(&record, 4).violated > 0);
}

#[test]
fn an_end_that_was_accepted_after_its_claim_was_lost_breaks_a_promise() {
    let mut record = good();
    record.rows.push(loss(vec![lost_change("b", 90, "claim", 9)]));
    record.operations.push(during(end("b", 9, "succeed")));
    assert!(verdict(&record, 3).violated > 0);
}

#[test]
fn a_run_whose_end_was_lost_can_end_again() {
    let mut record = good();
    record.rows.push(loss(vec![lost_change("a", 90, "succeed", 1)]));
    record.operations.push(during(end("a", 1, "succeed")));
    assert!(verdict(&record, 3).is_kept(), "{}", verdict(&record, 3));
}

#[test]
fn a_watcher_is_reset_after_commits_were_lost() {
    let watched = |pos| Effect::Watched { watcher: "v".to_owned(), pos };
    let mut record = good();
    record.rows.push(loss(vec![lost_change("a", 3, "succeed", 1), lost_change("a", 90, "claim", 9)]));
    // Job a has the positions 1 to 3; the third is that of another change now.
    record.effects.extend([watched(1), watched(3), watched(90), Effect::CommitsLost { loss: 1 }]);
    let mut late = record.clone();
    late.effects.extend([watched(90 + 1)]);
    assert!(verdict(&late, 22).violated > 0, "a new change came without a reset");
    record.effects.push(Effect::Reset { watcher: "v".to_owned() });
    record.effects.extend([watched(3), watched(90)]);
    assert!(verdict(&record, 22).is_kept(), "{}", verdict(&record, 22));
}

#[test]
fn lost_calls_are_counted_once() {
    let mut record = good();
    record.operations.push(during(asked(Outcome::Ok, &[("x", None), ("y", None)])));
    record.operations.push(during(asked(Outcome::Unknown, &[("x", None)])));
    let call = What::End { job: "b".to_owned(), token: 9, verb: "succeed".to_owned(), answer: None };
    record.operations.push(operation(DURING_MS, Outcome::Ok, call));
    let fenced = What::End {
        job: "b".to_owned(),
        token: 9,
        verb: "succeed".to_owned(),
        answer: Some(EndAnswer::Fenced),
    };
    record.operations.push(operation(DURING_MS, Outcome::Failed, fenced));
    record.rows.push(loss(vec![lost_job("x"), lost_job("y"), lost_change("b", 90, "succeed", 9)]));
    assert_eq!(lost_calls(&record), 1);
}

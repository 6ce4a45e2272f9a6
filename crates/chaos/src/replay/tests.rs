//! Replay of a part of a real record: it is accepted as it is, and refused when it is tampered with.

use super::*;
use crate::record::Row;
use crate::record::{Loss, LostRow};

/// Six jobs of a run on PostgreSQL with failovers: rescued, canceled, rerun, aborted, snoozed and retried.
const RECORD: &str = include_str!("record.jsonl");

fn record() -> Record {
    Record::read(RECORD.as_bytes()).unwrap()
}

/// Returns the refused jobs of a record of which one change was tampered with: the first with this verb.
fn refused_with(verb: &str, tamper: impl FnOnce(&mut record::Change)) -> Vec<String> {
    let mut record = record();
    let mut changes = record.rows.iter_mut().filter_map(|row| match row {
        Row::Change(change) if change.verb == verb => Some(change),
        _ => None,
    });
    tamper(changes.next().unwrap());
    replay_jobs(&record).refused
}

#[test]
fn a_real_record_is_accepted() {
    let replay = replay_jobs(&record());
    assert_eq!((replay.jobs, replay.refused), (6, Vec::new()));
    assert_eq!(replay.changes, record().changes().count());
}

#[test]
fn a_tampered_change_is_refused_with_its_job() {
    let refused = [
        refused_with("retry", |change| change.to = "pending".to_owned()),
        refused_with("retry", |change| change.error_code = None),
        refused_with("claim", |change| change.token = 0),
        refused_with("claim", |change| change.attempt = 2),
        refused_with("succeed", |change| change.token += 1),
        refused_with("rerun", |change| change.verb = "resume".to_owned()),
        refused_with("abort", |change| change.attempt = 0),
    ];
    for (index, refused) in refused.iter().enumerate() {
        // Without the code, the retry is one that the worker reported, which the model allows.
        let is_allowed = index == 1;
        assert_eq!(refused.len(), usize::from(!is_allowed), "{index}: {refused:?}");
        assert!(refused.iter().all(|job| job.starts_with("job 01a21d5") && job.contains("change ")));
    }
}

#[test]
fn an_answer_that_the_history_contradicts_is_refused() {
    let mut record = record();
    for operation in &mut record.operations {
        if let What::End { answer: answer @ None, .. } = &mut operation.what {
            *answer = Some(EndAnswer::Accepted);
        }
    }
    let refused = replay_jobs(&record).refused;
    assert_eq!(refused.len(), 1);
    assert!(refused[0].contains("was answered with Accepted"), "{refused:?}");
}

#[test]
fn a_name_that_the_product_does_not_have_is_refused() {
    let refused = refused_with("snooze", |change| change.verb = "sleep".to_owned());
    assert!(refused.iter().any(|job| job.contains("unknown name \"sleep\"")), "{refused:?}");
}

#[test]
fn an_answer_that_a_loss_of_commits_undid_is_not_compared() {
    let mut record = record();
    let mut rows = Vec::new();
    for operation in &mut record.operations {
        if let What::End { job, token, verb, answer: answer @ None } = &mut operation.what {
            *answer = Some(EndAnswer::Accepted);
            let (job, token, verb) = (job.clone(), *token, verb.clone());
            rows.push(LostRow::Change { pos: 1, job, verb, token, is_end: true });
        }
    }
    assert!(!rows.is_empty());
    let (since_ms, until_ms) = (0, i64::MAX);
    record.rows.push(Row::Loss(Loss { number: 1, since_ms, until_ms, last_pos: 0, rows }));
    assert_eq!(replay_jobs(&record).refused, Vec::<String>::new());
}

//! Replay of recorded histories: a true record is accepted, and every tampered one is refused.

use milepost_core::finish::Finished;
use milepost_core::state::JobState::{self, Failed, Pending, RetryWait, Running, Succeeded};
use milepost_core::transition::Verb;
use milepost_models::job::replay::{
    AttemptFailure, Change, RecordedJob, RecordedLease, Refused, Report, replay,
};

fn change(verb: Verb, from: Option<JobState>, to: JobState, attempt: u32, token: u64) -> Change {
    Change { verb, from, to, attempt, token, at_ms: 0, failure: None }
}

/// Returns the record of a job whose first worker lost its lease, whose second attempt was its last one, and that an operator retried. Its
/// third run has a token after a gap, as after a failover.
fn record() -> RecordedJob {
    let rescue = Change {
        at_ms: 200,
        failure: Some(AttemptFailure::LeaseLost),
        ..change(Verb::Retry, Some(Running), RetryWait, 1, 1)
    };
    let changes = vec![
        change(Verb::Create, None, Pending, 0, 0),
        change(Verb::Claim, Some(Pending), Running, 1, 1),
        rescue,
        change(Verb::Claim, Some(RetryWait), Running, 2, 2),
        change(Verb::Fail, Some(Running), Failed, 2, 2),
        change(Verb::RetryNow, Some(Failed), Pending, 2, 2),
        change(Verb::Claim, Some(Pending), Running, 3, 100_001),
        change(Verb::Succeed, Some(Running), Succeeded, 3, 100_001),
    ];
    let report = |token, verb, answer| Report { token, verb, answer };
    let reports = vec![
        report(1, Verb::Succeed, Finished::Fenced),
        report(2, Verb::Fail, Finished::Accepted),
        report(2, Verb::Fail, Finished::Repeated),
        report(100_001, Verb::Succeed, Finished::Accepted),
    ];
    let leases = vec![RecordedLease { token: 1, until_ms: 150 }, RecordedLease { token: 2, until_ms: 900 }];
    RecordedJob { attempts_max: 4, changes, leases, reports }
}

/// Returns the reason for which a tampered record is refused.
fn refused(tamper: impl FnOnce(&mut RecordedJob)) -> Refused {
    let mut record = record();
    tamper(&mut record);
    match replay(&record) {
        Ok(()) => panic!("the record was accepted"),
        Err(refused) => refused,
    }
}

/// Returns the number of the change for which a tampered record is refused.
fn refused_change(tamper: impl FnOnce(&mut RecordedJob)) -> usize {
    match refused(tamper) {
        Refused::Change { number, .. } => number,
        other => panic!("{other}"),
    }
}

#[test]
fn a_true_record_is_accepted() {
    assert_eq!(replay(&record()), Ok(()));
}

#[test]
fn a_missing_change_is_refused() {
    for index in 0..7 {
        let number = refused_change(|record| {
            record.changes.remove(index);
        });
        assert_eq!(number, index + 1);
    }
}

#[test]
fn a_change_that_is_no_transition_is_refused() {
    assert_eq!(refused_change(|record| record.changes[4].to = Succeeded), 5);
    assert_eq!(refused_change(|record| record.changes[5].verb = Verb::Resume), 6);
    let again = change(Verb::Claim, Some(Succeeded), Running, 4, 100_002);
    assert_eq!(refused_change(|record| record.changes.push(again)), 9);
}

#[test]
fn a_token_that_does_not_rise_is_refused() {
    assert_eq!(refused_change(|record| record.changes[3].token = 1), 4);
    assert_eq!(refused_change(|record| record.changes[4].token = 3), 5);
}

#[test]
fn a_wrong_number_of_attempts_is_refused() {
    assert_eq!(refused_change(|record| record.changes[6].attempt = 4), 7);
    assert_eq!(refused(|record| record.attempts_max = 3), Refused::AttemptsMax(3));
}

#[test]
fn a_rescue_before_the_end_of_the_lease_is_refused() {
    let number = refused_change(|record| record.leases[0].until_ms = 201);
    assert_eq!(number, 3);
}

#[test]
fn a_lease_of_a_run_that_never_began_is_refused() {
    assert_eq!(refused(|record| record.leases[0].token = 3), Refused::Lease(3));
}

#[test]
fn an_answer_that_contradicts_the_history_is_refused() {
    for index in 0..4 {
        for answer in [Finished::Accepted, Finished::Repeated, Finished::Fenced] {
            let mut record = record();
            if record.reports[index].answer == answer {
                continue;
            }
            record.reports[index].answer = answer;
            // A single accepted end may also have been reported as repeated: the first answer was lost.
            let is_possible = matches!(index, 1 | 3) && answer == Finished::Repeated;
            assert_eq!(replay(&record).is_ok(), is_possible, "report {index} as {answer:?}");
        }
    }
}

//! Runs that pass, and runs that break one rule each.

use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::api::{Answer, Attempt};
use crate::plan::Plan;

/// A run with three jobs.
struct Run {
    evidence: Evidence,
    store: ReadBack,
    calls: Calls,
}

/// Returns a run that passes. The second job succeeds after a failure, the third is refused by the handler.
fn good() -> Run {
    let refused = Plan { refused: true, ..Plan::succeeding(0, Duration::ZERO) };
    let plans = [Plan::succeeding(0, Duration::ZERO), Plan::succeeding(1, Duration::ZERO), refused];
    let mut run = Run { evidence: Evidence::default(), store: ReadBack::default(), calls: Calls::default() };
    for (number, plan) in (0..).zip(plans) {
        let (id, mut asked) = (format!("id-{number}"), Asked::new(plan));
        asked.add(&Answer::Created { id: id.clone(), duplicate: false });
        asked.add(&Answer::Created { id: id.clone(), duplicate: true });
        run.evidence.asked.insert(number, asked);
        let expected = plan.expected();
        run.calls.insert(id.clone(), (1..=expected.attempts).collect());
        run.store.jobs.push(job(&id, expected.state, expected.attempts));
    }
    run
}

fn job(id: &str, state: &str, attempt: u32) -> JobRow {
    let (id, state, at) = (id.to_owned(), state.to_owned(), Timestamp::UNIX_EPOCH);
    JobRow { id, state, attempt, created_at: at, started_at: Some(at), ended_at: Some(at) }
}

impl Run {
    /// Returns the rules that are broken.
    fn broken(&self, scenario: Scenario) -> Vec<&'static str> {
        let checks = decide(scenario, &self.evidence, &self.store, &self.calls);
        checks.iter().filter(|check| !check.is_kept()).map(|check| check.rule).collect()
    }

    /// Takes the first attempt of the first job away from its worker, and adds another one.
    fn lose_an_attempt(&mut self) {
        self.store.jobs[0].attempt = 2;
        let attempt = |attempt, error_code| Attempt {
            attempt,
            worker: Some(1),
            started_at: Timestamp::UNIX_EPOCH,
            error_code,
        };
        let attempts = vec![attempt(1, Some("lease_lost".to_owned())), attempt(2, None)];
        self.store.attempts.insert("id-0".to_owned(), attempts);
        self.calls.insert("id-0".to_owned(), vec![1, 2]);
    }
}

#[test]
fn a_run_in_which_everything_ends_as_requested_passes() {
    for scenario in [Scenario::Mixed, Scenario::SameKey, Scenario::RedisDown, Scenario::SlowDatabase] {
        assert_eq!(good().broken(scenario), Vec::<&str>::new(), "{scenario:?}");
    }
}

#[test]
fn a_missing_job_and_an_additional_one_break_the_verdict() {
    let rule = "The store has exactly one job for each key";
    let mut run = good();
    run.store.jobs.remove(1);
    assert_eq!(run.broken(Scenario::Mixed), [rule]);
    let mut run = good();
    run.store.jobs.push(job("id-9", "succeeded", 1));
    assert_eq!(run.broken(Scenario::Mixed), [rule]);
}

#[test]
fn two_jobs_with_one_key_break_the_verdict() {
    let rule = "All answers for a key name one job, and at most one reports it as new";
    let mut run = good();
    run.evidence.asked.get_mut(&0).unwrap().add(&Answer::Created { id: "id-9".to_owned(), duplicate: false });
    run.store.jobs.push(job("id-9", "succeeded", 1));
    run.calls.insert("id-9".to_owned(), vec![1]);
    assert!(run.broken(Scenario::SameKey).contains(&rule));
    let mut run = good();
    run.evidence.asked.get_mut(&0).unwrap().add(&Answer::Created { id: "id-0".to_owned(), duplicate: false });
    assert_eq!(run.broken(Scenario::SameKey), [rule]);
}

#[test]
fn one_job_for_two_keys_breaks_the_verdict() {
    let mut run = good();
    let first = run.evidence.asked[&0].ids.clone();
    let asked = run.evidence.asked.get_mut(&1).unwrap();
    asked.ids = first;
    run.store.jobs.remove(1);
    assert!(run.broken(Scenario::SameKey).contains(&"The store has exactly one job for each key"));
}

#[test]
fn a_create_without_an_answer_and_a_refused_one_break_the_verdict() {
    for answer in [Answer::Failed, Answer::Refused("422".to_owned())] {
        let mut run = good();
        run.evidence.asked.get_mut(&2).unwrap().add(&answer);
        assert_eq!(run.broken(Scenario::Mixed), ["Every create is answered"]);
    }
}

#[test]
fn a_job_in_another_state_breaks_the_verdict() {
    for state in ["pending", "failed", "canceled"] {
        let mut run = good();
        run.store.jobs[0].state = state.to_owned();
        assert_eq!(run.broken(Scenario::Mixed), ["Every job has ended in the requested state"]);
    }
}

#[test]
fn an_attempt_too_many_breaks_the_verdict_unless_its_worker_was_lost() {
    let mut run = good();
    run.store.jobs[0].attempt = 2;
    run.calls.insert("id-0".to_owned(), vec![1, 2]);
    assert_eq!(
        run.broken(Scenario::Mixed),
        ["Every job has the right number of attempts, without those lost with a worker"]
    );
    run.lose_an_attempt();
    assert_eq!(run.broken(Scenario::WorkerKilled), Vec::<&str>::new());
}

#[test]
fn a_missing_or_repeated_call_of_the_handler_breaks_the_verdict() {
    for calls in [vec![], vec![1, 1], vec![1, 2]] {
        let mut run = good();
        run.calls.insert("id-0".to_owned(), calls);
        assert_eq!(
            run.broken(Scenario::Mixed),
            ["The handler is called once for each attempt, at most once for a lost one"]
        );
    }
    let mut run = good();
    run.lose_an_attempt();
    run.calls.insert("id-0".to_owned(), vec![2]);
    assert_eq!(
        run.broken(Scenario::WorkerKilled),
        Vec::<&str>::new(),
        "the call of a lost attempt may be missing"
    );
}

#[test]
fn a_finding_of_the_doctor_breaks_the_verdict() {
    let mut run = good();
    run.store.findings.push("running_past_lease".to_owned());
    assert_eq!(run.broken(Scenario::Mixed), ["The doctor finds nothing"]);
}

#[test]
fn a_run_that_proves_nothing_breaks_the_verdict() {
    let mut run = good();
    assert_eq!(run.broken(Scenario::WorkerKilled).len(), 1, "no attempt was lost");
    for asked in run.evidence.asked.values_mut() {
        asked.duplicates = 0;
    }
    assert_eq!(run.broken(Scenario::SameKey).len(), 1, "no create was answered with an existing job");
}

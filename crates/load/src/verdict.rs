//! The verdict on a run. It depends on counts only: what clients were answered, what the store contains, and what the handler saw.

use std::collections::{BTreeSet, HashMap};

use crate::api::JobRow;
use crate::evidence::{Asked, Evidence};
use crate::handler::Calls;
use crate::read_back::ReadBack;
use crate::scenario::Scenario;

/// A rule, and how often it was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The rule.
    pub rule: &'static str,
    /// The number of cases that were checked.
    pub checked: usize,
    /// The cases that break it; at most the first of them are described.
    pub broken: Vec<String>,
}

impl Check {
    /// Returns whether the rule was kept in at least one case, and never broken.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.checked > 0 && self.broken.is_empty()
    }
}

/// Decides whether everything was processed as requested. Each rule has at least one case, or the run proves nothing and the rule counts as broken.
#[must_use]
pub fn decide(scenario: Scenario, evidence: &Evidence, store: &ReadBack, calls: &Calls) -> Vec<Check> {
    let known = Known::of(evidence, store);
    let mut checks = vec![
        answered(evidence),
        one_job_for_each_key(evidence),
        nothing_missing(evidence, store, &known),
        ended_as_requested(&known),
        right_attempts(&known, store),
        each_attempt_called_once(&known, store, calls),
        nothing_found(store),
    ];
    match scenario {
        Scenario::SameKey => checks.push(some_duplicates(evidence)),
        Scenario::WorkerKilled => checks.push(some_lost(store)),
        Scenario::Mixed | Scenario::RedisDown | Scenario::SlowDatabase => {}
    }
    checks
}

/// The jobs of the store that a client asked for.
struct Known<'run> {
    jobs: Vec<(&'run JobRow, &'run Asked)>,
}

impl<'run> Known<'run> {
    fn of(evidence: &'run Evidence, store: &'run ReadBack) -> Self {
        let asked: HashMap<&str, &Asked> = evidence
            .asked
            .values()
            .flat_map(|asked| asked.ids.iter().map(move |id| (id.as_str(), asked)))
            .collect();
        let jobs = store.jobs.iter().filter_map(|job| Some((job, *asked.get(job.id.as_str())?)));
        Self { jobs: jobs.collect() }
    }

    /// Checks each job by a rule, which returns what is wrong.
    fn check(&self, rule: &'static str, fault: impl Fn(&JobRow, &Asked) -> Option<String>) -> Check {
        let faults = self
            .jobs
            .iter()
            .filter_map(|(job, asked)| Some(format!("job {}: {}", job.id, fault(job, asked)?)));
        Check { rule, checked: self.jobs.len(), broken: faults.collect() }
    }
}

fn answered(evidence: &Evidence) -> Check {
    let fault = |(number, asked): (&u64, &Asked)| {
        let refused = asked.refused.first();
        let refused = refused.map(|words| format!("job {number} was refused: {words}"));
        refused.or_else(|| {
            (asked.unanswered > 0)
                .then(|| format!("job {number}: {} creates without an answer", asked.unanswered))
        })
    };
    Check {
        rule: "Every create is answered",
        checked: evidence.asked.len(),
        broken: evidence.asked.iter().filter_map(fault).collect(),
    }
}

fn one_job_for_each_key(evidence: &Evidence) -> Check {
    let fault = |(number, asked): (&u64, &Asked)| {
        if asked.ids.len() > 1 {
            return Some(format!("key {number}: {} different jobs in the answers", asked.ids.len()));
        }
        (asked.created > 1).then(|| format!("key {number}: {} answers report a new job", asked.created))
    };
    Check {
        rule: "All answers for a key name one job, and at most one reports it as new",
        checked: evidence.asked.len(),
        broken: evidence.asked.iter().filter_map(fault).collect(),
    }
}

fn nothing_missing(evidence: &Evidence, store: &ReadBack, known: &Known<'_>) -> Check {
    let stored: BTreeSet<&str> = store.jobs.iter().map(|job| job.id.as_str()).collect();
    let mut broken: Vec<String> = Vec::new();
    for (number, asked) in &evidence.asked {
        let missing = asked.ids.iter().filter(|id| !stored.contains(id.as_str()));
        broken.extend(
            missing.map(|id| format!("job {number} ({id}) was acknowledged and is not in the store")),
        );
    }
    let wanted: BTreeSet<&str> = known.jobs.iter().map(|(job, _)| job.id.as_str()).collect();
    broken
        .extend(stored.difference(&wanted).map(|id| format!("job {id} is in the store; no answer names it")));
    if wanted.len() != evidence.asked.len() && broken.is_empty() {
        broken.push(format!("{} keys have {} jobs", evidence.asked.len(), wanted.len()));
    }
    Check { rule: "The store has exactly one job for each key", checked: evidence.asked.len(), broken }
}

fn ended_as_requested(known: &Known<'_>) -> Check {
    known.check("Every job has ended in the requested state", |job, asked| {
        let expected = asked.plan.expected().state;
        (job.state != expected).then(|| format!("{} instead of {expected}", job.state))
    })
}

fn right_attempts(known: &Known<'_>, store: &ReadBack) -> Check {
    known.check(
        "Every job has the right number of attempts, without those lost with a worker",
        |job, asked| {
            let lost = u32::try_from(store.lost(&job.id).count()).unwrap_or(u32::MAX);
            let (attempts, expected) = (job.attempt.saturating_sub(lost), asked.plan.expected().attempts);
            (attempts != expected).then(|| format!("{attempts} attempts instead of {expected}"))
        },
    )
}

fn each_attempt_called_once(known: &Known<'_>, store: &ReadBack, calls: &Calls) -> Check {
    known.check("The handler is called once for each attempt, at most once for a lost one", |job, _| {
        let called = calls.get(&job.id).map_or(&[][..], Vec::as_slice);
        let lost: BTreeSet<u32> = store.lost(&job.id).map(|attempt| attempt.attempt).collect();
        let fault = |attempt: u32| {
            let times = called.iter().filter(|called| **called == attempt).count();
            let is_right = times == 1 || (times == 0 && lost.contains(&attempt));
            (!is_right).then(|| format!("{times} calls for attempt {attempt}"))
        };
        let beyond = called.iter().find(|attempt| **attempt > job.attempt);
        (1..=job.attempt)
            .find_map(fault)
            .or_else(|| beyond.map(|attempt| format!("a call for attempt {attempt} of {}", job.attempt)))
    })
}

fn nothing_found(store: &ReadBack) -> Check {
    Check { rule: "The doctor finds nothing", checked: 1, broken: store.findings.clone() }
}

fn some_duplicates(evidence: &Evidence) -> Check {
    let duplicates: u64 = evidence.asked.values().map(|asked| asked.duplicates).sum();
    Check {
        rule: "Some creates were answered with an existing job; otherwise the run proves nothing",
        checked: usize::try_from(duplicates).unwrap_or(usize::MAX),
        broken: Vec::new(),
    }
}

fn some_lost(store: &ReadBack) -> Check {
    let lost = store.attempts.values().flatten().filter(|attempt| attempt.is_lost()).count();
    Check {
        rule: "Some attempts were lost with a killed worker; otherwise the run proves nothing",
        checked: lost,
        broken: Vec::new(),
    }
}

#[cfg(test)]
mod tests;

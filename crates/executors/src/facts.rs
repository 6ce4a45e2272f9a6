//! What a run is told about itself, whichever way it is run.

use milepost::Context;

/// A fact's name, as words joined by dashes, and its value.
pub(crate) type Fact = (&'static str, String);

/// What an executor tells of a run: as headers (`Milepost-Job-Id`) or environment variables (`MILEPOST_JOB_ID`).
pub(crate) fn of(context: &Context) -> Vec<Fact> {
    let job = context.job();
    let nominal_at = job.nominal_at.map(|at| ("nominal-at", at.to_string()));
    let mut facts = vec![
        ("job-id", job.run.job.to_string()),
        ("kind", job.kind.clone()),
        ("attempt", job.attempt.to_string()),
        ("run-token", job.run.token.to_string()),
    ];
    facts.extend(nominal_at);
    facts
}

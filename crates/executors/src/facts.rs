//! The metadata of a run that executors pass to HTTP calls and programs.

use milepost::Context;

/// The name of a metadata field, as words joined by dashes, and its value.
pub(crate) type Fact = (&'static str, String);

/// Returns the metadata of a run, for headers (`Milepost-Job-Id`) or environment variables (`MILEPOST_JOB_ID`).
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

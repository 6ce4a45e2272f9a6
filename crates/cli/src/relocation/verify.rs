//! Comparison of the two stores after a move.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use indicatif::HumanCount;
use milepost_core::doctor::Cost;
use milepost_core::ident::JobId;
use milepost_core::port::AdminStore;
use milepost_core::relocation::{Part, Standing};
use milepost_core::state::JobState;
use serde::Serialize;
use uuid::Uuid;

use super::stores::Ends;
use crate::doctor;

/// The number of jobs that are compared at once.
const COMPARED_AT_ONCE: u32 = 10_000;

/// One result of the comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) what: String,
    pub(super) source: String,
    pub(super) target: String,
    pub(super) passed: bool,
}

impl Check {
    fn equal(what: String, source: u64, target: u64) -> Self {
        let text = |count| HumanCount(count).to_string();
        Self { what, source: text(source), target: text(target), passed: source == target }
    }
}

/// Runs all checks of a move: rows of each table, jobs in each state, every single job, and the doctor's checks.
pub(super) async fn verify(ends: &Ends) -> Result<Vec<Check>> {
    let mut checks = counts(ends).await?;
    checks.extend(states(ends).await?);
    checks.push(standings(ends).await?);
    let errors = doctor::errors_at_rest(&ends.target, &[Cost::Quick, Cost::Full]).await;
    checks.push(Check {
        what: "doctor".to_owned(),
        source: "no errors".to_owned(),
        target: if errors.is_empty() { "no errors".to_owned() } else { errors.join("; ") },
        passed: errors.is_empty(),
    });
    Ok(checks)
}

async fn counts(ends: &Ends) -> Result<Vec<Check>> {
    let source = ends.source.count_parts().await.with_context(|| ends.of_source())?;
    let target = ends.target.count_parts().await.with_context(|| ends.of_target())?;
    let count = |counts: &[(Part, u64)], part| {
        counts.iter().find(|(known, _)| *known == part).map_or(0, |(_, rows)| *rows)
    };
    let check =
        |&part: &Part| Check::equal(format!("rows of {part}"), count(&source, part), count(&target, part));
    Ok(Part::ALL.iter().map(check).collect())
}

async fn states(ends: &Ends) -> Result<Vec<Check>> {
    let source = ends.source.count_by_state().await.with_context(|| ends.of_source())?;
    let target = ends.target.count_by_state().await.with_context(|| ends.of_target())?;
    let mut counts: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for (side, found) in [source, target].iter().enumerate() {
        for (state, jobs) in found {
            counts.entry(JobState::as_str(*state)).or_default()[side] += jobs.unsigned_abs();
        }
    }
    let check =
        |(state, [source, target]): (&str, [u64; 2])| Check::equal(format!("jobs {state}"), source, target);
    Ok(counts.into_iter().map(check).collect())
}

/// Compares every job by id, state and run token.
async fn standings(ends: &Ends) -> Result<Check> {
    let mut compared = 0;
    for part in [Part::Ended, Part::Live] {
        let mut after = JobId(Uuid::nil());
        loop {
            let (source, target) = tokio::join!(
                ends.source.standings(part, after, COMPARED_AT_ONCE),
                ends.target.standings(part, after, COMPARED_AT_ONCE)
            );
            let source = source.with_context(|| ends.of_source())?;
            let target = target.with_context(|| ends.of_target())?;
            if let Some((here, there)) = first_difference(&source, &target) {
                return Ok(compare(told(here), told(there), false));
            }
            compared += source.len() as u64;
            match source.last() {
                Some((last, ..)) => after = *last,
                None => break,
            }
        }
    }
    let all = format!("{} alike", HumanCount(compared));
    Ok(compare(all.clone(), all, true))
}

fn compare(source: String, target: String, passed: bool) -> Check {
    Check { what: "each job's state and run token".to_owned(), source, target, passed }
}

type Sides = (Option<Standing>, Option<Standing>);

fn first_difference(source: &[Standing], target: &[Standing]) -> Option<Sides> {
    let longest = source.len().max(target.len());
    let sides = (0..longest).map(|at| (source.get(at).copied(), target.get(at).copied()));
    sides.into_iter().find(|(here, there)| here != there)
}

fn told(standing: Option<Standing>) -> String {
    standing.map_or_else(
        || "no further job".to_owned(),
        |(job, state, token)| format!("{job} {state}, run {token}"),
    )
}

#[cfg(test)]
mod tests {
    use milepost_core::ident::RunToken;

    use super::*;

    #[test]
    fn a_job_that_differs_or_is_missing_is_named() {
        let standing = |token| (JobId(Uuid::nil()), JobState::Failed, RunToken(token));
        assert_eq!(first_difference(&[standing(1)], &[standing(1)]), None);
        let lowered = first_difference(&[standing(1), standing(2)], &[standing(1), standing(1)]);
        assert_eq!(lowered, Some((Some(standing(2)), Some(standing(1)))));
        assert_eq!(first_difference(&[standing(1)], &[]), Some((Some(standing(1)), None)));
        assert!(told(lowered.unwrap().0).ends_with("failed, run 2"));
    }
}

//! Removes from a plan whatever its failure does not need.

use crate::plan::Plan;

/// The most runs of one search.
const RUNS_MAX: usize = 200;

/// Returns a plan with as few faults as possible that still fails, and the number of runs. `fails` runs a plan.
///
/// The method is delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002): removes parts of the list, at
/// first halves, later single faults. The load follows the seed whatever is removed, but its order can change.
pub fn shrink(plan: &Plan, mut fails: impl FnMut(&Plan) -> bool) -> (Plan, usize) {
    let (mut best, mut runs) = (plan.clone(), 0);
    let mut part = best.faults.len().div_ceil(2);
    while part > 0 && runs < RUNS_MAX {
        let mut from = 0;
        let mut has_removed = false;
        while from < best.faults.len() && runs < RUNS_MAX {
            let mut smaller = best.clone();
            smaller.faults.drain(from..(from + part).min(best.faults.len()));
            runs += 1;
            if fails(&smaller) {
                best = smaller;
                has_removed = true;
            } else {
                from += part;
            }
        }
        part = match part {
            1 if has_removed => 1,
            1 => 0,
            _ => part.div_ceil(2),
        };
    }
    // The load after the last fault is not needed, if the run fails without it.
    if let Some(last) = best.faults.last() {
        let shorter = Plan { length_ms: (last.at_ms + 60_000).min(best.length_ms), ..best.clone() };
        runs += 1;
        if fails(&shorter) {
            best = shorter;
        }
    }
    (best, runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_faults_that_a_failure_needs_are_left() {
        let plan = Plan::generate(7, 60);
        let (first, second) = (plan.faults[17].clone(), plan.faults[90].clone());
        let fails = |plan: &Plan| plan.faults.contains(&first) && plan.faults.contains(&second);
        let (small, runs) = shrink(&plan, fails);
        assert_eq!(small.faults, [first.clone(), second.clone()]);
        assert!(small.length_ms < plan.length_ms && runs < 60, "{runs} runs");
    }
}

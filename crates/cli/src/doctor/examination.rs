//! Running the checks, and repairs of their findings.

use std::time::Duration;

use anyhow::{Result, bail};
use jiff::Timestamp;
use milepost_core::doctor::{Check, Cost, Finding, Look};
use milepost_core::duration::WAIT_MAX;
use milepost_core::port::{Store, StoreResult};

use super::DoctorArgs;

/// The maximum number of rows that one transaction repairs, so that it stays short.
const MENDED_AT_ONCE: u32 = 200;
/// The maximum number of repair passes. One repair may reveal work for the next: a job that was restored may lack its slot.
const PASSES_MAX: usize = 4;
/// The time before a second examination, for findings that usually resolve without a repair.
const SETTLING: Duration = Duration::from_secs(3);

/// The options of an examination.
pub(super) struct Plan {
    checks: Vec<Check>,
    left_out: usize,
    patience: Duration,
    time_limit: Duration,
    repair: bool,
    dry_run: bool,
}

/// The result of an examination.
pub(super) struct Examination {
    /// The number of checks that were answered.
    pub(super) answered: usize,
    /// The number of checks that `--quick` skipped.
    pub(super) left_out: usize,
    pub(super) findings: Vec<Finding>,
    /// Checks that could not be answered, with the error.
    pub(super) unanswered: Vec<(Check, String)>,
    /// The number of rows that each repair changed.
    pub(super) repaired: Vec<(Check, u64)>,
    /// Repairs that failed, with the error.
    pub(super) unrepaired: Vec<(Check, String)>,
    /// Whether the report shows what a repair would do.
    pub(super) dry_run: bool,
}

impl Plan {
    pub(super) fn of(args: &DoctorArgs, known: Vec<Check>) -> Result<Self> {
        if let Some(check) = args.check.iter().find(|check| !known.contains(check)) {
            bail!("{check} is a check for {} only; `milepost doctor list` shows all", check.stores());
        }
        let named = |check: &Check| args.check.is_empty() || args.check.contains(check);
        let quick = |check: &Check| !args.quick || check.cost() == Cost::Quick;
        let wanted: Vec<Check> = known.into_iter().filter(named).collect();
        let checks: Vec<Check> = wanted.iter().copied().filter(quick).collect();
        Ok(Self {
            left_out: wanted.len() - checks.len(),
            checks,
            patience: args.patience,
            time_limit: args.time_limit,
            repair: args.repair,
            dry_run: args.dry_run,
        })
    }

    /// Plans these checks for a store without running workers.
    pub(super) const fn at_rest(checks: Vec<Check>) -> Self {
        let (patience, time_limit) = (WAIT_MAX, Duration::ZERO);
        Self { checks, left_out: 0, patience, time_limit, repair: false, dry_run: false }
    }

    pub(super) const fn repairs(&self) -> bool {
        self.repair && !self.dry_run
    }

    /// Runs all checks.
    pub(super) async fn examine(&self, store: &dyn Store) -> Examination {
        let mut examination = Examination {
            answered: 0,
            left_out: self.left_out,
            findings: Vec::new(),
            unanswered: Vec::new(),
            repaired: Vec::new(),
            unrepaired: Vec::new(),
            dry_run: self.dry_run,
        };
        for &check in &self.checks {
            match self.ask(store, check).await {
                Ok(finding) => {
                    examination.answered += 1;
                    examination.findings.extend(finding);
                }
                Err(error) => examination.unanswered.push((check, error.chain())),
            }
        }
        examination
    }

    async fn ask(&self, store: &dyn Store, check: Check) -> StoreResult<Option<Finding>> {
        let first = store.examine(check, &self.look()).await?;
        match first {
            Some(finding) if check.settles() => {
                tokio::time::sleep(SETTLING).await;
                Ok(finding.confirmed_by(store.examine(check, &self.look()).await?))
            }
            first => Ok(first),
        }
    }

    fn look(&self) -> Look {
        Look { now: Timestamp::now(), patience: self.patience, time_limit: self.time_limit }
    }

    /// Runs the safe repairs until no finding with a repair is left or [`PASSES_MAX`] is reached, then examines the store again.
    pub(super) async fn repair(&self, store: &dyn Store) -> Result<Examination> {
        let mut repaired: Vec<(Check, u64)> = Vec::new();
        let mut unrepaired = Vec::new();
        let mut examination = self.examine(store).await;
        for _ in 0..PASSES_MAX {
            let mut mended = false;
            unrepaired.clear();
            let findings = examination.findings.iter();
            for check in findings.map(|finding| finding.check).filter(|check| check.repair().is_some()) {
                match self.repair_check(store, check).await {
                    Ok(0) => {}
                    Ok(count) => {
                        mended = true;
                        match repaired.iter_mut().find(|(known, _)| *known == check) {
                            Some((_, so_far)) => *so_far += count,
                            None => repaired.push((check, count)),
                        }
                    }
                    Err(error) => unrepaired.push((check, error.chain())),
                }
            }
            if !mended {
                break;
            }
            examination = self.examine(store).await;
        }
        Ok(Examination { repaired, unrepaired, ..examination })
    }

    /// Repairs all findings of a check, [`MENDED_AT_ONCE`] per transaction.
    async fn repair_check(&self, store: &dyn Store, check: Check) -> StoreResult<u64> {
        let mut mended = 0;
        loop {
            let more = store.repair(check, &self.look(), MENDED_AT_ONCE).await?;
            mended += more;
            if more < u64::from(MENDED_AT_ONCE) {
                return Ok(mended);
            }
        }
    }
}

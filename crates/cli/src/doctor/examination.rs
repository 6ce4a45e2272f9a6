//! Asking the questions, and mending what they find.

use std::time::Duration;

use anyhow::{Result, bail};
use jiff::Timestamp;
use milepost_core::doctor::{Check, Cost, Finding, Look};
use milepost_core::duration::WAIT_MAX;
use milepost_core::port::{Store, StoreResult};

use super::DoctorArgs;

/// What one transaction of a repair mends at most, so that it stays short.
const MENDED_AT_ONCE: u32 = 200;
/// A repair may bring to light what the next one mends: a job that is back in its place may lack its slot.
const PASSES_MAX: usize = 4;
/// How long what settles by itself gets before the second look.
const SETTLING: Duration = Duration::from_secs(3);

/// What was asked for.
pub(super) struct Plan {
    checks: Vec<Check>,
    left_out: usize,
    patience: Duration,
    time_limit: Duration,
    repair: bool,
    dry_run: bool,
}

/// What was found.
pub(super) struct Examination {
    /// How many questions were answered.
    pub(super) answered: usize,
    /// How many were left out to be quick.
    pub(super) left_out: usize,
    pub(super) findings: Vec<Finding>,
    /// Questions without an answer, and why.
    pub(super) unanswered: Vec<(Check, String)>,
    /// What a repair mended.
    pub(super) repaired: Vec<(Check, u64)>,
    /// Repairs that failed, and why.
    pub(super) unrepaired: Vec<(Check, String)>,
    /// Whether the report shall say what a repair would do.
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

    /// These questions, of a store that nobody looks after for now.
    pub(super) const fn at_rest(checks: Vec<Check>) -> Self {
        let (patience, time_limit) = (WAIT_MAX, Duration::ZERO);
        Self { checks, left_out: 0, patience, time_limit, repair: false, dry_run: false }
    }

    pub(super) const fn repairs(&self) -> bool {
        self.repair && !self.dry_run
    }

    /// Asks all questions.
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

    /// Mends what is safe until nothing is left of it, and examines again.
    pub(super) async fn repair(&self, store: &dyn Store) -> Result<Examination> {
        let mut repaired: Vec<(Check, u64)> = Vec::new();
        let mut unrepaired = Vec::new();
        let mut examination = self.examine(store).await;
        for _ in 0..PASSES_MAX {
            let mut mended = false;
            unrepaired.clear();
            let findings = examination.findings.iter();
            for check in findings.map(|finding| finding.check).filter(|check| check.repair().is_some()) {
                match self.mend(store, check).await {
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

    /// Mends all breaches of a check, a few a transaction.
    async fn mend(&self, store: &dyn Store, check: Check) -> StoreResult<u64> {
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

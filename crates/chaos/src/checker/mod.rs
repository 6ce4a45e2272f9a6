//! Decides from a record, for each promise by its number, whether it was kept.

mod audit;
mod batches;
mod bulk;
mod ends;
mod events;
mod groups;
mod intake;
pub(crate) mod losses;
mod moved;
mod relay;
mod schedules;
mod states;
mod stream;
mod verdict;

#[cfg(test)]
mod tests;

pub use losses::lost_calls;
pub use verdict::{VIOLATIONS_MAX, Verdict};

use crate::record::Record;
use verdict::Findings;

/// A rule for one promise: counts checked facts and violations.
type Check = fn(&Record, &mut Findings);

/// The promises of `docs/GUARANTEES.md` in short, with their checks.
const PROMISES: [(&str, Check); 22] = [
    ("an acknowledged enqueue is durable, a refused one leaves nothing", intake::durable),
    ("a key has at most one job", intake::unique_keys),
    ("an attempt has at most one accepted end", ends::one_end),
    ("run tokens only rise, leases do not overlap", ends::tokens_rise),
    ("ended jobs stay ended", states::ended_stays_ended),
    ("every state change is allowed and in the history", states::history_explains_state),
    ("groups and rates are limited", groups::limited),
    ("retries wait, attempts are limited", states::attempts),
    ("nothing stays running, everything ends", states::everything_ends),
    ("a tick makes at most one job", schedules::one_job_per_tick),
    ("unfinished jobs are never deleted", intake::never_deleted),
    ("a move neither loses nor doubles", moved::old_store_is_closed),
    ("a bulk job applies every target exactly once", bulk::every_target_once),
    ("no chunk begins after an abort", bulk::no_chunk_after_abort),
    ("a task starts after its predecessors, once", batches::order),
    ("a batch keeps its version, a key has one batch", batches::version),
    ("an event is in the log exactly when its transaction committed", events::log),
    ("a consumer's effect happens once", events::consumed_once),
    ("every event reaches every sink, in order", relay::delivered),
    ("every selected change is exactly one event", events::changes),
    ("every audited change has exactly one entry", audit::one_entry),
    ("a watcher receives every change once, in order", stream::every_change_once),
];

/// Returns the verdict for each promise, in the order of their numbers.
#[must_use]
pub fn check(record: &Record) -> Vec<Verdict> {
    let decide = |(number, (promise, check)): (u8, (&'static str, Check))| {
        let mut findings = Findings::default();
        check(record, &mut findings);
        findings.verdict(number, promise)
    };
    (1..).zip(PROMISES).map(decide).collect()
}

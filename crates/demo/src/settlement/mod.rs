//! The third part of the demo: the batch of `examples/settlement`. Its tasks are programs, which run on three worker processes; one process
//! is killed while its programs run.

mod facts;
mod folder;
mod show;
mod totals;
mod verify;

use super::ledger::Scope;

pub(super) use show::{Settled, perform};

/// The name of the demo's DAG. It differs from that of the example, which a user may have defined.
const DAG: &str = "demo.settlement";
/// The task with one job for each country.
const COUNTRY: &str = "country";

/// Returns the queue for the tasks of a demo, which is separate from that of its other jobs.
fn queue(scope: &Scope) -> String {
    format!("{}-batch", scope.queue)
}

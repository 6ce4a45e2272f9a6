//! The third part of the demo: the batch of `examples/settlement`. Its tasks are programs, which run on three worker processes; one process
//! is killed while its programs run.

mod facts;
mod folder;
mod show;
mod totals;
mod verify;

use std::path::Path;

use anyhow::Result;
use milepost::{WorkerBuilder, WorkerOptions};

use super::ledger::Scope;
use crate::store::StoreAddress;
use crate::work::kinds;

pub(super) use show::{Settled, perform};

/// The name of the demo's DAG. It differs from that of the example, which a user may have defined.
const DAG: &str = "demo.settlement";
/// The task with one job for each country.
const COUNTRY: &str = "country";

/// Returns the queue for the tasks of a demo, which is separate from that of its other jobs.
fn queue(scope: &Scope) -> String {
    format!("{}-batch", scope.queue)
}

/// Configures a worker process of the demo to run the programs of a folder, as `milepost work` does.
pub(super) fn serve(worker: WorkerBuilder, folder: &Path, address: &StoreAddress) -> Result<WorkerBuilder> {
    let config = folder::config(folder, address)?;
    let mut options = WorkerOptions::default();
    config.worker.apply(&mut options);
    let worker = kinds::serve(worker, config.kinds, &config.folder, &config.secrets, &mut options)?;
    Ok(worker.options(|all| {
        all.concurrency = options.concurrency;
        all.hand_back_grace = options.hand_back_grace;
    }))
}

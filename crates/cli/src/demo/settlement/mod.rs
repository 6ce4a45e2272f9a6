//! The third part of the demo: the batch of `examples/settlement`, whose tasks are programs, on three worker processes,
//! one of which is killed while its programs run.

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

/// The name of the demo's DAG: a DAG of the user's may have the one that the example has.
const DAG: &str = "demo.settlement";
/// The task that is a job for each country.
const COUNTRY: &str = "country";

/// Where the tasks of a demo wait, apart from its other jobs.
fn queue(scope: &Scope) -> String {
    format!("{}-batch", scope.queue)
}

/// Lets a worker process of the demo run the programs of a folder, as `milepost work` does.
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

//! Storing the DAGs of a configuration when a worker starts.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use milepost_core::bulk::operation;
use milepost_core::port::BatchStore;

use crate::config::BatchEntry;

/// Refuses DAGs with a task whose kind is one of these bulk jobs, or that of operations on many jobs.
pub(super) fn check_all(
    entries: &BTreeMap<String, BatchEntry>,
    folder: &Path,
    bulk_jobs: &[&str],
) -> Result<()> {
    for (name, entry) in entries {
        let dag = entry.dag(name, folder)?;
        let names = bulk_jobs.iter().copied().chain([operation::NAME]);
        dag.check_kinds(names).with_context(|| format!("the DAG {name}"))?;
    }
    Ok(())
}

/// Makes the content of each file the latest version of its DAG. Stores none of them if one cannot be read.
pub(super) async fn define_all(
    store: &dyn BatchStore,
    entries: &BTreeMap<String, BatchEntry>,
    folder: &Path,
) -> Result<()> {
    let dags = entries.iter().map(|(name, entry)| entry.dag(name, folder));
    for dag in dags.collect::<Result<Vec<_>>>()? {
        let name = &dag.definition().name;
        let defined = store.define_dag(&dag).await.with_context(|| format!("the DAG {name}"))?;
        if !defined.known {
            tracing::info!("the DAG {name} has a new version, {}", defined.version.number);
        }
    }
    Ok(())
}

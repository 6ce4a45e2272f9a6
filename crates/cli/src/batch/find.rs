//! Lookup of batches, DAGs and tasks by name, with suggestions for mistyped names.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::{BatchFilter, TaskFilter, TaskView, VersionView};
use milepost_core::batch::subject::Subject;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::version::Version;
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::port::BatchStore;

use super::words;
use crate::nearest::nearest;

/// The minimum number of digits of an abbreviated version.
const VERSION_DIGITS_MIN: usize = 6;
/// The number of names that are listed if none is similar to the given one.
const NAMES: usize = 10;

#[derive(Debug, Args)]
pub(super) struct WhichArgs {
    /// The batch's full id; with --key, the name of its DAG
    #[arg(value_name = "BATCH")]
    batch: String,
    /// The batch of the DAG that has this key
    #[arg(long)]
    key: Option<String>,
}

impl WhichArgs {
    /// Creates the arguments for a batch, given by id or by DAG and key.
    pub(super) fn of(batch: &str, key: Option<&str>) -> Self {
        Self { batch: batch.to_owned(), key: key.map(str::to_owned) }
    }

    /// Returns the id of the batch.
    pub(super) async fn id(&self, store: &dyn BatchStore) -> Result<BatchId> {
        let given = &self.batch;
        let Some(key) = &self.key else {
            return given.parse().map_err(|_| {
                anyhow!(
                    "{given:?} is not a batch id: give the full id, as `milepost batch list` shows it, or the \
                     name of its DAG with --key"
                )
            });
        };
        dag(given, store).await?;
        let filter = BatchFilter {
            dag: Some(given.clone()),
            key: Some(key.clone()),
            inner: true,
            limit: 1,
            ..BatchFilter::default()
        };
        let found = store.batches(&filter).await?.pop();
        found.map(|row| row.id).ok_or_else(|| {
            anyhow!(
                "no batch of the DAG {given:?} has the key {key:?}; `milepost batch list --dag {given}` shows its \
                 batches"
            )
        })
    }

    pub(super) async fn subject(&self, store: &dyn BatchStore) -> Result<Subject> {
        load(self.id(store).await?, store).await
    }
}

/// Returns the latest version of a DAG.
pub(super) async fn dag(name: &str, store: &dyn BatchStore) -> Result<VersionView> {
    let dags = store.dags().await?;
    if let Some(found) = dags.iter().find(|dag| dag.dag == name) {
        return Ok(found.clone());
    }
    let names: Vec<&str> = dags.iter().map(|dag| dag.dag.as_str()).collect();
    match (nearest(name, &names), names.as_slice()) {
        (Some(nearest), _) => bail!("there is no DAG {name:?}; did you mean {nearest}?"),
        (None, []) => {
            bail!("there is no DAG {name:?}, and no other DAG; `milepost batch define FILE` stores one")
        }
        (None, names) => bail!("there is no DAG {name:?}; there are {}", words::some(names, NAMES)),
    }
}

/// Returns the version of a DAG, given by its number or the first digits of its hash.
pub(super) async fn version(name: &str, text: &str, store: &dyn BatchStore) -> Result<Version> {
    dag(name, store).await?;
    let versions = store.dag_versions(name).await?;
    let number = text.parse::<u32>().ok();
    if let Some(found) = versions.iter().find(|version| Some(version.number) == number) {
        return Ok(found.version);
    }
    let begins = |version: &&VersionView| {
        text.len() >= VERSION_DIGITS_MIN && version.version.to_string().starts_with(text)
    };
    match versions.iter().filter(begins).collect::<Vec<_>>().as_slice() {
        [only] => Ok(only.version),
        [] => bail!(
            "the DAG {name:?} has no version {text}, given as its number or its first {} digits; \
             `milepost batch versions {name}` shows them",
            words::VERSION_DIGITS
        ),
        _ => bail!("several versions of the DAG {name:?} begin with {text}; give more digits"),
    }
}

/// Loads a batch with the DAG version that it runs.
async fn load(id: BatchId, store: &dyn BatchStore) -> Result<Subject> {
    let Some(detail) = store.batch(id).await? else {
        return Err(StoreError::from(InvalidBatch::NoSuchBatch(id)).into());
    };
    let row = detail.row;
    let dag = if row.parent.as_ref().is_some_and(|parent| parent.items) {
        None
    } else {
        let (_, definition) = store.dag(&row.dag, Some(row.version)).await?;
        Some(Dag::check(definition)?)
    };
    Ok(Subject { row, dag })
}

/// Returns the number of a task.
pub(super) fn task(subject: &Subject, key: &str) -> Result<u32> {
    subject.task(key).map_err(|_| {
        let Some(dag) = &subject.dag else {
            let items = subject.row.counts.total();
            return anyhow!("there is no item {key:?}; give one of the {items} items by its index, from 0");
        };
        let keys: Vec<&str> = dag.graph().keys().iter().map(String::as_str).collect();
        let hint = match nearest(key, &keys) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => format!("there are {}", words::some(&keys, NAMES)),
        };
        anyhow!("batch {} of the DAG {:?} has no task {key:?}; {hint}", subject.row.id, subject.row.dag)
    })
}

/// Returns all tasks that match a filter, read page by page.
pub(super) async fn all_tasks(
    batch: BatchId,
    mut filter: TaskFilter,
    store: &dyn BatchStore,
) -> Result<Vec<TaskView>> {
    let mut tasks = Vec::new();
    loop {
        let page = store.batch_tasks(batch, &filter).await?;
        let full = page.len() == filter.limit as usize;
        filter.after = page.last().map(|task| task.task);
        tasks.extend(page);
        if !full {
            return Ok(tasks);
        }
    }
}

//! The plan of a rerun, and its preview.

use milepost_core::batch::listing::{TaskFilter, VersionView};
use milepost_core::batch::rerun::{Chosen, Rerun};
use milepost_core::batch::subject::Subject;
use milepost_core::dag::state::Counts;
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::subject::all_tasks;
use crate::api::dags::{checked, definition};
use crate::large_reads::LargePermit;
use crate::problem::Problem;

/// Maximum number of keys in each list of a preview.
const KEYS_MAX: usize = 1_000;

/// The version in which tasks are run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InVersion {
    /// The current version of the batch.
    #[default]
    Pinned,
    /// The latest version, to which the batch is moved.
    Latest,
}

/// The tasks that run again.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Preview {
    /// Number of these tasks in each current state, including those in inner batches.
    counts: Counts,
    /// The keys of the tasks. Tasks of inner batches have the keys of the outer tasks as a prefix, as in `list/3`. The first 1,000.
    tasks: Vec<String>,
    /// Stopped inner batches that are resumed, by the keys of their tasks; the first 1,000.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resumed: Vec<String>,
    /// The version to which the batch is moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<VersionChange>,
}

/// The effect of moving a batch to another version.
#[derive(Debug, Serialize, ToSchema)]
struct VersionChange {
    /// The version.
    to: VersionView,
    /// Keys of the tasks that the version adds, which run after their predecessors; the first 1,000.
    new: Vec<String>,
    /// Keys of the tasks that the version lacks, which are removed from the batch; the first 1,000.
    gone: Vec<String>,
    /// Keys of the ended tasks that the version defines differently, which keep their state; the first 1,000.
    stays: Vec<String>,
}

impl Preview {
    pub(super) fn of(plan: &Rerun) -> Self {
        let some = |keys: &[String]| keys.iter().take(KEYS_MAX).cloned().collect();
        Self {
            counts: plan.counts(),
            tasks: some(&plan.keys()),
            resumed: plan.resumed().take(KEYS_MAX).map(str::to_owned).collect(),
            change: plan.change.as_ref().map(|change| VersionChange {
                to: change.to.clone(),
                new: some(&change.new),
                gone: some(&change.gone),
                stays: some(&change.stays),
            }),
        }
    }
}

/// Plans a rerun of the chosen tasks for the current state of the batch.
pub(crate) async fn plan(
    permit: &LargePermit<'_>,
    chosen: &Chosen,
    version: InVersion,
    subject: &Subject,
    store: &dyn Store,
) -> Result<Rerun, Problem> {
    if version == InVersion::Latest {
        subject.dag().map_err(StoreError::from)?;
        let (to, latest) = definition(permit, &subject.row.dag, None, store).await?;
        if to.version != subject.row.version {
            let dag = checked(permit, latest).await?;
            let tasks = all_tasks(subject.row.id, TaskFilter::default(), store).await?;
            let inside = chosen.inside(subject, Some(&dag), store).await?;
            return Rerun::in_version(chosen, subject, (to, dag), tasks, inside).map_err(at_tasks);
        }
    }
    let filter = chosen.filter(subject).map_err(at_tasks)?;
    let again = all_tasks(subject.row.id, filter, store).await?;
    let inside = chosen.inside(subject, None, store).await?;
    Ok(Rerun::pinned(chosen, subject, again, inside).map_err(StoreError::from)?)
}

fn at_tasks(invalid: milepost_core::batch::error::InvalidBatch) -> Problem {
    Problem::from(StoreError::from(invalid)).at("tasks")
}

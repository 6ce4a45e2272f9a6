//! What a rerun does, said before it is done.

use milepost_core::batch::listing::{TaskFilter, VersionView};
use milepost_core::batch::rerun::{Chosen, Rerun};
use milepost_core::batch::subject::Subject;
use milepost_core::dag::state::Counts;
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::operate::BatchOperateRequest;
use super::subject::all_tasks;
use crate::api::dags::checked;
use crate::problem::Problem;

/// How many keys a list of a preview has at most.
const KEYS_MAX: usize = 1_000;

/// The version in which tasks are run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InVersion {
    /// The one that the batch has.
    #[default]
    Pinned,
    /// The latest, to which the batch goes over.
    Latest,
}

/// What runs again.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Preview {
    /// How many of the tasks stand where now, those in inner batches too.
    counts: Counts,
    /// The keys of the tasks, of those in inner batches behind the keys of the tasks that lead there, as in `list/3`; the first 1,000.
    tasks: Vec<String>,
    /// Stopped inner batches that are resumed, by the keys of the tasks that lead there; the first 1,000.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resumed: Vec<String>,
    /// The version to which the batch goes over.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<VersionChange>,
}

/// What another version is to a batch.
#[derive(Debug, Serialize, ToSchema)]
struct VersionChange {
    /// The version.
    to: VersionView,
    /// Keys of tasks that only that version has, to run when their turn comes; the first 1,000.
    new: Vec<String>,
    /// Keys of tasks that it does not have, given up unless they have ended; the first 1,000.
    gone: Vec<String>,
    /// Keys of tasks that are defined differently and stay as they ended; the first 1,000.
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

impl BatchOperateRequest {
    /// What it says to run again.
    pub(super) fn chosen(&self) -> Chosen {
        match (self.failed, self.downstream) {
            (true, _) => Chosen::Failed,
            (false, true) => Chosen::Downstream(self.tasks.clone()),
            (false, false) => Chosen::Tasks(self.tasks.clone()),
        }
    }
}

/// What was chosen comes to, as the batch stands.
pub(crate) async fn plan(
    chosen: &Chosen,
    version: InVersion,
    subject: &Subject,
    store: &dyn Store,
) -> Result<Rerun, Problem> {
    if version == InVersion::Latest {
        subject.dag().map_err(StoreError::from)?;
        let (to, definition) = store.dag(&subject.row.dag, None).await?;
        if to.version != subject.row.version {
            let dag = checked(definition).await?;
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

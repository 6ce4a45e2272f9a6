//! `/batches/{id}/rerun`: the preview of a rerun, and its start.

use askama::Template;
use axum::response::Response;
use milepost_core::actions::batch::BatchAction;
use milepost_core::batch::listing::BatchView;
use milepost_core::batch::operation::BatchOperation;
use milepost_core::batch::rerun::{Change, Chosen, Rerun};
use milepost_core::ident::BatchId;
use serde::Deserialize;

use super::form::{Action, Field, Sent, acting};
use super::format::{count, several};
use super::page::{Drawn, Page, draw};
use super::state_bar::by_state;
use crate::api::batches::{InVersion, plan, subject};
use crate::app::App;
use crate::params::{Path, Query, encoded};
use crate::problem::{Code, Problem};

/// Maximum number of displayed names of a list.
const NAMES: usize = 200;

/// The tasks to rerun.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Wanted {
    /// `failed`, `task` or `downstream`.
    what: String,
    #[serde(default)]
    task: String,
    /// `latest`: in the latest version of the DAG.
    #[serde(default)]
    version: String,
}

#[derive(Template)]
#[template(path = "rerun.html")]
struct Preview {
    page: Page,
    row: BatchView,
    wanted: Wanted,
    change: Option<Change>,
    names: String,
    /// Aborted inner batches that are resumed.
    resumed: String,
    total: String,
    counts: Vec<(&'static str, String)>,
    /// The reason why the rerun is not possible now.
    hindrance: Option<String>,
    has_latest: bool,
    action: Option<Action>,
}

impl Wanted {
    /// Plans the rerun for the current state of the batch.
    async fn plan(&self, id: BatchId, app: &App) -> Result<(BatchView, Rerun), Problem> {
        let task = || vec![self.task.clone()];
        let chosen = match self.what.as_str() {
            "failed" => Chosen::Failed,
            "task" => Chosen::Tasks(task()),
            "downstream" => Chosen::Downstream(task()),
            other => {
                let words = format!("{other:?} is invalid; expected failed, task or downstream");
                return Err(Problem::new(Code::InvalidParameter, words).at("query what"));
            }
        };
        let version = if self.version == "latest" { InVersion::Latest } else { InVersion::Pinned };
        let (store, permit) = (app.store.as_ref(), app.large.permit().await);
        let subject = subject(&permit, id, store).await?;
        let plan = plan(&permit, &chosen, version, &subject, store).await?;
        Ok((subject.row, plan))
    }
}

/// Shows the preview.
pub(super) async fn preview(
    app: App,
    Path(id): Path<BatchId>,
    Query(wanted): Query<Wanted>,
    page: Page,
) -> Drawn {
    let (row, plan) = wanted.plan(id, &app).await?;
    let counts = plan.counts();
    let active = if plan.change.is_some() { row.counts.active } else { counts.active };
    let hindrance = (active > 0).then(|| {
        format!(
            "{} in progress and cannot be rerun. Wait for them, or abort the batch first.",
            several(active, "task is", "tasks are")
        )
    });
    let has_dag = row.parent.as_ref().is_none_or(|parent| !parent.items);
    let keys = plan.keys();
    let resumed: Vec<&str> = plan.resumed().collect();
    let action = Action::new(&page, "rerun", format!("/batches/{id}/rerun"), BatchAction::Rerun)
        .asks("Rerun these tasks?")
        .with(Field::hidden("what", &wanted.what))
        .with(Field::hidden("task", &wanted.task))
        .with(Field::hidden("version", &wanted.version))
        .with(Field::hidden("generation", row.generation.to_string()));
    let preview = Preview {
        names: named(&keys),
        resumed: named(&resumed),
        total: several(counts.total(), "task", "tasks"),
        counts: by_state(&counts)
            .into_iter()
            .filter(|(_, number)| *number > 0)
            .map(|(state, number)| (state.as_str(), count(number)))
            .collect(),
        has_latest: has_dag && wanted.version != "latest",
        action: hindrance.is_none().then_some(action),
        hindrance,
        change: plan.change,
        wanted,
        row,
        page,
    };
    Ok(draw(&preview))
}

/// Returns the first names, and the number of further ones.
fn named(keys: &[impl AsRef<str>]) -> String {
    let (shown, more) = keys.split_at(keys.len().min(NAMES));
    let shown = shown.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    if more.is_empty() { shown } else { format!("{shown} and {} more", count(more.len() as u64)) }
}

impl Preview {
    fn named(&self, keys: &[String]) -> String {
        named(keys)
    }

    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }
}

/// Starts the rerun.
pub(super) async fn rerun(app: App, Path(id): Path<BatchId>, sent: Sent) -> Response {
    let done = async {
        let (reason, generation) = (sent.reason()?, sent.read("generation")?);
        let field = |name| sent.field(name).unwrap_or_default().to_owned();
        let wanted = Wanted { what: field("what"), task: field("task"), version: field("version") };
        let (_, plan) = wanted.plan(id, &app).await?;
        let operation = BatchOperation {
            batch: id,
            generation,
            grace: std::time::Duration::ZERO,
            note: Some(reason),
            what: plan.verb(),
        };
        let operated = acting(&app, &sent)?.operate_batch(&operation).await?;
        Ok(format!(
            "Rerun {}: {} reset.",
            operated.generation.saturating_sub(1),
            several(operated.changed, "task", "tasks")
        ))
    };
    let done = done.await;
    sent.answer(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_shows_its_first_names_and_the_number_of_further_ones() {
        let names: Vec<String> = (0..NAMES + 1_002).map(|n| format!("t{n}")).collect();
        let shown = named(&names);
        assert!(shown.starts_with("t0, t1, ") && shown.ends_with(", t199 and 1,002 more"), "{shown}");
        assert!(named(&names[..NAMES]).ends_with(", t198, t199"));
        assert_eq!(named(&[] as &[&str]), "");
    }
}

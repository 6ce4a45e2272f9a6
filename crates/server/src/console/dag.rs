//! `/dags/{name}`: a DAG with its graph, tasks, versions and latest batches.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use askama::Template;
use milepost_core::batch::listing::{BatchFilter, VersionView};
use milepost_core::dag::definition::{Definition, Task, Work};
use milepost_core::dag::rule::Rule;
use milepost_core::job::QUEUE_DEFAULT;
use serde::Deserialize;

use super::batches::Row;
use super::form::Action;
use super::format::{count, kind_url, pretty, several};
use super::graph;
use super::page::{Drawn, Page, draw};
use super::{bulks, start};
use crate::api::dags::{checked, definition, version};
use crate::app::App;
use crate::params::{Path, Query, encoded};

/// Maximum number of listed tasks.
const TASKS: usize = 200;
/// Number of listed batches.
const BATCHES: u32 = 10;
/// Maximum number of listed versions.
const VERSIONS: usize = 20;
/// Maximum number of displayed tasks of a difference.
const CHANGES: usize = 50;

/// The selected version and task.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chosen {
    #[serde(default)]
    version: String,
    #[serde(default)]
    task: String,
}

#[derive(Template)]
#[template(path = "dag.html")]
struct DagPage {
    page: Page,
    view: VersionView,
    description: Option<String>,
    schema: Option<String>,
    start: Option<Action>,
    size: String,
    drawing: Option<String>,
    /// Whether the list shows only the selected task.
    is_narrowed: bool,
    tasks: Vec<TaskRow>,
    tasks_total: usize,
    /// The number of the version before, and the differences.
    changed: Option<(u32, Changes)>,
    versions: Vec<VersionView>,
    versions_total: usize,
    batches: Vec<Row>,
}

/// A task in the list.
struct TaskRow {
    key: String,
    work: &'static str,
    /// The name of its kind, bulk job or DAG, and a link.
    name: String,
    url: String,
    after: String,
    condition: String,
    options: String,
}

/// The differences between two versions.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    added: Vec<String>,
    removed: Vec<String>,
    /// Tasks with the members that differ.
    changed: Vec<(String, String)>,
    schema: bool,
    /// The number of tasks that are not listed.
    more: usize,
}

pub(super) async fn show(
    app: App,
    Path(name): Path<String>,
    Query(chosen): Query<Chosen>,
    page: Page,
) -> Drawn {
    let store = app.store.as_ref();
    let filter =
        BatchFilter { dag: Some(name.clone()), inner: true, limit: BATCHES, ..BatchFilter::default() };
    let permit = app.large.permit().await;
    let asked = match chosen.version.trim() {
        "" => None,
        text => Some(version(&name, text, store).await?),
    };
    let (view, content) = definition(&permit, &name, asked, store).await?;
    let (mut versions, batches) = tokio::try_join!(store.dag_versions(&name), store.batches(&filter))?;
    let before = versions.iter().find(|it| it.number + 1 == view.number).map(|it| (it.number, it.version));
    let changed = match before {
        Some((number, before)) => {
            let (_, before) = definition(&permit, &name, Some(before), store).await?;
            Some((number, Changes::between(&before, &content)))
        }
        None => None,
    };
    let url = format!("/dags/{}?version={}&", encoded(&name), view.number);
    let drawing = match graph::is_drawn(view.tasks as usize, view.edges as usize) {
        true => {
            let dag = checked(&permit, content.clone()).await?;
            graph::draw(dag.graph(), &url, |_| None, &[])
        }
        false => None,
    };
    drop(permit);
    let is_narrowed = !chosen.task.is_empty();
    let listed = content.tasks.iter().filter(|(key, _)| !is_narrowed || *key == chosen.task).take(TASKS);
    let (versions_total, schema) = (versions.len(), content.input_schema.as_ref());
    versions.truncate(VERSIONS);
    Ok(draw(&DagPage {
        start: start::batch_form(&page, &name, schema).filter(|_| view.latest),
        size: size(&view),
        schema: schema.map(|schema| pretty(&schema.to_string())),
        drawing,
        is_narrowed,
        tasks: listed.map(|(key, task)| TaskRow::of(key, task)).collect(),
        tasks_total: content.tasks.len(),
        description: content.description,
        changed,
        versions,
        versions_total,
        batches: batches.into_iter().map(Row::of).collect(),
        view,
        page,
    }))
}

impl DagPage {
    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }

    fn is_shown(&self, version: &VersionView) -> bool {
        version.number == self.view.number
    }
}

fn size(view: &VersionView) -> String {
    let number = |number: u32, one, many| several(number.into(), one, many);
    let (tasks, edges) = (number(view.tasks, "task", "tasks"), number(view.edges, "edge", "edges"));
    format!("{tasks}, {edges}, the longest path has {}", number(view.depth, "task", "tasks"))
}

impl TaskRow {
    fn of(key: &str, task: &Task) -> Self {
        let (work, name, url) = match task.work() {
            Some(Work::Job { kind }) => ("job", kind, kind_url(kind)),
            Some(Work::Each { kind, .. }) => ("jobs for a list", kind, kind_url(kind)),
            Some(Work::Bulk { name }) => ("bulk job", name, bulks::url(name)),
            Some(Work::Batch { dag }) => ("batch", dag, format!("/dags/{}", encoded(dag))),
            Some(Work::Wait(wait)) => ("wait", wait.signal.as_deref().unwrap_or("time"), String::new()),
            None => ("", "", String::new()),
        };
        let rule = (task.rule != Rule::default()).then(|| task.rule.as_str().replace('_', " "));
        let condition = [rule, task.when.as_ref().map(|when| format!("when {when}"))];
        let each = task.each.as_ref().map(|list| format!("each of {list}"));
        let queue = (task.queue != QUEUE_DEFAULT).then(|| format!("queue {}", task.queue));
        let group = task.group.as_ref().map(|group| format!("group {group}"));
        let options = [each, queue, group];
        let joined = |words: Vec<String>| words.join(", ");
        Self {
            key: key.to_owned(),
            work,
            name: name.to_owned(),
            url,
            after: task.after.join(", "),
            condition: joined(condition.into_iter().flatten().collect()),
            options: joined(options.into_iter().flatten().collect()),
        }
    }
}

impl Changes {
    fn between(before: &Definition, now: &Definition) -> Self {
        let old: HashMap<&str, &Task> = before.tasks.iter().map(|(key, task)| (key.as_str(), task)).collect();
        let new: HashMap<&str, &Task> = now.tasks.iter().map(|(key, task)| (key.as_str(), task)).collect();
        let is_gone = |(key, _): &&(String, Task)| !new.contains_key(key.as_str());
        let mut changes = Self { schema: before.input_schema != now.input_schema, ..Self::default() };
        for (key, task) in &now.tasks {
            match old.get(key.as_str()) {
                None => changes.added.push(key.clone()),
                Some(was) if *was != task => changes.changed.push((key.clone(), differing(was, task))),
                Some(_) => {}
            }
        }
        changes.removed = before.tasks.iter().filter(is_gone).map(|(key, _)| key.clone()).collect();
        changes.shorten();
        changes
    }

    /// Keeps [`CHANGES`] tasks, and counts the others.
    fn shorten(&mut self) {
        let total = self.added.len() + self.changed.len() + self.removed.len();
        self.added.truncate(CHANGES);
        self.changed.truncate(CHANGES - self.added.len());
        self.removed.truncate(CHANGES - self.added.len() - self.changed.len());
        self.more = total.saturating_sub(CHANGES);
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn more(&self) -> String {
        count(self.more as u64)
    }
}

/// Returns the names of the members that differ.
fn differing(was: &Task, is: &Task) -> String {
    let members = |task: &Task| -> BTreeMap<String, serde_json::Value> {
        serde_json::to_value(task).and_then(serde_json::from_value).unwrap_or_default()
    };
    let (was, is) = (members(was), members(is));
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let names: Vec<&str> =
        names.into_iter().filter(|name| was.get(*name) != is.get(*name)).map(String::as_str).collect();
    names.join(", ")
}

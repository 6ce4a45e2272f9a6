//! A batch as a graph, in pages.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use milepost_core::batch::listing::{TaskFilter, TaskView};
use milepost_core::dag::graph::Graph;
use milepost_core::dag::state::TaskState;
use milepost_core::dag::version::Version;
use milepost_core::error::StoreError;
use milepost_core::ident::{BatchId, JobId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::subject::subject;
use crate::api::page;
use crate::app::App;
use crate::params::{Path, Query};
use crate::problem::Problem;

/// How many edges a page has at most.
const EDGES_MAX: usize = 20_000;
/// Of how many levels it is told how wide they are.
const LEVELS_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_batch_graph))
}

/// Which part of a graph.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct GraphParams {
    /// From this level on: 0 has the tasks that wait for none. Not together with `cursor`.
    level: Option<u32>,
    /// How many tasks at most. The default is 1,000, which is all there can be.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(value_type = Option<String>)]
    cursor: Option<u32>,
}

/// A part of the graph of a batch: some of its tasks, level by level, and the edges that lead to them.
#[derive(Debug, Serialize, ToSchema)]
struct BatchGraph {
    /// The version of the DAG that it is of: the pages of one graph have the same.
    version: Version,
    /// How many tasks there are.
    tasks: usize,
    /// How many edges.
    edges: usize,
    /// How many levels.
    depth: u32,
    /// How many tasks each level has; of the first 1,000 levels.
    levels: Vec<u32>,
    /// Tasks, level by level.
    nodes: Vec<Node>,
    /// Edges to these, each from the number of a task to that of another: at most 20,000.
    links: Vec<(u32, u32)>,
    /// How many edges to these are left out.
    links_left_out: usize,
    /// Give it as `cursor` for the tasks that follow. Missing: there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A task in a graph.
#[derive(Debug, Serialize, ToSchema)]
struct Node {
    /// Its number.
    task: u32,
    /// Its key.
    key: String,
    /// How many tasks follow one another at most before it.
    level: u32,
    /// Where it stands.
    state: TaskState,
    /// Its job.
    job: Option<JobId>,
    /// The batch that it is.
    batch: Option<BatchId>,
}

/// Get a batch as a graph
///
/// A page of its tasks in the order of the work, level by level, with their states and the edges that lead to them. 409 when it is over a
/// list, whose items have no edges.
#[utoipa::path(
    get, path = "/v1/batches/{id}/graph", tag = "batches",
    params(("id" = BatchId, Path, description = "The batch"), GraphParams),
    responses((status = 200, body = BatchGraph)), security(("token" = ["viewer"]))
)]
async fn get_batch_graph(
    State(app): State<App>,
    Path(id): Path<BatchId>,
    Query(params): Query<GraphParams>,
) -> Result<Json<BatchGraph>, Problem> {
    let limit = page::limit(Some(params.limit.unwrap_or(page::ROWS_MAX)))? as usize;
    let subject = subject(id, app.store.as_ref()).await?;
    let graph = subject.dag().map_err(StoreError::from)?.graph();
    let first = first(graph, params.level, params.cursor)?;
    let page: Vec<u32> = graph.order().iter().copied().skip(first).take(limit).collect();
    let tasks = TaskFilter { tasks: page.clone(), limit: page::ROWS_MAX, ..TaskFilter::default() };
    let tasks = if page.is_empty() { Vec::new() } else { app.store.batch_tasks(id, &tasks).await? };
    let (links, links_left_out) = links(graph, &page);
    let end = first + page.len();
    Ok(Json(BatchGraph {
        version: subject.row.version,
        tasks: graph.len(),
        edges: graph.edges(),
        depth: graph.depth(),
        levels: levels(graph),
        nodes: nodes(graph, &page, tasks),
        links,
        links_left_out,
        next_cursor: (end < graph.len()).then(|| end.to_string()),
    }))
}

/// Where in the order of the work the page begins.
fn first(graph: &Graph, level: Option<u32>, cursor: Option<u32>) -> Result<usize, Problem> {
    match (level, cursor) {
        (Some(_), Some(_)) => {
            let words = "a page begins at a level or goes on at a cursor; give one of the two";
            Err(Problem::bad_request("invalid_parameter", words).at("query level"))
        }
        (Some(level), None) => Ok(graph.order().partition_point(|&task| graph.layer(task) < level)),
        (None, cursor) => Ok(cursor.unwrap_or_default() as usize),
    }
}

fn levels(graph: &Graph) -> Vec<u32> {
    let mut levels = vec![0; LEVELS_MAX.min(graph.depth() as usize)];
    for &task in graph.order() {
        let Some(count) = levels.get_mut(graph.layer(task) as usize) else { break };
        *count += 1;
    }
    levels
}

fn links(graph: &Graph, page: &[u32]) -> (Vec<(u32, u32)>, usize) {
    let all: usize = page.iter().map(|&task| graph.predecessors(task).len()).sum();
    let links = page.iter().flat_map(|&to| graph.predecessors(to).iter().map(move |&from| (from, to)));
    (links.take(EDGES_MAX).collect(), all.saturating_sub(EDGES_MAX))
}

/// The tasks of the page in its order; one that has gone meanwhile is left out.
fn nodes(graph: &Graph, page: &[u32], tasks: Vec<TaskView>) -> Vec<Node> {
    let mut views: HashMap<u32, TaskView> = tasks.into_iter().map(|view| (view.task, view)).collect();
    let node = |&task: &u32| {
        let TaskView { key, state, job, batch, .. } = views.remove(&task)?;
        Some(Node { task, key, level: graph.layer(task), state, job, batch })
    };
    page.iter().filter_map(node).collect()
}

//! The graph of a batch, in pages.

use std::collections::HashMap;

use axum::Json;
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
use crate::app::{App, Server};
use crate::params::{Path, Query};
use crate::problem::{Code, Problem};

/// Maximum number of edges in a page.
const EDGES_MAX: usize = 20_000;
/// Maximum number of levels whose sizes are returned.
const LEVELS_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(get_batch_graph))
}

/// The requested part of a graph.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct GraphParams {
    /// The first level of the page; level 0 has the tasks without predecessors. Cannot be combined with `cursor`.
    level: Option<u32>,
    /// Maximum number of tasks. The default, 1,000, is also the maximum.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<u32>,
}

/// A part of the graph of a batch: tasks, level by level, and the edges that lead to them.
#[derive(Debug, Serialize, ToSchema)]
struct BatchGraph {
    /// The version of the DAG. All pages of one graph have the same version.
    version: Version,
    /// Number of tasks.
    tasks: usize,
    /// Number of edges.
    edges: usize,
    /// Number of levels.
    depth: u32,
    /// Number of tasks of each level, for the first 1,000 levels.
    levels: Vec<u32>,
    /// The tasks of this page, level by level.
    nodes: Vec<Node>,
    /// The edges to these tasks, each as the numbers of its two tasks; at most 20,000.
    links: Vec<(u32, u32)>,
    /// Number of edges to these tasks that are omitted.
    links_left_out: usize,
    /// The `cursor` of the next page. Missing on the last page.
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
    /// Its level: the maximum number of tasks in a row before it.
    level: u32,
    /// Its state.
    state: TaskState,
    /// Its job.
    job: Option<JobId>,
    /// Its inner batch, if the task is a batch.
    batch: Option<BatchId>,
}

/// Get a batch as a graph
///
/// A page of its tasks in the order of execution, level by level, with their states and the edges that lead to them. 409 for the batch
/// of a list, whose items have no edges.
#[utoipa::path(
    get, path = "/v1/batches/{id}/graph", tag = "batches",
    params(("id" = BatchId, Path, description = "The batch"), GraphParams),
    responses((status = 200, body = BatchGraph)), security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn get_batch_graph(
    app: App,
    Path(id): Path<BatchId>,
    Query(params): Query<GraphParams>,
) -> Result<Json<BatchGraph>, Problem> {
    let limit = page::limit(Some(params.limit.unwrap_or(page::ROWS_MAX)))? as usize;
    let permit = app.large.permit().await;
    let subject = subject(&permit, id, app.store.as_ref()).await?;
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

/// Returns the index of the first task of the page in the graph's order.
fn first(graph: &Graph, level: Option<u32>, cursor: Option<u32>) -> Result<usize, Problem> {
    match (level, cursor) {
        (Some(_), Some(_)) => {
            let words = "level and cursor exclude each other; give one of them";
            Err(Problem::new(Code::InvalidParameter, words).at("query level"))
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

/// Returns the tasks of the page in its order. A task that has been deleted since is omitted.
fn nodes(graph: &Graph, page: &[u32], tasks: Vec<TaskView>) -> Vec<Node> {
    let mut views: HashMap<u32, TaskView> = tasks.into_iter().map(|view| (view.task, view)).collect();
    let node = |&task: &u32| {
        let TaskView { key, state, job, batch, .. } = views.remove(&task)?;
        Some(Node { task, key, level: graph.layer(task), state, job, batch })
    };
    page.iter().filter_map(node).collect()
}

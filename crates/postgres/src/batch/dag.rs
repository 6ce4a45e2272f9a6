//! DAGs and their versions.

use std::sync::Arc;

use milepost_core::audit::AuditedAction;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::{Defined, VersionView};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task, Work};
use milepost_core::dag::stored::StoredTask;
use milepost_core::dag::version::Version;
use milepost_core::duration::whole_ms;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::row::{Decoded, count, time};
use crate::session::{Query, Session};
use crate::store::PostgresStore;

/// The number of tasks that one statement inserts.
const TASKS_A_STATEMENT: usize = 5000;

impl PostgresStore {
    pub(super) async fn define(&self, dag: &Dag) -> StoreResult<Defined> {
        let action = AuditedAction::define_dag(&dag.definition().name);
        let define = async |tx: &mut Session<'_>| {
            self.noted(tx, &action, async |tx| define_in(tx, dag).await, |_| None).await
        };
        let known = self.inner.calm.atomically(define).await;
        let known = known.map_err(|e| self.fail("define_dag", e))?;
        let name = &dag.definition().name;
        let versions = self.versions(Some(name)).await?;
        match versions.into_iter().find(|stored| stored.version == dag.version()) {
            Some(version) => Ok(Defined { version, known }),
            None => Err(self.no_version(name, Some(dag.version())).await),
        }
    }

    pub(super) async fn definition(
        &self,
        name: &str,
        version: Option<Version>,
    ) -> StoreResult<(VersionView, Definition)> {
        let query = sqlx::query(sql!("batch/definition"))
            .bind(name.to_owned())
            .bind(version.map(|version| version.to_string()));
        let found = self.inner.lookups().row(query).await.map_err(|e| self.fail("dag", e))?;
        let Some(row) = found else { return Err(self.no_version(name, version).await) };
        let read = version_view(&row).and_then(|view| {
            let canonical: &str = row.try_get("canonical")?;
            let definition = serde_json::from_str(canonical).map_err(|e| sqlx::Error::Decode(Box::new(e)))?;
            Ok((view, definition))
        });
        read.map_err(|e| self.fail("dag", e))
    }

    /// Returns the versions of one DAG, or the latest version of each DAG.
    pub(super) async fn versions(&self, name: Option<&str>) -> StoreResult<Vec<VersionView>> {
        let query = sqlx::query(sql!("batch/versions")).bind(name.map(str::to_owned)).bind(name.is_none());
        self.listed("dag_versions", self.inner.calm.rows(query).await, version_view)
    }

    /// Returns the error for a missing DAG or a missing version of it.
    pub(super) async fn no_version(
        &self,
        name: &str,
        version: Option<Version>,
    ) -> milepost_core::error::StoreError {
        let name = name.to_owned();
        match (version, self.versions(Some(&name)).await) {
            (_, Err(error)) => error,
            (Some(version), Ok(versions)) if !versions.is_empty() => {
                InvalidBatch::NoSuchVersion { name, version: version.to_string() }.into()
            }
            _ => InvalidBatch::NoSuchDag { name }.into(),
        }
    }
}

/// Stores a version and makes it the latest. Returns whether the version was already stored.
async fn define_in(tx: &mut Session<'_>, dag: &Dag) -> Decoded<bool> {
    let (definition, graph) = (dag.definition(), dag.graph());
    let name = || definition.name.clone();
    tx.execute(sqlx::query(sql!("batch/lock_dag")).bind(name())).await?;
    let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let query = sqlx::query(sql!("batch/put_version"))
        .bind(name())
        .bind(dag.version().to_string())
        .bind(Arc::clone(dag.canonical()))
        .bind(definition.input_schema.as_ref().map(ToString::to_string))
        .bind(number(graph.len()))
        .bind(number(graph.edges()))
        .bind(graph.depth().cast_signed());
    let made = tx.row(query).await?.map(|row| row.try_get::<i64, _>(0)).transpose()?;
    if let Some(id) = made {
        let mut tasks = dag.stored();
        loop {
            let page: Vec<StoredTask<'_>> = tasks.by_ref().take(TASKS_A_STATEMENT).collect();
            if page.is_empty() {
                break;
            }
            tx.execute(put_tasks(id, &page)?).await?;
        }
    }
    tx.execute(sqlx::query(sql!("batch/set_latest")).bind(name()).bind(dag.version().to_string())).await?;
    Ok(made.is_none())
}

fn put_tasks(version: i64, tasks: &[StoredTask<'_>]) -> Decoded<Query> {
    fn each<T>(tasks: &[StoredTask<'_>], value: impl Fn(&StoredTask<'_>) -> T) -> Vec<T> {
        tasks.iter().map(value).collect()
    }
    let specs = tasks.iter().map(|task| serde_json::to_string(task.spec)).collect::<Result<Vec<_>, _>>();
    Ok(sqlx::query(sql!("batch/put_tasks"))
        .bind(version)
        .bind(each(tasks, |task| task.task.cast_signed()))
        .bind(each(tasks, |task| task.key.to_owned()))
        .bind(each(tasks, |task| task.rule.as_str()))
        .bind(each(tasks, |task| task.plain))
        .bind(each(tasks, |task| numbers(task.successors)))
        .bind(each(tasks, |task| numbers(task.predecessors)))
        .bind(each(tasks, |task| numbers(&task.reads)))
        .bind(specs.map_err(|e| sqlx::Error::Encode(Box::new(e)))?)
        .bind(each(tasks, |task| kind(task.spec)))
        .bind(each(tasks, |task| task.spec.queue.clone()))
        .bind(each(tasks, |task| i32::from(task.spec.priority.get())))
        .bind(each(tasks, |task| task.spec.group.clone()))
        .bind(each(tasks, |task| task.spec.max_attempts.cast_signed()))
        .bind(each(tasks, |task| task.spec.timeout.map(whole_ms))))
}

/// Returns the kind of the task's jobs, if the task specifies one.
fn kind(task: &Task) -> Option<String> {
    match task.work() {
        Some(Work::Job { kind } | Work::Each { kind, .. }) => Some(kind.to_owned()),
        _ => None,
    }
}

/// Formats numbers as a PostgreSQL array literal.
fn numbers(numbers: &[u32]) -> String {
    use std::fmt::Write;
    let mut text = String::from("{");
    for (at, number) in numbers.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{number}");
    }
    text.push('}');
    text
}

fn version_view(row: &PgRow) -> Decoded<VersionView> {
    let version: &str = row.try_get("version")?;
    Ok(VersionView {
        dag: row.try_get("name")?,
        number: count(row, "number")?,
        version: version.parse().map_err(|e| sqlx::Error::Decode(Box::new(e)))?,
        latest: row.try_get("latest")?,
        tasks: count(row, "tasks")?,
        edges: count(row, "edges")?,
        depth: count(row, "depth")?,
        created_at: time(row, "created_at")?.unwrap_or_default(),
    })
}

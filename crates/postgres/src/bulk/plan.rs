//! Check that an index can read the chunks of a source.

use milepost_core::bulk::error::InvalidBulk;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqlSafeStr};

use super::spec::Spec;
use super::target::Targets;
use crate::row;
use crate::session::Session;

/// Checks the statements of a bulk job against the database on this connection.
pub(super) async fn check_all(spec: &Spec, mut connection: PgConnection) -> StoreResult<()> {
    let targets = Targets::prepare(spec, &mut connection).await?;
    check(spec, &targets, &mut connection).await?;
    drop(connection.close().await);
    Ok(())
}

/// Refuses a source that would sort, or scan a large table, for every chunk. Sorts and sequential scans are disabled while
/// the plan is made, so that it contains them only if there is no alternative.
async fn check(spec: &Spec, targets: &Targets, connection: &mut PgConnection) -> StoreResult<()> {
    let fail = |e| spec.database.fail(e);
    connection.execute(sql!("bulk/begin_chunk")).await.map_err(fail)?;
    let plan = explain(targets, connection).await.map_err(fail)?;
    let refused = match problem(&plan) {
        Problem::None => None,
        Problem::Sorts => Some("sorts".to_owned()),
        Problem::Reads(tables) => large(connection, &tables).await.map_err(fail)?,
    };
    connection.execute("rollback").await.map_err(fail)?;
    match refused {
        None => Ok(()),
        Some(problem) => {
            let key = spec.source.key().join(", ");
            Err(InvalidBulk::NoIndex { problem, key, plan: outline(&plan) }.into())
        }
    }
}

/// Returns the generic plan, which does not depend on parameters.
async fn explain(targets: &Targets, connection: &mut PgConnection) -> Result<Value, sqlx::Error> {
    connection.execute("set local plan_cache_mode = force_generic_plan").await?;
    let prepare = format!("prepare milepost_source as {}", targets.page.sql);
    connection.execute(AssertSqlSafe(prepare).into_sql_str()).await?;
    let nulls = vec!["null"; targets.page.slots.len()];
    let arguments = if nulls.is_empty() { String::new() } else { format!("({})", nulls.join(", ")) };
    let explain = format!("explain (format json) execute milepost_source{arguments}");
    let plan = connection.fetch_one(AssertSqlSafe(explain).into_sql_str()).await?;
    connection.execute("deallocate milepost_source").await?;
    super::row::plan(&plan)
}

enum Problem {
    None,
    Sorts,
    /// Tables that are read by sequential scans.
    Reads(Vec<String>),
}

fn problem(plan: &Value) -> Problem {
    let mut tables = Vec::new();
    if sorts(plan, &mut tables) {
        return Problem::Sorts;
    }
    if tables.is_empty() { Problem::None } else { Problem::Reads(tables) }
}

/// Returns whether the rows of this node come from a sort; collects the tables that are read by sequential scans.
fn sorts(node: &Value, tables: &mut Vec<String>) -> bool {
    let kind = node["Node Type"].as_str().unwrap_or_default();
    if kind == "Seq Scan" {
        let quoted =
            |name: &str| format!("\"{}\"", node[name].as_str().unwrap_or_default().replace('"', "\"\""));
        tables.push(match node["Schema"].as_str() {
            Some(_) => format!("{}.{}", quoted("Schema"), quoted("Relation Name")),
            None => quoted("Relation Name"),
        });
    }
    if kind == "Sort" || kind == "Incremental Sort" {
        return true;
    }
    let children = node["Plans"].as_array().map(Vec::as_slice).unwrap_or_default();
    // A subquery that returns one value may sort.
    let own = |child: &&Value| !matches!(child["Parent Relationship"].as_str(), Some("InitPlan" | "SubPlan"));
    let mut found = false;
    for child in children.iter().filter(own) {
        found |= sorts(child, tables);
    }
    found
}

async fn large(connection: &mut PgConnection, tables: &[String]) -> Result<Option<String>, sqlx::Error> {
    let query = sqlx::query(sql!("bulk/large_tables")).bind(tables.to_vec());
    let large: Vec<String> = Session::lasting(connection).rows(query).await.and_then(row::values)?;
    Ok((!large.is_empty()).then(|| format!("reads all of {}", large.join(" and "))))
}

/// Returns the plan on one line.
fn outline(node: &Value) -> String {
    let mut words = node["Node Type"].as_str().unwrap_or("?").to_owned();
    if let Some(name) = node["Index Name"].as_str().or(node["Relation Name"].as_str()) {
        words.push_str(&format!(" on {name}"));
    }
    let children: Vec<String> = node["Plans"].as_array().into_iter().flatten().map(outline).collect();
    if children.is_empty() { words } else { format!("{words} ← {}", children.join(", ")) }
}

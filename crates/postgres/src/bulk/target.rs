//! Statements of a run with their types: a source and an apply statement, prepared against the database.

use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::sql::Bounds;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::{AssertSqlSafe, Column, Either, Executor, PgConnection, SqlSafeStr, Statement as _};

use super::spec::Spec;
use super::sql::{Author, From, Slot, Statement, Types};
use crate::row;
use crate::session::Session;

/// The statements that read the targets of a run.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    /// Apply the targets, or return them for another process to apply.
    pub(super) first: Statement,
    pub(super) next: Statement,
    /// The same for all targets up to a key, regardless of their number.
    pub(super) only_first: Statement,
    pub(super) only_next: Statement,
    /// Return the number and the keys of the targets without applying them.
    pub(super) look_first: Statement,
    pub(super) look_next: Statement,
}

/// All statements of a bulk job.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    pub(super) of_source: Pages,
    pub(super) of_failures: Pages,
    pub(super) last: Statement,
    pub(super) count: Statement,
    pub(super) estimate: Statement,
    pub(super) page: Statement,
}

impl Targets {
    /// Lets the database infer the types; returns an error for statements that it does not accept.
    pub(super) async fn prepare(spec: &Spec, connection: &mut PgConnection) -> StoreResult<Self> {
        let apply = spec.applied.statement();
        let bare =
            Author { source: &spec.source, apply, types: None, key_types: &[], failures: spec.failures };
        let page = bare.page(Bounds::Next);
        let described = describe(spec, connection, &page, "source").await?;
        check_columns(spec, &described)?;
        let key_types = key_types(spec, &described)?;
        let key_types = type_names(spec, connection, &key_types).await?;
        let whole = bare.apply(From::Source(Bounds::Next));
        let part = if apply.is_some() { "apply" } else { "source" };
        let described = describe(spec, connection, &whole, part).await?;
        let names = type_names(spec, connection, &described.parameters).await?;
        let types: Types = whole.slots.into_iter().zip(names).collect();
        Ok(Self::write(spec, &types, &key_types))
    }

    fn write(spec: &Spec, types: &Types, key_types: &[String]) -> Self {
        let apply = spec.applied.statement();
        let author =
            Author { source: &spec.source, apply, types: Some(types), key_types, failures: spec.failures };
        let mut among_failures = types.clone();
        for slot in [Slot::Cursor(0), Slot::Upper(0), Slot::Limit] {
            among_failures.insert(slot, "bigint".to_owned());
        }
        among_failures.insert(Slot::Run, "uuid".to_owned());
        among_failures.insert(Slot::Failed, "jsonb".to_owned());
        let of_failures = Author { types: Some(&among_failures), ..author };
        let pages = |author: &Author<'_>, [first, next, only_first, only_next]: [From; 4]| {
            let read = |from| if apply.is_some() { author.apply(from) } else { author.rows(from) };
            Pages {
                first: read(first),
                next: read(next),
                only_first: read(only_first),
                only_next: read(only_next),
                look_first: author.look(first),
                look_next: author.look(next),
            }
        };
        let bounds = [Bounds::First, Bounds::Next, Bounds::All, Bounds::After];
        Self {
            of_source: pages(&author, bounds.map(From::Source)),
            of_failures: pages(&of_failures, [From::Failures; 4]),
            last: author.last(),
            count: author.count(),
            estimate: author.estimate(),
            page: author.page(Bounds::First),
        }
    }
}

/// The database's description of a prepared statement.
struct Described {
    /// OIDs of the types.
    parameters: Vec<i64>,
    columns: Vec<(String, i64)>,
}

impl Described {
    /// Returns the names of the columns, for messages.
    fn selected(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    }
}

async fn describe(
    spec: &Spec,
    connection: &mut PgConnection,
    statement: &Statement,
    part: &'static str,
) -> StoreResult<Described> {
    let sql = AssertSqlSafe(statement.sql.clone()).into_sql_str();
    let described = connection.prepare(sql).await.map_err(|error| refused(spec, part, error))?;
    let id = |of: &sqlx::postgres::PgTypeInfo| of.oid().map_or(0, |oid| i64::from(oid.0));
    let parameters = match described.parameters() {
        Some(Either::Left(types)) => types.iter().map(id).collect(),
        _ => Vec::new(),
    };
    let columns =
        described.columns().iter().map(|its| (its.name().to_owned(), id(its.type_info()))).collect();
    Ok(Described { parameters, columns })
}

/// Converts an error of preparing a statement; errors that are not about the statement are converted as usual.
fn refused(spec: &Spec, part: &'static str, error: sqlx::Error) -> milepost_core::error::StoreError {
    match error.as_database_error() {
        // Syntax errors, unknown names, wrong types, missing privileges (class 42), and unsupported features (class 0A).
        Some(its) if its.code().is_some_and(|code| code.starts_with("42") || code.starts_with("0A")) => {
            InvalidBulk::NotPrepared { part, why: its.message().to_owned() }.into()
        }
        _ => spec.database.fail(error),
    }
}

fn check_columns(spec: &Spec, described: &Described) -> Result<(), InvalidBulk> {
    let selects = |column: &&String| described.columns.iter().any(|(name, _)| name == *column);
    spec.columns.iter().find(|column| !selects(column)).map_or(Ok(()), |column| {
        Err(InvalidBulk::NoColumn { column: column.clone(), selected: described.selected() })
    })
}

fn key_types(spec: &Spec, described: &Described) -> StoreResult<Vec<i64>> {
    let find = |key: &String| {
        let found = described.columns.iter().find(|(name, _)| name == key);
        found
            .map(|(_, id)| *id)
            .ok_or_else(|| InvalidBulk::NoKeyColumn { column: key.clone(), selected: described.selected() })
    };
    Ok(spec.source.key().iter().map(find).collect::<Result<_, _>>()?)
}

async fn type_names(spec: &Spec, connection: &mut PgConnection, types: &[i64]) -> StoreResult<Vec<String>> {
    let query = sqlx::query(sql!("bulk/type_names")).bind(types.to_vec());
    let rows = Session::lasting(connection).rows(query).await;
    rows.and_then(row::values).map_err(|e| spec.database.fail(e))
}

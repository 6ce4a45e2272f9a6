//! Bulk job that most tests use: every member gets a note.

use std::sync::Arc;
use std::time::Duration;

use milepost::bulk::{Bulk, ColumnType, Columns, Definition, Dialect, Remote, Sizing};
use milepost_core::port::Store;
use milepost_postgres::bulk::{Database, Effect, PostgresTargets};

use crate::home::Home;

/// Selects all members by id.
pub const SOURCE: &str = "select id, place, name from member where id > :cursor order by id limit :limit";
/// Adds a note for each member of a chunk.
pub const APPLY: &str = "insert into note (run, member) select :bulk_id, id from chunk";

/// Returns a definition with chunks of at most `rows_max` rows.
pub fn definition(name: &str, rows_max: u32) -> Definition {
    let rows_min = rows_max.min(10);
    Definition {
        sizing: Sizing { target: Duration::from_millis(50), rows_min, rows_max },
        max_attempts: 1_000,
        ..Definition::new(name)
    }
}

/// Returns the bulk job `notify`.
pub fn notify(home: &dyn Home, rows_max: u32) -> Bulk {
    home.bulk(definition("notify", rows_max), SOURCE, &["id"], APPLY).expect("invalid bulk job")
}

/// Returns the definition of `letter`.
pub fn letter_definition(rows_max: u32) -> Definition {
    let columns = Columns::new([("id", ColumnType::Integer), ("name", ColumnType::Text)]);
    Definition { columns: Some(columns.expect("invalid columns")), ..definition("letter", rows_max) }
}

/// Returns the bulk job `letter`: every row of a file gets a note.
pub fn letter(home: &dyn Home, rows_max: u32) -> Bulk {
    let definition = letter_definition(rows_max);
    let source = definition.columns.as_ref().expect("columns").source(dialect(home));
    home.bulk(definition, &source, &["n"], APPLY).expect("invalid bulk job")
}

/// Returns the SQL dialect of a home.
pub fn dialect(home: &dyn Home) -> Dialect {
    if home.address().starts_with("sqlite:") { Dialect::Sqlite } else { Dialect::Postgres }
}

/// Returns the database at this URL, under the name `shop`.
pub fn shop(url: &str) -> Database {
    Database::new("shop", url).expect("invalid URL")
}

/// Returns the work of a bulk job over members in another database than the store's. Without `effect` the members are only read.
pub fn remote(
    shop: &Database,
    store: Arc<dyn Store>,
    definition: &Definition,
    effect: Option<Effect>,
) -> Remote {
    let targets = PostgresTargets::new(shop, SOURCE, &["id".to_owned()], effect).expect("invalid bulk job");
    Remote::new(store, definition, Arc::new(targets))
}

/// Returns the bulk job `notify` over members in another database; the notes are also added there.
pub fn notify_at(shop: &Database, store: Arc<dyn Store>, rows_max: u32) -> Bulk {
    let definition = definition("notify", rows_max);
    let work = remote(shop, store, &definition, Some(Effect::Sql(APPLY.to_owned())));
    Bulk::new(definition, Arc::new(work))
}

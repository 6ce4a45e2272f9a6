//! The bulk job that most tests run: every member gets a note.

use std::sync::Arc;
use std::time::Duration;

use milepost::bulk::{Bulk, ColumnType, Columns, Definition, Dialect, Remote, Sizing};
use milepost_core::port::Store;
use milepost_postgres::bulk::{Database, Effect, PostgresTargets};

use crate::home::Home;

/// Goes through all members by their ids.
pub const SOURCE: &str = "select id, place, name from member where id > :cursor order by id limit :limit";
/// Gives each a note.
pub const APPLY: &str = "insert into note (run, member) select :bulk_id, id from chunk";

/// A definition whose chunks have so many rows at most.
pub fn definition(name: &str, rows_max: u32) -> Definition {
    let rows_min = rows_max.min(10);
    Definition {
        sizing: Sizing { target: Duration::from_millis(50), rows_min, rows_max },
        max_attempts: 1_000,
        ..Definition::new(name)
    }
}

/// The bulk job `notify`.
pub fn notify(home: &dyn Home, rows_max: u32) -> Bulk {
    home.bulk(definition("notify", rows_max), SOURCE, &["id"], APPLY).expect("a usable bulk job")
}

/// What `letter` is.
pub fn letter_definition(rows_max: u32) -> Definition {
    let columns = Columns::new([("id", ColumnType::Integer), ("name", ColumnType::Text)]);
    Definition { columns: Some(columns.expect("usable columns")), ..definition("letter", rows_max) }
}

/// The bulk job `letter`: everybody in a file gets a note.
pub fn letter(home: &dyn Home, rows_max: u32) -> Bulk {
    let definition = letter_definition(rows_max);
    let source = definition.columns.as_ref().expect("columns").source(dialect(home));
    home.bulk(definition, &source, &["n"], APPLY).expect("a usable bulk job")
}

/// Whose SQL a home has.
pub fn dialect(home: &dyn Home) -> Dialect {
    if home.address().starts_with("sqlite:") { Dialect::Sqlite } else { Dialect::Postgres }
}

/// The database at this URL, by the name `shop`.
pub fn shop(url: &str) -> Database {
    Database::new("shop", url).expect("a usable URL")
}

/// A bulk job of this definition over members on another database than the store's; with an effect there, or only read.
pub fn remote(
    shop: &Database,
    store: Arc<dyn Store>,
    definition: &Definition,
    effect: Option<Effect>,
) -> Remote {
    let targets = PostgresTargets::new(shop, SOURCE, &["id".to_owned()], effect).expect("a usable bulk job");
    Remote::new(store, definition, Arc::new(targets))
}

/// The bulk job `notify` over members on another database, who get their notes there.
pub fn notify_at(shop: &Database, store: Arc<dyn Store>, rows_max: u32) -> Bulk {
    let definition = definition("notify", rows_max);
    let work = remote(shop, store, &definition, Some(Effect::Sql(APPLY.to_owned())));
    Bulk::new(definition, Arc::new(work))
}

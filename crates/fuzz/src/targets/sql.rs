//! SQL of bulk jobs: source queries and apply statements.

use milepost_core::bulk::sql::{Apply, Bounds, Dialect, Placeholders, Source};

use crate::check;

/// Writes parameters as they are in the configuration.
struct Named;

impl Placeholders for Named {
    fn parameter(&mut self, name: &str) -> String {
        format!(":{name}")
    }

    fn cursor(&mut self, _: usize) -> String {
        ":cursor".to_owned()
    }

    fn limit(&mut self) -> String {
        ":limit".to_owned()
    }
}

const DIALECTS: [Dialect; 2] = [Dialect::Postgres, Dialect::Sqlite];
const BOUNDS: [Bounds; 5] = [Bounds::First, Bounds::Next, Bounds::Last, Bounds::After, Bounds::All];

/// Parses a source query, after a line with its key columns. The query that is written for the next targets is the same source.
///
/// # Panics
/// A property does not hold.
pub fn source(input: &[u8]) {
    let Some([key, sql]) = check::lines::<2>(input) else { return };
    let key: Vec<String> = key.split(',').filter(|column| !column.is_empty()).map(str::to_owned).collect();
    for dialect in DIALECTS {
        let source = match Source::parse(sql, &key, dialect) {
            Ok(source) => source,
            Err(invalid) => {
                check::message(&invalid.to_string());
                continue;
            }
        };
        assert_eq!(source.key(), key);
        for bounds in BOUNDS {
            let query = source.query(bounds, &mut Named);
            let added = 200 + 2 * sql.len();
            assert!(query.len() <= sql.len() + added, "{} bytes for {}", query.len(), sql.len());
        }
        // PostgreSQL gets another end, and several columns get another condition.
        if dialect == Dialect::Sqlite && key.len() == 1 {
            let next = source.query(Bounds::Next, &mut Named);
            let again = Source::parse(&next, &key, dialect);
            let again = again.unwrap_or_else(|invalid| panic!("{sql:?} is written as {next:?}: {invalid}"));
            let words = |sql: &str| sql.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&again.query(Bounds::Next, &mut Named)), words(&next));
            assert_eq!(again.parameters(), source.parameters());
        }
    }
}

/// Parses an apply statement with the key column `id`. The statement that is written is the same one, and its parameters are the same if it
/// is executed over a chunk.
///
/// # Panics
/// A property does not hold.
pub fn apply(input: &[u8]) {
    let Ok(sql) = std::str::from_utf8(input) else { return };
    let key = ["id".to_owned()];
    for dialect in DIALECTS {
        let apply = match Apply::parse(sql, &key, dialect) {
            Ok(apply) => apply,
            Err(invalid) => {
                check::message(&invalid.to_string());
                continue;
            }
        };
        let statement = apply.statement(&mut Named);
        let again = Apply::parse(&statement, &key, dialect);
        let again = again.unwrap_or_else(|invalid| panic!("{sql:?} is written as {statement:?}: {invalid}"));
        assert_eq!((again.parameters(), again.is_query()), (apply.parameters(), apply.is_query()));
        let over = apply.statement_over("select id from member", &mut Named);
        let over = Apply::parse(&over, &key, dialect)
            .unwrap_or_else(|invalid| panic!("{sql:?} over a chunk is {over:?}: {invalid}"));
        assert_eq!(over.parameters(), apply.parameters());
    }
}

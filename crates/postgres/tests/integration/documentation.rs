//! `docs/SQL.md` describes the functions and errors as they are in the database.

use std::collections::BTreeSet;

use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;
use sqlx::Row;
use sqlx::postgres::types::Oid;

const PAGE: &str = include_str!("../../../../docs/SQL.md");

/// Functions of the relay, of operators' commands, and of moves, which no application calls.
const NOT_PUBLIC: [&str; 3] = ["move.sql", "relay.sql", "subscriptions.sql"];

/// A function: its name and its arguments, each as `name type` or `name type = default`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    name: String,
    arguments: Vec<String>,
}

/// Returns the functions of the first table, without those whose arguments are those of the function before (`…`).
fn documented() -> Vec<Function> {
    let cells = PAGE.lines().filter_map(|line| line.strip_prefix("| `milepost.")?.split(" | ").next());
    let codes = cells.flat_map(|cell| cell.split('`').step_by(2)).filter(|code| !code.contains('…'));
    codes
        .filter_map(|code| code.trim_start_matches("milepost.").strip_suffix(')')?.split_once('('))
        .map(|(name, arguments)| Function {
            name: name.to_owned(),
            arguments: arguments.split(", ").map(str::to_owned).collect(),
        })
        .collect()
}

/// Returns an argument of the catalog as the page writes it: short names of types, and no default if it is null.
fn as_written(argument: &str) -> String {
    let short = argument.replace("timestamp with time zone", "timestamptz").replace("integer", "int");
    let (argument, default) = short.split_once(" DEFAULT ").unwrap_or((&short, "NULL"));
    match default.split("::").next() {
        None | Some("NULL") => argument.to_owned(),
        Some(default) => format!("{argument} = {default}"),
    }
}

async fn existing(names: &[&str]) -> Vec<Function> {
    let (_database, store) = Database::with_store().await;
    let rows = sqlx::query(
        "select proname::text, pg_get_function_arguments(oid) from pg_proc
         where pronamespace = 'milepost'::regnamespace and proname = any ($1) and not oid = any ($2) order by 1",
    )
    .bind(names)
    .bind(of_other_payload_types(&store).await)
    .fetch_all(store.pool())
    .await
    .unwrap();
    let read = |row: &sqlx::postgres::PgRow| {
        let arguments: String = row.get(1);
        let arguments = arguments.split(", ").filter(|argument| !argument.starts_with("OUT "));
        Function { name: row.get(0), arguments: arguments.map(as_written).collect() }
    };
    let mut functions: Vec<Function> = rows.iter().map(read).collect();
    functions.sort();
    functions
}

/// Returns the versions of functions that the page mentions only in a sentence.
async fn of_other_payload_types(store: &PostgresStore) -> Vec<Oid> {
    sqlx::query_scalar(
        "select oid from pg_proc where pronamespace = 'milepost'::regnamespace
         and (proname, proargtypes[array_position(proargnames, 'payload') - 1]::regtype)
             in (values ('enqueue', 'json'::regtype), ('enqueue', 'text'), ('enqueue_by_key', 'json'), ('enqueue_by_key', 'text'),
                        ('emit', 'jsonb'), ('emit', 'text'))",
    )
    .fetch_all(store.pool())
    .await
    .unwrap()
}

#[tokio::test]
async fn the_versions_of_a_function_differ_only_in_the_type_of_the_payload() {
    let (_database, store) = Database::with_store().await;
    let arguments: Vec<(String, i64, i64)> = sqlx::query_as(
        "select proname::text, count(*), count(distinct regexp_replace(pg_get_function_arguments(oid), 'payload [^,]*', 'payload'))
         from pg_proc where pronamespace = 'milepost'::regnamespace and proname in ('enqueue', 'enqueue_by_key', 'emit') group by 1 order by 1",
    )
    .fetch_all(store.pool())
    .await
    .unwrap();
    let three = |name: &str| (name.to_owned(), 3, 1);
    assert_eq!(arguments, [three("emit"), three("enqueue"), three("enqueue_by_key")]);
    assert_eq!(of_other_payload_types(&store).await.len(), 6);
}

#[tokio::test]
async fn the_page_has_the_arguments_and_defaults_of_each_function() {
    let mut documented = documented();
    documented.sort();
    assert!(documented.len() > 15, "{documented:?}");
    let names: Vec<&str> = documented.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(existing(&names).await, documented);
}

#[tokio::test]
async fn the_page_names_each_function_that_has_the_rights_of_its_owner_for_applications() {
    let (_database, store) = Database::with_store().await;
    sqlx::raw_sql(include_str!("../../../../ops/postgres/roles.sql")).execute(store.pool()).await.unwrap();
    let functions: Vec<String> = sqlx::query_scalar(
        "select proname::text from pg_proc where pronamespace = 'milepost'::regnamespace and prosecdef
         and has_function_privilege('milepost_app', oid, 'execute') order by 1",
    )
    .fetch_all(store.pool())
    .await
    .unwrap();
    let (sentence, _) = PAGE.split_once(" have the rights of the schema's owner").unwrap();
    let sentence = sentence.rsplit("\n\n").next().unwrap();
    let named: BTreeSet<&str> = sentence.split('`').skip(1).step_by(2).collect();
    assert_eq!(functions.iter().map(String::as_str).collect::<BTreeSet<_>>(), named);
}

#[test]
fn the_page_has_each_state_that_a_public_function_raises() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql");
    let mut raised = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if NOT_PUBLIC.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        raised.extend(text.split("errcode = 'MP").skip(1).map(|rest| format!("MP{}", &rest[..3])));
    }
    assert!(raised.len() > 10, "{raised:?}");
    let missing: Vec<_> = raised.iter().filter(|state| !PAGE.contains(&format!("`{state}`"))).collect();
    assert_eq!(missing, [""; 0]);
}

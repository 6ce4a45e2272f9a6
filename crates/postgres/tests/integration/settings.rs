//! Tests of databases with settings of their own: statements and functions mean the same under each, and what cannot be used is refused.

use milepost_core::error::{SchemaError, StoreError};
use milepost_core::finish::End;
use milepost_core::port::IntakeStore;
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::database::Database;
use milepost_testkit::{Scene, scene};
use sqlx::{Connection, Executor};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_database_sets_for_its_sessions_does_not_change_what_statements_mean() {
    for settings in [
        "default_transaction_isolation = 'repeatable read'",
        "default_transaction_isolation = 'serializable'",
        "standard_conforming_strings = off",
        "search_path = ''",
        "datestyle = 'German'",
        "intervalstyle = 'iso_8601'",
        "bytea_output = 'escape'",
        "timezone = 'Asia/Kathmandu'",
        "synchronous_commit = off",
        "plan_cache_mode = 'force_custom_plan'",
    ] {
        let database = Database::create().await;
        set(&database, settings).await;
        let scenes = (0..6).map(async |_| {
            let store = PostgresStore::connect(&database.url(), PostgresOptions::default()).await.unwrap();
            store.migrate().await.unwrap();
            // Workers that start and claim at the same time.
            let scene = Scene::on(Arc::new(store)).await;
            let jobs = scene.enqueue_many(20, scene::KIND, serde_json::json!({})).await;
            while let [job, ..] = scene.claim(1).await.as_slice() {
                scene.finish(job, End::Succeed { result: None }).await;
            }
            (scene, jobs)
        });
        for (scene, jobs) in futures::future::join_all(scenes).await {
            scene.assert_all_succeed(&jobs).await;
        }
    }
}

#[tokio::test]
async fn a_database_that_is_set_to_read_only_is_named_with_the_remedy() {
    let (database, _store) = Database::with_store().await;
    set(&database, "default_transaction_read_only = on").await;
    let store = PostgresStore::connect(&database.url(), PostgresOptions::default()).await.unwrap();
    let refused = store.enqueue_many(&[Scene::job()]).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused:?}");
    let cause = std::error::Error::source(&refused).map_or_else(|| refused.to_string(), ToString::to_string);
    assert!(cause.contains("default_transaction_read_only is on"), "{cause}");
}

#[tokio::test]
async fn functions_do_not_depend_on_how_their_caller_reads_strings() {
    let (database, _store) = Database::with_store().await;
    let mut caller = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    caller.execute("set standard_conforming_strings = off").await.unwrap();
    for call in [
        "select milepost.emit('order', '17', 'order.paid', '{\"cents\": 1200}')",
        "select milepost.enqueue('mail', (select jsonb_agg('{}'::jsonb) from generate_series(1, 500)))",
        "select milepost.enqueue('mail', to_jsonb(repeat('[', 500)))",
        "select milepost.receive('shop', 'order', '1', 1, gen_random_uuid(), 'order.paid')",
    ] {
        let answer = caller.execute(call).await;
        assert!(answer.is_ok(), "{call}: {answer:?}");
    }
    let nul = r#"select milepost.emit('order', '18', 'order.paid', E'"\\u0000"')"#;
    let refused = caller.execute(nul).await;
    let message = refused.unwrap_err().to_string();
    assert!(message.contains(r"NUL character (\u0000)"), "{message}");
}

/// In other literals, the meaning of a backslash depends on the settings of the caller's session.
#[test]
fn backslashes_are_only_in_literals_that_say_how_they_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let sql = std::fs::read_to_string(&path).unwrap();
        for line in sql.lines().filter(|line| line.contains('\\')) {
            assert!(in_escape_literals(line), "{}: {line}", path.display());
        }
    }
}

/// Returns whether each backslash of a line is in a literal that begins with E.
fn in_escape_literals(line: &str) -> bool {
    let (mut inside, mut escapes, mut last) = (false, false, ' ');
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' => {
                escapes = !inside && last == 'E';
                inside = !inside;
            }
            '\\' if inside && escapes => drop(characters.next()),
            '\\' => return false,
            _ => {}
        }
        last = character;
    }
    true
}

pub(crate) async fn set(database: &Database, setting: &str) {
    let name = database.url().rsplit_once('/').unwrap().1.to_owned();
    let mut connection = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    let alter = sqlx::AssertSqlSafe(format!("alter database {name} set {setting}"));
    connection.execute(alter).await.unwrap();
}

#[tokio::test]
async fn a_database_that_cannot_hold_every_text_is_refused() {
    for encoding in ["sql_ascii", "latin1"] {
        let database =
            Database::create_as(&format!("template template0 encoding '{encoding}' locale 'C'")).await;
        let refused = PostgresStore::connect(&database.url(), PostgresOptions::default()).await.map(drop);
        assert!(matches!(refused, Err(StoreError::Schema(SchemaError::Encoding { .. }))), "{refused:?}");
    }
}

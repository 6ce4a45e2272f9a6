//! Public SQL functions, called by other programs and languages.

use std::process::Output;
use std::sync::Arc;

use milepost::bulk::{BulkFilter, Definition, Statements};
use milepost::{Outcome, RetryPolicy};
use milepost_conformance::runtime;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::{BulkStore, IntakeStore};
use milepost_core::schedule::Source;
use milepost_core::state::JobState;
use milepost_testkit::database::Database;
use milepost_testkit::scene::LONG;
use milepost_testkit::{Scene, server, wait};
use tokio::process::Command;

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sql/client.py");

/// Runs one statement in psql.
async fn psql(database: &Database, statement: &str) -> Output {
    Command::new(server::programs().join("psql"))
        .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--field-separator= "])
        .args(["--set=ON_ERROR_STOP=1", "--set=VERBOSITY=verbose", "--command", statement, &database.url()])
        .output()
        .await
        .expect("cannot run psql")
}

async fn answer(database: &Database, statement: &str) -> String {
    let output = psql(database, statement).await;
    assert!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

async fn assert_refused(database: &Database, state: &str, statement: &str) {
    let output = psql(database, statement).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{statement} was not refused");
    assert!(error.contains(&format!("ERROR:  {state}: ")), "{statement}: not {state}: {error}");
}

fn id(text: &str) -> JobId {
    text.parse().unwrap_or_else(|_| panic!("not an id: {text}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_enqueues_with_rules_for_duplicates() {
    let (database, _store, scene) = Database::with_scene().await;
    let enqueue = |payload: &str, rest: &str| {
        format!(
            "select outcome || ' ' || job_id from milepost.enqueue_by_key('test', {payload}, key => 'k', {rest})"
        )
    };
    let first =
        answer(&database, &enqueue("'{\"n\": 1}'", "on_duplicate => '{\"action\": \"replace\"}'")).await;
    let job = first.strip_prefix("created ").expect("created");
    for (payload, rule, outcome) in [
        ("'{\"n\": 2}'", r#"{"action": "replace"}"#, "replaced"),
        (
            "'{\"n\": 3}'::jsonb",
            r#"{"action": "debounce", "delay_ms": 60000, "max_delay_ms": 60000}"#,
            "moved",
        ),
        ("'{\"n\": 4}'::json", r#"{"action": "throttle", "period_ms": 60000}"#, "dropped"),
        ("'{\"n\": 5}'::text", r#"{"action": "keep"}"#, "kept"),
    ] {
        let made = answer(&database, &enqueue(payload, &format!("on_duplicate => '{rule}'"))).await;
        assert_eq!(made, format!("{outcome} {job}"));
    }
    assert_eq!(
        answer(&database, &format!("select payload from milepost.job where id = '{job}'")).await,
        r#"{"n": 3}"#
    );
    let many = "select string_agg(outcome, ' ') from milepost.enqueue_many_by_key(array['test', 'test', 'test'], array['1', '2', '3']::jsonb[],
                array['{\"action\": \"replace\"}', null, '{\"action\": \"replace\"}']::jsonb[], keys => array['k', null, 'new'])";
    assert_eq!(answer(&database, many).await, "replaced created created");
    // Calls without a rule by position, as before.
    let plain =
        answer(&database, "select duplicate from milepost.enqueue('test', '{}', 'k', 'default')").await;
    assert_eq!(plain, "t");
    for (state, rule) in [
        ("MP001", r#"{"action": "merge"}"#),
        ("MP001", r#""replace""#),
        ("MP001", r#"{"action": "replace", "delay": 1}"#),
        ("MP001", r#"{"action": "throttle", "period_ms": 0}"#),
        ("MP001", r#"{"action": "throttle", "period_ms": 1.5}"#),
        ("MP001", r#"{"action": "throttle", "period_ms": "1"}"#),
        ("MP001", r#"{"action": "debounce", "delay_ms": 2, "max_delay_ms": 1}"#),
        ("MP001", r#"{"action": "keep", "unique": "always"}"#),
        ("MP001", r#"{"action": null}"#),
    ] {
        assert_refused(&database, state, &enqueue("'{}'", &format!("on_duplicate => '{rule}'"))).await;
    }
    assert_eq!(scene.claim(10).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_enqueues_and_cancels() {
    let (database, store, scene) = Database::with_scene().await;
    let worker = runtime::start(Arc::new(store), |_| async { Ok(Outcome::Done) }).await;
    let made = answer(&database, "select * from milepost.enqueue('runtime', '{\"n\": 1}', key => 'k')").await;
    let (job, duplicate) = made.split_once(' ').unwrap();
    assert_eq!(duplicate, "f");
    let again = answer(&database, "select * from milepost.enqueue('runtime', key => 'k')").await;
    assert_eq!(again, format!("{job} t"));
    let many =
        "select job_id from milepost.enqueue_many(array['runtime', 'runtime'], array['1', '2']::jsonb[])";
    let many = answer(&database, many).await;
    let jobs: Vec<JobId> = many.lines().chain([job]).map(id).collect();
    assert_eq!(jobs.len(), 3);
    scene.assert_all_succeed(&jobs).await;

    let unserved = answer(&database, "select job_id from milepost.enqueue('nobody''s')").await;
    assert_eq!(answer(&database, &format!("select milepost.cancel('{unserved}')")).await, "canceled");
    assert_eq!(scene.state(id(&unserved)).await, JobState::Canceled);
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_asks_a_running_job_to_stop() {
    let (database, store, scene) = Database::with_scene().await;
    // This worker's heartbeats are too rare to report the request.
    let worker = runtime::builder(Arc::new(store))
        .options(|options| options.lease = LONG)
        .handle_kind(runtime::KIND, RetryPolicy::default(), |context| async move {
            context.cancellation().cancelled().await;
            Ok(Outcome::Stopped)
        })
        .start()
        .await
        .unwrap();
    let job = answer(&database, "select job_id from milepost.enqueue('runtime')").await;
    scene.until(id(&job), JobState::Running).await;
    let asked = answer(&database, &format!("select milepost.cancel('{job}', 'enough', 3600000)")).await;
    assert_eq!(asked, "stop_requested");
    // Long before the next heartbeat and before the end of the grace period.
    scene.until(id(&job), JobState::Canceled).await;
    wait::until("the handler has stopped", || async { worker.stats().stopped == 1 }).await;
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_their_own_sqlstates() {
    let (database, _, _) = Database::with_scene().await;
    let done = answer(&database, "select job_id from milepost.enqueue('runtime')").await;
    answer(&database, &format!("select milepost.change('{done}', 'mark')")).await;
    let cases = [
        ("MP001", "select milepost.enqueue(null)".to_owned()),
        ("MP001", "select milepost.enqueue(repeat('k', 201))".to_owned()),
        ("MP001", "select milepost.enqueue('runtime', max_attempts => 0)".to_owned()),
        ("MP001", "select milepost.enqueue('runtime', to_jsonb(repeat('x', 1100000)))".to_owned()),
        ("MP001", "select milepost.enqueue_many(array['a'], array['1', '2']::jsonb[])".to_owned()),
        ("MP001", "select milepost.enqueue('runtime', run_at => 'infinity')".to_owned()),
        ("MP001", "select milepost.enqueue('runtime', run_at => '20000-01-01')".to_owned()),
        ("MP001", "select milepost.enqueue('runtime', timeout_ms => 0)".to_owned()),
        ("MP001", r"select milepost.enqueue(E'run\ttime')".to_owned()),
        ("MP001", r"select milepost.enqueue(E'run\u202Etime')".to_owned()),
        (
            "MP001",
            "select milepost.enqueue_many(array['a'], array['1']::jsonb[], delays_ms => array[-1])"
                .to_owned(),
        ),
        ("MP001", format!("select milepost.change('{done}', 'rerun', delay_ms => -1)")),
        ("MP002", "select milepost.cancel(gen_random_uuid())".to_owned()),
        ("MP003", format!("select milepost.cancel('{done}')")),
        ("MP003", format!("select milepost.change('{done}', 'claim')")),
        ("22P02", "select milepost.enqueue('runtime', '{')".to_owned()),
        ("22P05", r#"select milepost.enqueue('runtime', '"\u0000"')"#.to_owned()),
    ];
    for (state, statement) in cases {
        assert_refused(&database, state, &statement).await;
    }
    assert_eq!(answer(&database, "select count(*) from milepost.job").await, "1", "nothing was stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_checked_for_the_same_characters_in_sql_and_in_rust() {
    let database = Database::migrated().await;
    let of_rust = |is_refused: fn(char) -> bool| {
        let known = ('\u{1}'..=char::MAX).filter(|&c| is_refused(c)).map(|c| u32::from(c).to_string());
        known.collect::<Vec<_>>().join(" ")
    };
    for (function, known) in [
        ("has_control", of_rust(char::is_control)),
        ("is_deceptive", of_rust(milepost_core::text::is_deceptive)),
    ] {
        let refused = format!(
            "select string_agg(c::text, ' ' order by c) from generate_series(1, 1114111) c
             where c not between 55296 and 57343 and milepost.{function}('a' || chr(c) || 'b')"
        );
        assert_eq!(answer(&database, &refused).await, known, "{function}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_null_is_what_it_is_by_default() {
    let (database, _, scene) = Database::with_scene().await;
    let made = answer(
        &database,
        "select job_id from milepost.enqueue_many(array['test', 'test'], array[null, '1']::jsonb[], ids => array[null, null]::uuid[])",
    )
    .await;
    assert_eq!(made.lines().count(), 2);
    answer(
        &database,
        "select milepost.enqueue('test', null, null, null, null, null, null, null, null, null)",
    )
    .await;
    let claimed = scene.claim(10).await;
    assert_eq!(claimed.len(), 3);
    let job = claimed[0].run.job;
    assert_eq!(
        answer(&database, &format!("select milepost.change('{job}', 'abort', null, null, null)")).await,
        "aborted"
    );
    assert_eq!(
        answer(&database, &format!("select milepost.change('{job}', 'resume', null, null, null)")).await,
        "pending"
    );
    assert_eq!(scene.claim(1).await[0].run.job, job, "the job can be claimed");
    assert_eq!(
        answer(&database, &format!("select milepost.cancel('{job}', null, null)")).await,
        "stop_requested"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_is_measured_as_text() {
    let (database, _, scene) = Database::with_scene().await;
    // Half a megabyte as text, but far more than one megabyte as the server stores it.
    let zeros =
        "select job_id from milepost.enqueue('test', (select jsonb_agg(0) from generate_series(1, 180000)))";
    let job = answer(&database, zeros).await;
    assert_eq!(scene.claim(1).await[0].run.job, id(&job));
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_completes_a_run_once() {
    let (database, _, scene) = Database::with_scene().await;
    let job = scene.running(Scene::job()).await;
    let complete =
        |token: i32| format!("select milepost.complete('{}', {token}, '{{\"sent\": 1}}')", job.run.job);
    assert_eq!(answer(&database, &complete(job.run.token.0 - 1)).await, "f", "fenced");
    assert_eq!(answer(&database, &complete(job.run.token.0)).await, "t");
    assert_eq!(answer(&database, &complete(job.run.token.0)).await, "f", "the job has already ended");
    assert_eq!(scene.view(job.run.job).await.result.unwrap().get(), "{\"sent\": 1}");
    scene.assert_history_folds(job.run.job).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_in_another_language_enqueues_and_cancels() {
    let python = std::env::var("MILEPOST_TEST_PYTHON")
        .expect("MILEPOST_TEST_PYTHON is not set; run `scripts/test`, or `scripts/services run cargo test`");
    let (database, store, scene) = Database::with_scene().await;
    let worker = runtime::start(Arc::new(store), |_| async { Ok(Outcome::Done) }).await;
    let output =
        Command::new(python).arg(CLIENT).arg(database.url()).output().await.expect("cannot run Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let jobs: Vec<JobId> = String::from_utf8(output.stdout).unwrap().lines().map(id).collect();
    assert_eq!(jobs.len(), 3);
    scene.assert_all_succeed(&jobs).await;
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_starts_bulk_jobs_as_they_are_defined() {
    let (database, store, scene) = Database::with_scene().await;
    let start = "select * from milepost.start_bulk('notify', '{\"place\": \"Bern\"}', key => 'Bern')";
    assert_refused(&database, "MP007", start).await;
    let definition = Definition { group: "mails".to_owned(), max_attempts: 7, ..Definition::new("notify") };
    store.put_bulk(&definition, Source::Operator).await.unwrap();
    let first = answer(&database, start).await;
    let (job, duplicate) = first.split_once(' ').unwrap();
    assert_eq!(duplicate, "f");
    assert_eq!(answer(&database, start).await, format!("{job} t"), "the key is taken");
    let second = answer(&database, "select job_id from milepost.start_bulk('notify', priority => 1)").await;
    let bulks = store.bulks(&BulkFilter::default()).await.unwrap();
    let listed: Vec<_> = bulks.iter().map(|run| (run.id, run.state, run.priority, run.next)).collect();
    let expected = [(id(job), JobState::Pending, 2, None), (id(&second), JobState::Blocked, 1, Some(1))];
    assert_eq!(listed, expected, "one run of the group at a time");
    let row = scene.view(id(job)).await.row;
    assert_eq!((row.queue.as_str(), row.group.as_deref(), row.max_attempts), ("bulk", Some("mails"), 7));
    let payload = answer(&database, &format!("select payload from milepost.job where id = '{job}'")).await;
    assert_eq!(payload, "{\"place\": \"Bern\"}");
    let invalid = "select * from milepost.start_bulk('notify', priority => 9)";
    assert_refused(&database, "MP001", invalid).await;
    let parameters = [("place".to_owned(), None)].into();
    let statements = Some(Statements { parameters, ..Statements::default() });
    store.put_bulk(&Definition { statements, ..definition }, Source::Operator).await.unwrap();
    for payload in ["{}", "[\"place\"]", "7"] {
        let lacking = format!("select * from milepost.start_bulk('notify', '{payload}')");
        assert_refused(&database, "MP001", &lacking).await;
    }
    answer(&database, "select job_id from milepost.start_bulk('notify', '{\"place\": null}')").await;
    store.put_bulk(&milepost_testkit::notes::letter_definition(10), Source::Operator).await.unwrap();
    let kept = store.bulk_definition("letter").await.unwrap().unwrap();
    assert_eq!(kept.columns, milepost_testkit::notes::letter_definition(10).columns);
    assert_refused(&database, "MP008", "select * from milepost.start_bulk('letter')").await;
    // Nor does it run as a job with the options of a run: it would have no file.
    let options = kept.direct(NewJob::new("letter", &()).unwrap());
    assert!(matches!(store.enqueue(&options).await, Err(StoreError::Invalid { .. })));
}

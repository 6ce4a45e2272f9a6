//! Stores behind a transaction pooler: no LISTEN, no session settings, no permanent prepared statements, and fewer server connections than clients.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use milepost::bulk::{Bulk, BulkFilter, Definition, InvalidBulk};
use milepost::{Context, JobError, Outcome, RetryPolicy, Worker};
use milepost_core::error::StoreError;
use milepost_core::finish::End;
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::{BulkStore, BulkWork, MaintenanceStore, Operation, WorkerStore};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::Report;
use milepost_postgres::bulk::{Effect, SqlBulk};
use milepost_postgres::{PostgresOptions, PostgresStore, WakeMode, pooled};
use milepost_testkit::database::Database;
use milepost_testkit::{Scene, effect, scene, wait};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection};

const KIND: &str = "polled";
const CLIENTS: usize = 4;

/// Number of server connections for each database, as `scripts/services` configures the pooler.
const SERVER_CONNECTIONS: usize = 3;

async fn store(database: &Database) -> PostgresStore {
    let url = format!("{}?pooler=transaction", database.pooled_url());
    let store =
        PostgresStore::connect(&url, PostgresOptions::default()).await.expect("cannot connect to the pooler");
    store.migrate().await.expect("cannot migrate through the pooler");
    store
}

/// Returns the caller's connections through the pooler, with the defaults of the driver.
async fn pool(database: &Database) -> PgPool {
    let url: PgConnectOptions = database.pooled_url().parse().unwrap();
    PgPoolOptions::new().connect_with(url.extra_float_digits(None)).await.unwrap()
}

/// Runs a query on every server connection of the pooler.
async fn ask_all_servers<T>(database: &Database, question: &'static str) -> Vec<T>
where
    T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
{
    let pool = pool(database).await;
    let mut answers = Vec::new();
    // As many concurrent transactions as there are server connections, so that each uses a different one.
    let mut all = join_all((0..SERVER_CONNECTIONS).map(|_| pool.begin())).await;
    for tx in &mut all {
        let tx = tx.as_mut().unwrap();
        answers.push(sqlx::query_scalar(question).persistent(false).fetch_one(&mut **tx).await.unwrap());
    }
    answers
}

/// Fails on purpose for some jobs, and has one effect for each accepted run.
async fn notify(context: Context, pool: PgPool) -> Result<Outcome, JobError> {
    context.progress(1, 2, None);
    if context.attempt() == 1 && context.run().job.0.as_u128().is_multiple_of(10) {
        return Err(JobError::retryable("test", "failed on purpose"));
    }
    let mut tx = pool.begin().await?;
    sqlx::query("insert into test_effect (job_id, token, place) values ($1, $2, '')")
        .bind(context.run().job.0)
        .bind(context.run().token.0)
        .persistent(false)
        .execute(&mut *tx)
        .await?;
    pooled::complete(&mut tx, context.run(), None).await?;
    tx.commit().await?;
    Ok(Outcome::Completed)
}

async fn worker(database: &Database) -> Worker {
    let pool = pool(database).await;
    let again_soon = RetryPolicy::fixed(Duration::from_millis(10));
    Worker::builder(Arc::new(store(database).await))
        .handle_kind(KIND, again_soon, move |context| notify(context, pool.clone()))
        .options(|options| {
            options.poll_interval = Duration::from_millis(20);
            // Several heartbeats are due while the jobs run.
            options.lease = Duration::from_secs(20);
        })
        .start()
        .await
        .unwrap()
}

/// Enqueues through the store and in a caller's transaction, with and without groups and keys.
async fn enqueue(database: &Database, client: usize) -> Vec<JobId> {
    let (store, pool) = (store(database).await, pool(database).await);
    let scene = Scene::on(Arc::new(store)).await;
    let job = |number: usize| {
        let job = NewJob::new(KIND, &number).unwrap().key(format!("{client}-{number}"));
        if number.is_multiple_of(10) { job.group(format!("g{}", number % 3)) } else { job }
    };
    let mut jobs = Vec::new();
    for number in 0..40 {
        jobs.push(scene.enqueue(job(number)).await);
        let again = scene.try_enqueue(job(number)).await.unwrap();
        assert!(again.duplicate && again.job == jobs[jobs.len() - 1]);
    }
    for ten in (40..200).step_by(10) {
        let mut tx = pool.begin().await.unwrap();
        jobs.push(pooled::enqueue(&mut tx, &job(ten)).await.unwrap().job);
        let rest: Vec<NewJob> = (ten + 1..ten + 10).map(job).collect();
        jobs.extend(pooled::enqueue_many(&mut tx, &rest).await.unwrap().iter().map(|enqueued| enqueued.job));
        tx.commit().await.unwrap();
    }
    jobs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_workers_drain_what_many_clients_enqueue_each_job_once() {
    let database = Database::create().await;
    let (direct, scene) = {
        let direct = milepost_testkit::database::open(&database.url()).await;
        (direct.clone(), Scene::on(Arc::new(direct)).await)
    };
    effect::prepare(direct.pool()).await;
    let workers = join_all((0..CLIENTS).map(|_| worker(&database))).await;
    let jobs = join_all((0..CLIENTS).map(|client| enqueue(&database, client))).await.concat();
    assert_eq!(jobs.iter().collect::<HashSet<_>>().len(), CLIENTS * 200);

    scene.assert_all_succeed(&jobs).await;
    effect::assert_once_each(direct.pool(), &jobs).await;
    for worker in workers {
        worker.shutdown().await;
    }
    assert_eq!(
        ask_all_servers::<i64>(&database, "select count(*) from pg_prepared_statements").await,
        [0; SERVER_CONNECTIONS],
        "no named prepared statement is left"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_runs_with_pinned_plans_and_leaves_no_setting_behind() {
    let database = Database::create().await;
    let store = store(&database).await;
    let refuse_unpinned = "
        create function unpinned() returns trigger language plpgsql as $$
        begin
            if current_setting('plan_cache_mode') <> 'force_generic_plan' or current_setting('jit') <> 'off' then
                raise exception '% of % runs without pinned plans', tg_op, tg_table_name;
            end if;
            return null;
        end $$;
        do $$ declare t text; begin
            for t in select relname from pg_class
                     where relnamespace = 'milepost'::regnamespace and relkind = 'r' loop
                execute format('create trigger unpinned after insert or update or delete on milepost.%I
                                execute function unpinned()', t);
            end loop;
        end $$;";
    store.pool().execute(refuse_unpinned).await.unwrap();
    let refused = store.pool().execute("insert into milepost.queue (name) values ('unpinned')").await;
    assert!(refused.is_err_and(|error| error.to_string().contains("without pinned plans")));

    let scene = Scene::on(Arc::new(store.clone())).await;
    store.heartbeat(scene.worker).await.unwrap();
    scene.store.pause_queue("default", true).await.unwrap();
    scene.store.pause_queue("default", false).await.unwrap();
    let ends = [
        End::Succeed { result: None },
        scene::retry(Duration::ZERO),
        End::Fail { failure: scene::failure() },
        End::Cancel,
    ];
    for end in ends {
        let job = scene.running(Scene::job().group("g").key(format!("{end:?}"))).await;
        let report = Report { run: job.run, progress: None, checkpoint: Some("1".into()) };
        assert_eq!(store.report_many(&[report]).await.unwrap(), [true]);
        scene.finish(&job, end).await;
        if scene.state(job.run.job).await.is_ended() {
            continue;
        }
        scene.operate(job.run.job, Operation::new(Verb::Cancel)).await.unwrap();
    }
    let asked = scene.running(Scene::job()).await.run.job;
    let soon = Operation::new(Verb::Cancel).grace(Duration::from_millis(1));
    scene.operate(asked, soon).await.unwrap();
    wait::until("the overdue job is stopped", || async { store.stop_overdue(10).await.unwrap() == [asked] })
        .await;
    let short_lived = scene::register(&scene.store, Duration::from_millis(1)).await;
    wait::until("the lease has expired", || async { store.heartbeat(short_lived).await.is_err() }).await;
    store.rescue_expired(10, &|_, _, _| Duration::ZERO).await.unwrap();
    store.fill_groups().await.unwrap();
    store.retire_worker(scene.worker).await.unwrap();

    let left = ask_all_servers::<String>(&database, "select current_setting('enable_seqscan')").await;
    assert_eq!(left, ["on"; SERVER_CONNECTIONS]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verb_that_is_given_up_holds_no_server_connection() {
    let database = Database::create().await;
    let store = store(&database).await;
    let scene = Scene::on(Arc::new(store.clone())).await;
    let blocker = pool(&database).await;
    // The call is cancelled at different stages: while it waits for a server connection, begins, runs or commits.
    for round in 0..60 {
        let busy = join_all((0..round % 2 * SERVER_CONNECTIONS).map(|_| blocker.begin())).await;
        let patience = Duration::from_micros(100 * round as u64);
        let _ = tokio::time::timeout(patience, store.heartbeat(scene.worker)).await;
        drop(busy);
    }
    let mut direct = PgConnection::connect(&database.url()).await.unwrap();
    let open = "select count(*) from pg_stat_activity \
                where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null";
    let mut open = async || sqlx::query_scalar::<_, i64>(open).fetch_one(&mut direct).await.unwrap();
    let began = Instant::now();
    while open().await > 0 {
        assert!(began.elapsed() < wait::LIMIT, "open transactions are left");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store.heartbeat(scene.worker).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_database_costs_no_connection() {
    let database = Database::create().await;
    let store = store(&database).await;
    let scene = Scene::on(Arc::new(store.clone())).await;
    let nowhere = JobId(uuid::Uuid::now_v7());
    let pids = "select coalesce(array_agg(pid), '{}') from pg_stat_activity \
                where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'";
    let mut direct = PgConnection::connect(&database.url()).await.unwrap();
    scene.operate(nowhere, Operation::new(Verb::Cancel)).await.unwrap_err();
    let before: Vec<i32> = sqlx::query_scalar(pids).fetch_one(&mut direct).await.unwrap();
    for _ in 0..20 {
        let refused = scene.operate(nowhere, Operation::new(Verb::Cancel)).await;
        assert!(matches!(refused, Err(milepost_core::error::StoreError::NoSuchJob(job)) if job == nowhere));
    }
    let after: Vec<i32> = sqlx::query_scalar(pids).fetch_one(&mut direct).await.unwrap();
    assert!(
        !before.is_empty() && before.iter().all(|pid| after.contains(pid)),
        "{before:?} became {after:?}"
    );
}

/// Returns a bulk job that adds a note for each member.
fn notes(store: &PostgresStore) -> SqlBulk {
    let source = "select id from public.member where id > :cursor order by id limit :limit";
    let apply = "insert into public.note (member) select id from chunk".to_owned();
    let definition = Definition::new("notes");
    SqlBulk::new(store, &definition, source, &["id".to_owned()], Effect::Sql(apply)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_jobs_run_past_the_pooler_or_say_that_they_cannot() {
    let database = Database::create().await;
    let through = store(&database).await;
    let lay = "create table public.member (id bigint primary key); create table public.note (member bigint);
               insert into public.member select generate_series(1, 5000)";
    through.pool().execute(lay).await.unwrap();
    let refused = notes(&through).check().await.unwrap_err();
    assert!(matches!(refused, StoreError::Bulk(InvalidBulk::NoDirect)), "{refused}");

    let direct = Some(database.url());
    let options = PostgresOptions { wake: WakeMode::Poll, direct, ..PostgresOptions::default() };
    assert!(
        !format!("{options:?}").contains("postgres://"),
        "the output must not contain the URL, which may hold a password"
    );
    let past = PostgresStore::connect(&database.pooled_url(), options).await.unwrap();
    let bulk = Bulk::new(Definition::new("notes"), Arc::new(notes(&past)));
    bulk.check().await.unwrap();
    let job = NewJob::new("notes", &serde_json::json!({})).unwrap();
    let job = past.start_bulk(&bulk.definition().direct(job)).await.unwrap().job;
    Worker::builder(Arc::new(past.clone())).bulk(bulk).drain().await.unwrap();
    let run = past.bulks(&BulkFilter { job: Some(job), ..BulkFilter::default() }).await.unwrap().remove(0);
    assert_eq!((run.state, run.counts.done), (JobState::Succeeded, 5000), "{run:#?}");
    let noted = "select count(distinct member) from public.note";
    assert_eq!(ask_all_servers::<i64>(&database, noted).await, [5000; SERVER_CONNECTIONS]);
    let prepared = "select count(*) from pg_prepared_statements";
    assert_eq!(ask_all_servers::<i64>(&database, prepared).await, [0; SERVER_CONNECTIONS]);
}

//! Tests that unfinished bulk jobs continue after their cursors, once the tables that they read were moved as well.

use std::sync::Arc;
use std::time::Duration;

use milepost::Worker;
use milepost::bulk::{Bulk, BulkFilter, ColumnType, Columns, Dialect, Staging};
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::run::{Chunked, Order};
use milepost_core::bulk::settings::Settings;
use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::{AdminStore, BulkRun, BulkStore, BulkWork, MaintenanceStore, Store};
use milepost_core::schedule::Source;
use milepost_core::transition::Verb;
use milepost_postgres::{PostgresStore, bulk as of_postgres};
use milepost_sqlite::{SqliteStore, bulk as of_sqlite};
use milepost_testkit::Scene;
use milepost_testkit::scene::LONG;
use serde_json::{Value, json};
use sqlx::Executor;

use crate::relocation::Move;
use crate::support::block_on;

/// How a bulk job iterates over the members.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    key: &'static [&'static str],
    /// Empty if the targets come from a file.
    source: &'static str,
}

const BY_ID: &str = "select id from member where id > :cursor order by id limit :limit";
const WAYS: [Way; 6] = [
    Way { name: "by_id", key: &["id"], source: BY_ID },
    Way {
        name: "by_place",
        key: &["place", "id"],
        source: "select place, id from member where (place, id) > :cursor order by place, id limit :limit",
    },
    Way {
        name: "by_digest",
        key: &["digest"],
        source: "select digest, id from member where digest > :cursor order by digest limit :limit",
    },
    Way {
        name: "by_code",
        key: &["code"],
        source: "select code, id from member where code > :cursor order by code limit :limit",
    },
    Way { name: "of_file", key: &["n"], source: "" },
    Way { name: "with_bad_ones", key: &["id"], source: BY_ID },
];
const APPLY: &str = "insert into note (run, member) select :bulk_id, id from chunk";
const MEMBERS: i64 = 200;

/// The number of bad members: every tenth.
const BAD: i64 = MEMBERS / 10;

impl Way {
    fn definition(self) -> Definition {
        let columns = self.source.is_empty().then(|| Columns::new([("id", ColumnType::Integer)]).unwrap());
        Definition { fingerprint: "1".to_owned(), failures_max: 100, columns, ..Definition::new(self.name) }
    }

    fn source(self, dialect: Dialect) -> String {
        self.definition().columns.map_or_else(|| self.source.to_owned(), |columns| columns.source(dialect))
    }

    fn key(self) -> Vec<String> {
        self.key.iter().map(|&column| column.to_owned()).collect()
    }

    fn on_sqlite(self, store: &SqliteStore) -> of_sqlite::SqlBulk {
        let effect = of_sqlite::Effect::Sql(APPLY.to_owned());
        let source = self.source(Dialect::Sqlite);
        of_sqlite::SqlBulk::new(store, &self.definition(), &source, &self.key(), effect).unwrap()
    }

    fn on_postgres(self, store: &PostgresStore) -> Bulk {
        let effect = of_postgres::Effect::Sql(APPLY.to_owned());
        let source = self.source(Dialect::Postgres);
        let work =
            of_postgres::SqlBulk::new(store, &self.definition(), &source, &self.key(), effect).unwrap();
        Bulk::new(self.definition(), Arc::new(work))
    }
}

/// Returns a member's place, whose order depends on whether bytes or letters are compared, and its digest.
fn place_and_digest(id: i64) -> (&'static str, [u8; 4]) {
    let places = ["Zoë", "berlin", "Ärger", "Bern", "10", "9"];
    let digest = (id.unsigned_abs() as u32).wrapping_mul(2_654_435_761);
    (places[usize::try_from(id).unwrap() % places.len()], digest.to_be_bytes())
}

/// Returns a blob of 16 bytes, which is a uuid on PostgreSQL.
fn code([a, b, c, d]: [u8; 4]) -> [u8; 16] {
    [a, b, c, d, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, a]
}

/// Claims a job of a kind.
async fn claimed(scene: &Scene, kind: &str) -> ClaimedJob {
    let claim = Claim {
        worker: scene.worker,
        claim_id: 1,
        queues: vec!["bulk".to_owned()],
        kinds: vec![kind.to_owned()],
        limit: 1,
        thorough: true,
    };
    scene.store.claim(&claim).await.unwrap().remove(0)
}

/// Starts a run of this kind on the scene's worker.
async fn taken(sqlite: &SqliteStore, scene: &Scene, way: Way) -> Box<dyn BulkRun> {
    let job = claimed(scene, way.name).await;
    let order = Order { run: job.run, payload: job.payload, nominal_at: None };
    let (position, mut run) = way.on_sqlite(sqlite).take(&order).await.unwrap();
    if !position.surveyed {
        run.survey().await.unwrap();
    }
    run
}

async fn start(store: &SqliteStore, way: Way) -> JobId {
    store.put_bulk(&way.definition(), Source::Operator).await.unwrap();
    let job = NewJob::new(way.name, &json!({})).unwrap();
    if way.source.is_empty() {
        let mut staging = Staging::begin(store, &way.definition(), "members.csv").await.unwrap();
        for id in 1..=MEMBERS {
            staging.add(&json!({ "id": id })).await.unwrap();
        }
        return staging.start(job).await.unwrap().job;
    }
    store.start_bulk(&way.definition().direct(job)).await.unwrap().job
}

fn lay_tables(store: &rusqlite::Connection) {
    store
        .execute_batch(
            "CREATE TABLE member (id INTEGER PRIMARY KEY, place TEXT NOT NULL, digest BLOB NOT NULL UNIQUE,
                                  code BLOB NOT NULL UNIQUE);
             CREATE INDEX member_place ON member (place, id);
             CREATE TABLE note (run TEXT NOT NULL, member INTEGER NOT NULL);
             CREATE TABLE bad (member INTEGER PRIMARY KEY);
             CREATE TRIGGER note_bad BEFORE INSERT ON note WHEN EXISTS (SELECT 1 FROM bad WHERE member = NEW.member)
             BEGIN SELECT RAISE(ABORT, 'bad'); END",
        )
        .unwrap();
    for id in 1..=MEMBERS {
        let (place, digest) = place_and_digest(id);
        store
            .execute("INSERT INTO member VALUES (?1, ?2, ?3, ?4)", (id, place, digest, code(digest)))
            .unwrap();
    }
}

/// Creates unfinished runs in the old store: one for each iteration, and a retry of the failures of a finished run. Returns the jobs whose
/// notes must be complete at the end.
pub(crate) async fn leave_half_done(both: &Move) -> Vec<JobId> {
    let (sqlite, connection) = (both.sqlite(), rusqlite::Connection::open(both.old.path("jobs.db")).unwrap());
    connection.busy_timeout(LONG).unwrap();
    lay_tables(&connection);
    let scene = Scene::on(Arc::new(sqlite.clone()) as Arc<dyn Store>).await;
    let mut jobs = Vec::new();
    for way in WAYS {
        let job = start(&sqlite, way).await;
        jobs.push(job);
        if way.name == "with_bad_ones" {
            connection.execute("INSERT INTO bad SELECT id FROM member WHERE id % 10 = 3", ()).unwrap();
            let mut run = taken(&sqlite, &scene, way).await;
            while !matches!(run.chunk(50).await.unwrap(), Chunked::Done(done) if done.exhausted) {}
            run.end(None).await.unwrap();
            connection.execute("DELETE FROM bad", ()).unwrap();
            sqlite.retry_bulk_failures(job).await.unwrap();
            let mut again = taken(&sqlite, &scene, way).await;
            again.chunk(7).await.unwrap();
            continue;
        }
        let mut run = taken(&sqlite, &scene, way).await;
        for _ in 0..3 {
            run.chunk(20).await.unwrap();
        }
        let slowly = Settings { rows_per_s: Some(100_000.0), chunk_rows_min: Some(7), ..Settings::default() };
        sqlite.set_bulk(job, &slowly.into()).await.unwrap();
    }
    jobs
}

/// Returns the listings of definitions, runs and failures, with keys as texts.
pub(crate) async fn listed(store: &dyn Store) -> Vec<Value> {
    let mut listed = Vec::new();
    for way in WAYS {
        let definition = store.bulk_definition(way.name).await.unwrap();
        listed.push(json!({ "definition": format!("{definition:?}") }));
    }
    let mut runs = store.bulks(&BulkFilter::default()).await.unwrap();
    runs.sort_unstable_by_key(|run| run.id);
    for run in runs {
        let failures = store.bulk_failures(run.id, 0, 1000).await.unwrap();
        let failures: Vec<Value> = failures.iter().map(|failure| with_texts(failure, &["key"])).collect();
        listed.push(json!({ "run": with_texts(&run, &["cursor", "upper"]), "failures": failures }));
    }
    listed
}

/// Converts a row to JSON, with keys in PostgreSQL's format.
fn with_texts(row: &impl serde::Serialize, keys: &[&str]) -> Value {
    let mut row = serde_json::to_value(row).unwrap();
    for key in keys {
        for value in row[key].as_array_mut().into_iter().flatten() {
            *value = match (&*value, value["$blob"].as_str()) {
                (_, Some(hex)) => format!("\\x{hex}").into(),
                (Value::String(_) | Value::Null, _) => continue,
                (value, _) => value.to_string().into(),
            };
        }
    }
    row
}

/// Copies the application's tables, as their owner would.
async fn copy_tables(both: &Move, store: &PostgresStore) {
    store
        .pool()
        .execute(
            "create table member (id bigint primary key, place text collate \"C\" not null, digest bytea not null unique,
                                  code uuid not null unique);
             create index on member (place, id);
             create table note (run text not null, member bigint not null)",
        )
        .await
        .unwrap();
    for id in 1..=MEMBERS {
        let (place, digest) = place_and_digest(id);
        let insert = sqlx::query("insert into member values ($1, $2, $3, $4)").bind(id).bind(place);
        let insert = insert.bind(digest.to_vec()).bind(uuid::Uuid::from_bytes(code(digest)));
        insert.execute(store.pool()).await.unwrap();
    }
    let connection = rusqlite::Connection::open(both.old.path("jobs.db")).unwrap();
    let mut notes = connection.prepare("SELECT run, member FROM note").unwrap();
    let notes = notes.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    for (run, member) in notes.map(Result::<(String, i64), _>::unwrap) {
        let insert = sqlx::query("insert into note values ($1, $2)").bind(run).bind(member);
        insert.execute(store.pool()).await.unwrap();
    }
}

#[test]
fn runs_that_are_half_done_go_on_behind_their_cursors() {
    let both = Move::new();
    let jobs = block_on(leave_half_done(&both));
    both.expire_leases();
    let noted = |both: &Move, job: JobId| {
        both.new.tamper(&format!(
            "select count(*) || ' ' || count(distinct member) from note where run = '{job}'"
        ))
    };
    let moved = both.run(&[]).ok();
    assert!(moved.err.contains("unfinished bulk jobs: 6"), "{}", moved.err);
    block_on(async {
        let store = both.postgres().await;
        copy_tables(&both, &store).await;
        assert_eq!(noted(&both, jobs[0]), "60 60");
        assert_eq!(noted(&both, jobs[5]), format!("{0} {0}", MEMBERS - BAD + 7));
        store.rescue_expired(100, &|_, _, _| Duration::ZERO).await.unwrap();
        let worker = Worker::builder(Arc::new(store.clone()) as Arc<dyn Store>);
        let worker = WAYS.iter().fold(worker, |worker, way| worker.bulk(way.on_postgres(&store)));
        worker.drain().await.unwrap();
        let runs = store.bulks(&BulkFilter::default()).await.unwrap();
        assert_eq!(runs.len(), WAYS.len() + 1);
        for run in runs {
            assert_eq!(run.state, milepost_core::state::JobState::Succeeded, "{run:#?}");
        }
        let rescued: Vec<_> =
            store.complete_history(jobs[0]).await.unwrap().iter().map(|entry| entry.verb).collect();
        assert!(rescued.contains(&Verb::Retry), "{rescued:?}");
    });
    for job in jobs {
        assert_eq!(noted(&both, job), format!("{MEMBERS} {MEMBERS}"), "each member once");
    }
    assert_eq!(both.new.run(&["doctor"]).status, 0);
    let above = "insert into milepost.bulk_failure (job_id, key, code, message)
                 select job_id, key, code, message from milepost.bulk_failure limit 1
                 returning pos > (select max(pos) from milepost.bulk_failure)";
    assert_eq!(both.new.tamper(above), "t", "new failures are numbered above the moved ones");
}

//! Fixture for bulk tests with members in another database than the store's.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use milepost::JobId;
use milepost::bulk::{Bulk, Definition, Load, Remote, Sizing};
use milepost_core::port::{BulkRun, BulkWork, Store};
use milepost_postgres::bulk::{Database, Effect};
use milepost_testkit::home::Home;
use milepost_testkit::notes::{self, APPLY};
use milepost_testkit::{database, wait};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor, PgPool};

use crate::bulk::members::{Held, Members};

/// A store, and another database with members.
#[derive(Clone)]
pub(crate) struct Shop {
    /// The store. It has tables of members, too, which must not change.
    pub(crate) members: Members,
    pub(crate) shop: Database,
    pub(crate) pool: PgPool,
    pub(crate) url: String,
    _database: Arc<database::Database>,
}

impl Shop {
    pub(crate) async fn on(home: impl Home + 'static) -> Self {
        let members = Members::on(home).await;
        let database = database::Database::create().await;
        let url = database.url();
        let pool = PgPoolOptions::new().max_connections(4).connect(&url).await.unwrap();
        pool.execute(
            "create table member (id bigint primary key, place text not null, name text not null);
             create table note (run text not null, member bigint not null);
             create index note_member on note (run, member)",
        )
        .await
        .unwrap();
        Self { members, shop: notes::shop(&url), pool, url, _database: Arc::new(database) }
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.pool.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.expect(sql);
    }

    pub(crate) async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&self.pool).await.expect(sql)
    }

    /// Adds members with these ids.
    pub(crate) async fn add(&self, ids: Range<i64>) {
        let (from, to) = (ids.start, ids.end - 1);
        self.run(&format!(
            "insert into member select n, 'x', 'member ' || n from generate_series({from}, {to}) n"
        ))
        .await;
    }

    /// Returns the work that adds a note for every member there, for this store.
    pub(crate) fn work(&self, store: Arc<dyn Store>, definition: &Definition) -> Remote {
        notes::remote(&self.shop, store, definition, Some(Effect::Sql(APPLY.to_owned())))
    }

    pub(crate) fn notify_as(&self, definition: Definition) -> Bulk {
        let work = self.work(self.members.store(), &definition);
        Bulk::new(definition, Arc::new(work))
    }

    pub(crate) fn notify(&self, rows_max: u32) -> Bulk {
        self.notify_as(notes::definition("notify", rows_max))
    }

    /// Claims the only ready run and takes it over, as a worker does.
    pub(crate) async fn take(&self, bulk: &Bulk) -> Held {
        let order = self.members.claim(bulk).await;
        let (_, run) = self.work(self.members.store(), bulk.definition()).take(&order).await.unwrap();
        Held { run: run as Box<dyn BulkRun> }
    }

    /// Returns how many notes a run has added.
    pub(crate) async fn notes(&self, job: JobId) -> i64 {
        self.count(&format!("select count(*) from note where run = '{job}'")).await
    }

    /// Asserts that this number of members have notes of the run, and how many of them have more than one.
    pub(crate) async fn assert_noted(&self, job: JobId, members: i64, twice: i64) {
        let of_run = format!("from note where run = '{job}'");
        assert_eq!(self.count(&format!("select count(distinct member) {of_run}")).await, members, "missed");
        let again =
            format!("select count(*) from (select 1 {of_run} group by member having count(*) > 1) again");
        assert_eq!(self.count(&again).await, twice, "members with more than one note");
        self.members.assert_never_back(job).await;
        assert_eq!(
            self.members.home.count("select count(*) from public.note").await,
            0,
            "notes in the store's database"
        );
    }

    /// Waits until a statement of a run sleeps there.
    pub(crate) async fn until_asleep(&self) {
        let asleep = "select count(*) from pg_stat_activity where datname = current_database()
                      and wait_event = 'PgSleep' and application_name like 'milepost bulk %'";
        wait::until("a chunk sleeps", || async { self.count(asleep).await == 1 }).await;
    }

    /// Makes inserts of notes for members from this id on sleep, for the time that a row specifies.
    pub(crate) async fn doze_from(&self, id: i64) {
        self.run(&format!(
            "create table nap (s int not null); insert into nap values (600);
             create function doze() returns trigger language plpgsql as $$ begin
                 if new.member >= {id} then perform pg_sleep(s) from nap; end if; return new; end $$;
             create trigger doze before insert on note for each row execute function doze()"
        ))
        .await;
    }
}

/// Returns a definition with this rate in rows per second, in small chunks.
pub(crate) fn paced(name: &str, rows: u32, rows_per_s: f64) -> Definition {
    Definition {
        sizing: Sizing { rows_min: rows, rows_max: rows, target: Duration::from_millis(50) },
        load: Load { rows_per_s: Some(rows_per_s), duty: 1.0 },
        ..notes::definition(name, rows)
    }
}

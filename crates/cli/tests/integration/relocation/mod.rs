//! Tests of `milepost move`: everything is moved unchanged and once, even if processes are killed.

#![cfg(unix)]

mod batches;
mod bulk;
mod carried;
mod inbox;
mod killed;
mod refused;
mod relay;
mod stock;

use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::Arc;

use milepost_core::event::listing::EventFilter;
use milepost_core::port::Store;
use milepost_core::search::JobFilter;
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};

use crate::support::{Place, Ran, block_on, until, until_true};

/// An old store in a folder, and an empty database.
pub(crate) struct Move {
    pub(crate) old: Place,
    pub(crate) new: Place,
}

impl Move {
    pub(crate) fn new() -> Self {
        let both = Self { old: Place::sqlite(), new: Place::empty_postgres() };
        both.old.run(&["migrate"]).ok();
        both
    }

    /// Creates a move whose old store has all kinds of content and only dead workers; also returns its listings.
    pub(crate) fn filled() -> (Self, Value) {
        let both = Self::new();
        let old = block_on(async {
            let store: Arc<dyn Store> = Arc::new(both.sqlite());
            // Called first, because it claims all ready jobs.
            batches::leave_half_done(&both).await;
            stock::fill(&store).await;
            inbox::leave_half_done(&both).await;
            relay::leave_half_done(&both).await;
            bulk::leave_half_done(&both).await;
            both.expire_leases();
            listed(store.as_ref()).await
        });
        (both, old)
    }

    pub(crate) fn args<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["move", "--from", &self.old.store, "--to", &self.new.store], more].concat()
    }

    pub(crate) fn run(&self, more: &[&str]) -> Ran {
        self.old.run(&self.args(more))
    }

    pub(crate) fn start(&self, more: &[&str]) -> Child {
        self.old.command(&self.args(more)).spawn().unwrap()
    }

    pub(crate) fn sqlite(&self) -> SqliteStore {
        SqliteStore::open(self.old.path("jobs.db"), SqliteOptions::default()).unwrap()
    }

    pub(crate) async fn postgres(&self) -> PostgresStore {
        PostgresStore::connect(&self.new.store, PostgresOptions::default()).await.unwrap()
    }

    /// Returns the number of copied rows; 0 if the table for that number does not exist yet.
    pub(crate) fn arrived(&self) -> u64 {
        let laid = self.new.tamper("select to_regclass('milepost.arrival_part') is not null");
        if laid != "t" {
            return 0;
        }
        self.new.tamper("select coalesce(sum(rows), 0) from milepost.arrival_part").parse().unwrap()
    }

    /// Expires the leases of all workers of the old store.
    pub(crate) fn expire_leases(&self) {
        self.old.tamper(
            "UPDATE milepost.worker SET lease_expires_at_ms = 1 WHERE ended_at_ms IS NULL RETURNING name",
        );
    }

    /// Starts a move and kills it while it creates the tables of the new store.
    pub(crate) fn kill_while_tables_are_created(&self) {
        self.new.sql(
            "create function public.halt() returns event_trigger language plpgsql as $$ begin
                 if (select count(*) from pg_tables where schemaname = 'milepost') >= 5 then perform pg_sleep(3600); end if;
             end $$;
             create event trigger halt on ddl_command_end execute function public.halt()",
        );
        let mut child = self.start(&[]);
        let halted = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
        until_true("some tables are created", || self.new.tamper(halted) == "1");
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9), "it ended before it was killed");
        self.end_backends();
        self.new.sql("drop event trigger halt; drop function public.halt()");
    }

    /// Starts a move and kills it once this many rows were copied.
    pub(crate) fn kill_at(&self, rows: u64) {
        self.halt_at(rows);
        let mut child = self.start(&["--page-rows", "5"]);
        until(&format!("{rows} rows have arrived"), || {
            assert_eq!(child.try_wait().unwrap(), None, "it ended before it was killed at {rows} rows");
            let arrived = self.arrived();
            if arrived >= rows { Ok(()) } else { Err(format!("{arrived} have")) }
        });
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "it ended before it was killed at {rows} rows");
        self.end_backends();
        self.new.sql("drop trigger halt on milepost.arrival_part; drop function public.halt()");
    }

    /// Makes every move halt after this number of rows plus a page.
    fn halt_at(&self, rows: u64) {
        if self.new.tamper("select to_regclass('milepost.arrival_part') is null") == "t" {
            self.new.run(&["migrate"]).ok();
        }
        self.new.sql(&format!(
            "create function public.halt() returns trigger language plpgsql as $$ begin
                 if (select sum(rows) from milepost.arrival_part) >= {rows} then perform pg_sleep(3600); end if;
                 return new;
             end $$;
             create trigger halt before update on milepost.arrival_part for each row execute function public.halt()"
        ));
    }

    /// Terminates the connections of a killed move.
    fn end_backends(&self) {
        let theirs = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'";
        until("the killed move is gone from the database", || match self.new.tamper(theirs) {
            none if none == "0" => Ok(()),
            some => Err(some),
        });
    }
}

/// Returns all listings of a store.
pub(crate) async fn listed(store: &dyn Store) -> Value {
    let mut jobs = Vec::new();
    let mut filter = JobFilter { limit: 500, ..JobFilter::default() };
    loop {
        let page = store.jobs(&filter).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(last.id);
        for row in &page {
            let mut job = serde_json::to_value(store.job(row.id).await.unwrap().unwrap()).unwrap();
            // Depends on the time of the query.
            job.as_object_mut().unwrap().remove("waiting_for");
            jobs.push(
                json!({ "row": row, "job": job, "history": store.complete_history(row.id).await.unwrap() }),
            );
        }
    }
    let mut limits = serde_json::to_value(store.limits().await.unwrap()).unwrap();
    for limit in limits.as_array_mut().unwrap() {
        limit.as_object_mut().unwrap().remove("tokens");
    }
    let mut counts = store.count_by_state().await.unwrap();
    counts.sort_unstable_by_key(|(state, _)| state.as_str());
    let mut queues = serde_json::to_value(store.queues().await.unwrap()).unwrap();
    for queue in queues.as_array_mut().unwrap() {
        let counts = queue["counts"].as_array_mut().unwrap();
        counts.sort_unstable_by_key(|count| count[0].as_str().unwrap().to_owned());
    }
    let stored = store.stored_retention().await.unwrap();
    let retention: Vec<String> = stored.iter().map(|its| format!("{} {}", its.of, its.keep)).collect();
    json!({ "jobs": jobs, "retention": retention, "bulks": bulk::listed(store).await, "batches": batches::listed(store).await, "inbox": inbox::listed(store).await, "relay": relay::listed(store).await, "queues": queues, "counts": counts, "limits": limits,
            "events": store.events(&EventFilter { limit: 100, ..EventFilter::default() }).await.unwrap(),
            "workers": store.workers().await.unwrap(), "schedules": store.schedules().await.unwrap() })
}

/// Asserts that both are equal, and names the first difference.
pub(crate) fn assert_same(old: &Value, new: &Value) {
    for (what, old) in old.as_object().unwrap() {
        let new = &new[what];
        for (at, (old, new)) in old.as_array().unwrap().iter().zip(new.as_array().unwrap()).enumerate() {
            assert_eq!(old, new, "{what} {at}");
        }
        assert_eq!(old.as_array().unwrap().len(), new.as_array().unwrap().len(), "{what}");
    }
}

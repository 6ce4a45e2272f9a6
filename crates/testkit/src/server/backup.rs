//! Backups of servers: copies of the files that are recovered to a moment, and dumps.

use std::fmt::Write;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use super::{Server, command, port, run};
use crate::wait;

impl Server {
    /// Copies this running server to a new folder below this one. The copy does not run.
    pub async fn base_backup(&self, folder: &Path) -> Self {
        let mut backup = Self::in_new_folder(folder);
        backup.environment.clone_from(&self.environment);
        tokio::task::block_in_place(|| self.copy_to(&backup, &[]));
        backup
    }

    /// Copies this running server, with these options in addition.
    pub(super) fn copy_to(&self, copy: &Self, options: &[&str]) {
        let (data, port) = (copy.data(), self.port.to_string());
        let data = data.to_str().expect("the path is not UTF-8");
        let usual = ["-D", data, "-X", "stream", "-c", "fast", "--no-sync"];
        let from = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres"];
        run("pg_basebackup", &[&usual[..], options, &from[..]].concat());
    }

    /// Starts a base backup, recovers it to a restore point with the log of the stopped server from which it was made, and promotes it.
    pub async fn recover(&self, lost: &Self, restore_point: &str) {
        let log = lost.data().join("pg_wal");
        let mut settings = String::new();
        for (name, value) in [
            ("restore_command", format!("cp \"{}/%f\" \"%p\"", log.display())),
            ("recovery_target_name", restore_point.to_owned()),
            ("recovery_target_action", "promote".to_owned()),
            // It has no standby yet.
            ("synchronous_standby_names", String::new()),
        ] {
            writeln!(settings, "{name} = '{value}'").expect("written");
        }
        // The last value of a setting applies.
        let file = self.data().join("postgresql.auto.conf");
        let file = OpenOptions::new().append(true).open(file);
        file.and_then(|mut file| file.write_all(settings.as_bytes())).expect("written");
        std::fs::write(self.data().join("recovery.signal"), "").expect("written");
        self.start().await;
        wait::until("the backup is recovered", || async {
            let Ok(mut connection) = PgConnection::connect(&self.url()).await else { return false };
            let recovers = sqlx::query_scalar("select pg_is_in_recovery()").fetch_one(&mut connection).await;
            recovers.is_ok_and(|recovers: bool| !recovers)
        })
        .await;
        // Otherwise its standbys would wait for the restore point, too.
        let mut connection = PgConnection::connect(&self.url()).await.expect("connected");
        for name in ["restore_command", "recovery_target_name", "recovery_target_action"] {
            let reset = AssertSqlSafe(format!("alter system reset {name}"));
            connection.execute(reset).await.expect("reset");
        }
    }

    /// Starts the stopped server on another port, so that no client that knows its address reaches it.
    pub async fn start_aside(&mut self) {
        self.port = port::free();
        self.start().await;
    }

    /// Dumps the database, and restores the dump in the empty database of another running server.
    pub async fn dump_to(&self, other: &Self) {
        tokio::task::block_in_place(|| {
            let file = other.home.path().join("dump");
            let file = file.to_str().expect("the path is not UTF-8");
            run("pg_dump", &["-F", "custom", "-f", file, "-d", &self.url()]);
            run("pg_restore", &["--exit-on-error", "-d", &other.url(), file]);
        });
    }

    /// Dumps the database to a file outside of its data.
    pub async fn dump(&self) {
        let (file, url) = (self.whole_dump(), self.url());
        tokio::task::block_in_place(|| run("pg_dump", &["-F", "custom", "-f", &file, "-d", &url]));
    }

    /// Restores the dump in the empty database, in one transaction.
    pub async fn restore(&self) {
        let (file, url) = (self.whole_dump(), self.url());
        tokio::task::block_in_place(|| run("pg_restore", &["--single-transaction", "-d", &url, &file]));
    }

    fn whole_dump(&self) -> String {
        self.home.path().join("whole.dump").to_str().expect("the path is not UTF-8").to_owned()
    }

    /// Dumps the data of the store, without its tables.
    pub async fn dump_data(&self) {
        let (file, url) = (self.data_dump(), self.url());
        let dump = ["--data-only", "--schema=milepost", "-f", &file, "-d", &url];
        tokio::task::block_in_place(|| run("pg_dump", &dump));
    }

    /// Replaces the data of the store by that of the dump, in one transaction.
    pub async fn restore_data(&self) {
        let (file, url) = (self.data_dump(), self.url());
        let no_triggers = "set session_replication_role = replica";
        let empty = "do $$ begin execute (
                         select 'truncate ' || string_agg(format('%I.%I', schemaname, tablename), ', ')
                         from pg_tables where schemaname = 'milepost'); end $$";
        let restore =
            ["-q", "-1", "-v", "ON_ERROR_STOP=1", "-c", no_triggers, "-c", empty, "-f", &file, "-d", &url];
        tokio::task::block_in_place(|| run("psql", &restore));
    }

    /// Adds the rows of these tables of the store to those of another store.
    pub async fn copy_rows_to(&self, other: &Self, tables: &[&str]) {
        let (file, from, to) = (self.data_dump(), self.url(), other.url());
        let tables = tables.iter().map(|table| format!("--table=milepost.{table}")).collect::<Vec<_>>();
        let mut dump = vec!["--data-only", "-f", &file, "-d", &from];
        dump.extend(tables.iter().map(String::as_str));
        tokio::task::block_in_place(|| {
            run("pg_dump", &dump);
            run("psql", &["-q", "-v", "ON_ERROR_STOP=1", "-f", &file, "-d", &to]);
        });
    }

    fn data_dump(&self) -> String {
        self.home.path().join("data.sql").to_str().expect("the path is not UTF-8").to_owned()
    }

    /// Returns whether the server runs.
    pub(super) fn is_running(&self) -> bool {
        let status = command("pg_ctl").arg("-D").arg(self.data()).arg("status").status();
        status.is_ok_and(|status| status.success())
    }
}

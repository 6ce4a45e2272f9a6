//! A new store for each test, and the compiled command to run against it.
//!
//! [`on_each_store`] turns a function into two tests: one on a SQLite file, and one on a dedicated PostgreSQL database.

pub(crate) mod filling;
pub(crate) mod http;
pub(crate) mod process;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::claim::Claim;
use milepost_core::finish::{End, Failure, Finish};
use milepost_core::ident::WorkerId;
use milepost_core::port::Store;
use milepost_core::worker::NewWorker;
use milepost_testkit::database::Database;
use milepost_testkit::wait;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a store.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) store: String,
    /// The database of a store on PostgreSQL, which is dropped after the test.
    pub(crate) database: Option<Database>,
}

/// The output and the exit status of a command.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs functions that take a [`Place`] as tests on each kind of store.
macro_rules! on_each_store {
    ($($test:ident,)+) => {
        mod on_sqlite {
            $(#[test] fn $test() { super::$test(crate::support::Place::sqlite()); })+
        }
        mod on_postgres {
            $(#[test] fn $test() { super::$test(crate::support::Place::postgres()); })+
        }
    };
}
pub(crate) use on_each_store;

impl Place {
    /// Creates a folder for a SQLite store.
    pub(crate) fn sqlite() -> Self {
        Self::without_store()
    }

    /// Creates a folder and a database with a migrated store.
    pub(crate) fn postgres() -> Self {
        Self::on(block_on(Database::migrated()))
    }

    /// Creates a folder and an empty database.
    pub(crate) fn empty_postgres() -> Self {
        Self::on(block_on(Database::create()))
    }

    fn on(database: Database) -> Self {
        Self { store: database.url(), database: Some(database), ..Self::without_store() }
    }

    /// Returns a place of the same kind whose store has no tables.
    pub(crate) fn emptied(self) -> Self {
        if self.database.is_some() { Self::empty_postgres() } else { self }
    }

    /// Creates a folder for tests that open no store.
    pub(crate) fn without_store() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("jobs.db").display());
        Self { folder, store, database: None }
    }

    /// Runs the command in the folder, with its store.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_with_input(args, "")
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self.command(args).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ran::from(child.wait_with_output().unwrap())
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_milepost"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("MILEPOST_STORE", &self.store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns the ids of all jobs, newest first.
    pub(crate) fn ids(&self) -> Vec<String> {
        let jobs = self.run(&["jobs", "list", "--limit", "10000", "--json"]).json();
        let ids = jobs.as_array().unwrap().iter();
        ids.map(|job| job["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Enqueues a job and returns its id.
    pub(crate) fn enqueue(&self, args: &[&str]) -> String {
        let answer = self.run(&[&["enqueue", "mail", "--json"], args].concat()).json();
        answer["job"].as_str().unwrap().to_owned()
    }

    /// Enqueues `count` jobs and returns their ids.
    pub(crate) fn enqueue_many(&self, count: usize) -> Vec<String> {
        self.write("many.jsonl", "1\n".repeat(count));
        self.run(&["enqueue", "mail", "--from", "many.jsonl"]).ok();
        self.ids()
    }

    /// Runs the command with a closed output pipe.
    pub(crate) fn run_unheard(&self, args: &[&str]) -> Ran {
        let mut child = self.command(args).spawn().unwrap();
        drop(child.stdout.take());
        Ran::from(child.wait_with_output().unwrap())
    }

    /// Returns the job as `jobs show --json` prints it.
    pub(crate) fn job(&self, id: &str) -> Value {
        self.run(&["jobs", "show", id, "--json"]).json()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Claims a job of kind mail as a worker and ends its run; `None` leaves it running.
    pub(crate) fn work(&self, end: Option<End>) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let store = self.open().await;
            let (worker, claim) = claim(store.as_ref()).await;
            let jobs = store.claim(&claim).await.unwrap();
            assert_eq!(jobs.len(), 1, "no job to claim");
            if let Some(end) = end {
                let run = jobs[0].run;
                let finish = Finish { run, end, grouped: false, task: false };
                store.finish_many(worker, &[finish]).await.unwrap();
            }
        });
    }

    /// Copies the files of `examples/settlement`.
    pub(crate) fn copy_settlement(&self) {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/settlement");
        for file in std::fs::read_dir(&example).unwrap() {
            let (path, name) = file.map(|file| (file.path(), file.file_name())).unwrap();
            let name = name.to_string_lossy();
            if path.is_file() && !name.contains(".db") {
                std::fs::copy(&path, self.path(&name)).unwrap();
            }
        }
    }

    /// Runs SQL in the place's PostgreSQL database.
    pub(crate) fn sql(&self, sql: &str) {
        psql(&self.store, sql);
    }

    /// Runs a statement directly on the tables (`milepost.job`, …), and returns the first text of the first row.
    pub(crate) fn tamper(&self, sql: &str) -> String {
        let Some(path) = self.store.strip_prefix("sqlite:") else {
            return psql(&self.store, sql);
        };
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.busy_timeout(wait::LIMIT).unwrap();
        // In SQLite, the schema name is a prefix of the table name.
        let mut statement = connection.prepare(&sql.replace("milepost.", "milepost_")).unwrap();
        let mut rows = statement.query(()).unwrap();
        rows.next().unwrap().map(|row| row.get(0).unwrap()).unwrap_or_default()
    }

    /// Expires the leases of all workers with this name.
    pub(crate) fn expire_leases(&self, name: &str) {
        let (set, open) = if self.store.starts_with("sqlite:") {
            ("lease_expires_at_ms = 1", "ended_at_ms")
        } else {
            ("lease_expires_at = 'epoch'", "ended_at")
        };
        let expire = format!("set {set} where name = '{name}' and {open} is null returning name");
        let expired = self.tamper(&format!("update milepost.worker {expire}"));
        assert!(expired.starts_with(name), "there is no worker {name}");
    }

    /// Opens the store.
    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        match self.store.strip_prefix("sqlite:") {
            Some(path) => {
                let options = milepost_sqlite::SqliteOptions::default();
                Arc::new(milepost_sqlite::SqliteStore::open(path, options).unwrap())
            }
            None => {
                let options = milepost_postgres::PostgresOptions::default();
                Arc::new(milepost_postgres::PostgresStore::connect(&self.store, options).await.unwrap())
            }
        }
    }
}

async fn claim(store: &dyn Store) -> (WorkerId, Claim) {
    let worker = NewWorker {
        name: "tester".to_owned(),
        queues: vec!["default".to_owned()],
        kinds: vec!["mail".to_owned()],
        lease: Duration::from_secs(60),
        ..NewWorker::default()
    };
    let worker = store.register_worker(&worker).await.unwrap();
    let claim = Claim {
        worker,
        claim_id: 1,
        queues: vec!["default".to_owned()],
        kinds: vec!["mail".to_owned()],
        limit: 1,
        thorough: false,
    };
    (worker, claim)
}

/// Returns a failure with this code.
pub(crate) fn failure(code: &str) -> Failure {
    Failure { code: code.to_owned(), message: "the server said no".to_owned() }
}

impl Ran {
    /// Asserts that the command succeeded.
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.status, 0, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// Parses standard output as one JSON document.
    pub(crate) fn json(self) -> Value {
        let ran = self.ok();
        serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}", ran.out))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Polls until there is a result; panics with `what` and the last error after [`wait::LIMIT`].
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(problem) => {
                assert!(began.elapsed() < wait::LIMIT, "timed out while waiting until {what}\n{problem}");
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Polls until a condition is true; panics with `what` after [`wait::LIMIT`].
#[track_caller]
pub(crate) fn until_true(what: &str, so: impl Fn() -> bool) {
    until(what, || if so() { Ok(()) } else { Err(String::new()) });
}

/// Waits for a future on a new runtime.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(future)
}

/// Returns the output of psql for a statement.
pub(crate) fn psql(url: &str, sql: &str) -> String {
    let psql = std::env::var("MILEPOST_TEST_POSTGRES_BIN").map_or("psql".into(), |bin| format!("{bin}/psql"));
    let ran = Command::new(psql).args(["-qAtc", sql, url]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim_end().to_owned()
}

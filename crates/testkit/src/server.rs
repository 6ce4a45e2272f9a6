//! PostgreSQL servers for single tests, which may crash them.

mod backup;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;

use crate::tls::Tls;
use crate::{port, wait};

/// A running server on a free port with production durability. Dropping the value stops the server and deletes its files.
pub struct Server {
    home: TempDir,
    port: u16,
    /// Variables of its environment beside those of this process.
    environment: Vec<(String, PathBuf)>,
}

/// Returns the folder with the server's programs, including psql.
pub fn programs() -> PathBuf {
    let programs = std::env::var("MILEPOST_TEST_POSTGRES_BIN").expect(
        "MILEPOST_TEST_POSTGRES_BIN is not set; \
         run `scripts/test`, or `scripts/services run cargo test`",
    );
    PathBuf::from(programs)
}

impl Server {
    /// Creates a cluster and starts it.
    pub async fn create() -> Self {
        Self::create_in(&std::env::temp_dir()).await
    }

    /// Creates a cluster in a new folder below this one, and starts it.
    pub async fn create_in(folder: &Path) -> Self {
        let server = Self::in_new_folder(folder);
        tokio::task::block_in_place(|| {
            Self::make_cluster(&server.data());
            server.pg_ctl_start();
        });
        server
    }

    /// Copies this running server to a new folder below this one, and starts the copy as a standby that follows it.
    pub async fn standby(&self, folder: &Path) -> Self {
        let mut standby = Self::in_new_folder(folder);
        standby.environment.clone_from(&self.environment);
        tokio::task::block_in_place(|| {
            self.copy_to(&standby, &["-R"]);
            standby.pg_ctl_start();
        });
        standby
    }

    /// Sets variables of its environment from its next start on, also for its later standbys.
    pub fn set_environment(&mut self, variables: &[(&str, PathBuf)]) {
        self.environment =
            variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    }

    /// Makes a standby accept writes, on a new timeline.
    pub async fn promote(&self) {
        tokio::task::block_in_place(|| self.pg_ctl(&["promote"]));
    }

    /// Starts the server if it does not run: it shuts down by itself if it cannot write to the disk.
    pub async fn start_if_down(&self) {
        tokio::task::block_in_place(|| {
            if !self.is_running() {
                self.pg_ctl_start();
            }
        });
    }

    fn in_new_folder(folder: &Path) -> Self {
        let home = tempfile::Builder::new().prefix("milepost-server.").tempdir_in(folder);
        let (home, port) = (home.expect("cannot create a temporary folder"), port::free());
        let server = Self { home, port, environment: Vec::new() };
        if is_root() {
            let chown = Command::new("chown").arg("postgres").arg(server.home.path()).status();
            assert!(
                chown.is_ok_and(|status| status.success()),
                "cannot change the owner of the server's folder"
            );
        }
        server
    }

    /// Starts a server that accepts only encrypted connections with a password. Returns it with its host, port and database.
    pub async fn with_tls(tls: &Tls, password: &str) -> (Self, String) {
        let server = Self::create().await;
        let mut owner = PgConnection::connect(&server.url()).await.expect("connected");
        for statement in [
            format!("alter role postgres password '{password}'"),
            format!("alter system set ssl_cert_file = '{}'", tls.certificate().display()),
            format!("alter system set ssl_key_file = '{}'", tls.key().display()),
            "alter system set ssl = on".to_owned(),
        ] {
            owner.execute(sqlx::AssertSqlSafe(statement)).await.expect("set");
        }
        let rule = "hostssl all all all scram-sha-256\n";
        std::fs::write(server.data().join("pg_hba.conf"), rule).expect("written");
        owner.execute("select pg_reload_conf()").await.expect("asked");
        wait::until("the server refuses unencrypted connections", || async {
            PgConnection::connect(&server.url()).await.is_err()
        })
        .await;
        let address = format!("localhost:{}/postgres", server.port);
        (server, address)
    }

    /// Returns its host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the URL of its only database.
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.address())
    }

    /// Stops the server like a power failure: no checkpoint, connections closed, recovery at the next start.
    pub async fn crash(&self) {
        tokio::task::block_in_place(|| self.pg_ctl(&["-m", "immediate", "stop"]));
    }

    /// Kills all processes of the server with SIGKILL; returns when they have ended.
    pub async fn kill(&self) {
        let data = self.data().canonicalize().expect("the folder of the server");
        wait::until("the processes of the server have ended", || async {
            let processes = processes_in(&data);
            for process in &processes {
                // It may have ended meanwhile.
                let _ = kill(*process, Signal::SIGKILL);
            }
            processes.is_empty()
        })
        .await;
    }

    /// Shuts the server down cleanly.
    pub async fn stop(&self) {
        tokio::task::block_in_place(|| self.pg_ctl(&["-m", "fast", "stop"]));
    }

    /// Copies the files of the server, which must be stopped.
    pub fn copy_files(&self) {
        copy(&self.data(), &self.home.path().join("copy"));
    }

    /// Restores the files from the copy; the server must be stopped.
    pub fn put_files_back(&self) {
        std::fs::remove_dir_all(self.data()).expect("removed");
        copy(&self.home.path().join("copy"), &self.data());
    }

    /// Upgrades the stopped server into a new cluster with `pg_upgrade`. Returns false if that program does not exist.
    pub async fn upgrade(&self) -> bool {
        if !programs().join("pg_upgrade").exists() {
            return false;
        }
        tokio::task::block_in_place(|| {
            let (home, data, new) = (self.home.path(), self.data(), self.home.path().join("new"));
            Self::make_cluster(&new);
            let programs = programs();
            let upgraded = command("pg_upgrade")
                .current_dir(home)
                .args([Path::new("-b"), &programs, Path::new("-B"), &programs, Path::new("-d"), &data])
                .args([Path::new("-D"), &new, Path::new("-s"), home])
                .args(["-U", "postgres", "-p", &self.port.to_string(), "-P", &port::free().to_string()])
                .status();
            assert!(upgraded.is_ok_and(|status| status.success()), "pg_upgrade failed");
            std::fs::remove_dir_all(&data).expect("removed");
            std::fs::rename(&new, &data).expect("renamed");
        });
        true
    }

    fn make_cluster(data: &Path) {
        let data = data.to_str().expect("the path is not UTF-8");
        run("initdb", &["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]);
    }

    /// Starts the stopped server as a standby and promotes it, which begins a new timeline.
    pub async fn start_promoted(&self) {
        std::fs::write(self.data().join("standby.signal"), "").expect("written");
        tokio::task::block_in_place(|| {
            self.pg_ctl_start();
            self.pg_ctl(&["promote"]);
        });
    }

    /// Starts the server again; returns when it accepts connections.
    pub async fn start(&self) {
        tokio::task::block_in_place(|| self.pg_ctl_start());
    }

    /// Starts the killed server as after a reboot of its machine, in which no process has the number that its lock file contains.
    pub async fn start_after_reboot(&self) {
        let lock = self.data().join("postmaster.pid");
        assert!(!lock.exists() || std::fs::remove_file(lock).is_ok(), "the lock file cannot be removed");
        self.start().await;
    }

    fn pg_ctl_start(&self) {
        // A standby that is behind when its server starts again still finds the log that it needs.
        let options = format!(
            "-c port={} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=on \
             -c shared_buffers=64MB -c max_connections=300 -c wal_keep_size=48MB",
            self.port
        );
        let log = self.home.path().join("log");
        let (data, path) = (self.data(), log.to_str().expect("the path is not UTF-8"));
        let arguments = ["-w", "-l", path, "-o", &options, "start"];
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        let started = command("pg_ctl").envs(environment).arg("-D").arg(data).args(arguments).status();
        let started = started.is_ok_and(|status| status.success());
        assert!(started, "the server does not start; the end of its log: {}", self.end_of_log());
    }

    fn pg_ctl(&self, arguments: &[&str]) {
        let done = command("pg_ctl")
            .stderr(Stdio::piped())
            .arg("-D")
            .arg(self.data())
            .arg("-w")
            .args(arguments)
            .output();
        let done = done.expect("pg_ctl is not executable");
        assert!(
            done.status.success(),
            "pg_ctl {arguments:?}: {}; the end of the server's log: {}",
            String::from_utf8_lossy(&done.stderr),
            self.end_of_log()
        );
    }

    fn end_of_log(&self) -> String {
        let words = std::fs::read(self.home.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&words[words.len().saturating_sub(2_000)..]).into_owned()
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may already have stopped.
        let _ = command("pg_ctl").arg("-D").arg(self.data()).args(["-w", "-m", "immediate", "stop"]).status();
    }
}

/// Returns the processes that work in this folder, as all processes of a server do in that of its data.
fn processes_in(folder: &Path) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let works_here = |process: &std::fs::DirEntry| {
        std::fs::read_link(process.path().join("cwd")).is_ok_and(|place| place == folder)
    };
    all.filter(works_here)
        .filter_map(|process| process.file_name().to_str()?.parse().ok().map(Pid::from_raw))
        .collect()
}

/// Copies a folder with its contents and ownership.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(status.is_ok_and(|status| status.success()), "cannot copy {}", from.display());
}

fn run(program: &str, arguments: &[&str]) {
    let status = command(program).args(arguments).status();
    assert!(status.as_ref().is_ok_and(|status| status.success()), "{program} {arguments:?}: {status:?}");
}

/// Returns a command that runs a server program as a user that the program accepts.
fn command(program: &str) -> Command {
    let path = programs().join(program);
    let mut command = if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(path);
        command
    } else {
        Command::new(path)
    };
    // The server inherits the output of its starter and would keep it open.
    command.current_dir(Path::new("/")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

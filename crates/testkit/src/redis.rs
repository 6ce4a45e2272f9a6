//! Redis servers for single tests, which may kill, freeze and flush them.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{self, Signal};
use nix::unistd::{Pid, User, geteuid};
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use tokio::process::{Child, Command};

use crate::tls::Tls;
use crate::{port, wait};

/// Returns a connection with the time limits of tests: the client's default is half a second.
///
/// # Errors
/// If the server cannot be reached.
pub async fn connect(url: &str) -> redis::RedisResult<MultiplexedConnection> {
    let patient = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(wait::LIMIT))
        .set_response_timeout(Some(wait::LIMIT));
    redis::Client::open(url)?.get_multiplexed_async_connection_with_config(&patient).await
}

/// A server without persistence on its own port on the loopback address. Dropping the value kills the server.
pub struct RedisServer {
    port: u16,
    settings: Vec<String>,
    child: Mutex<Option<Child>>,
}

impl RedisServer {
    /// Reserves a port for a server that is not started yet.
    pub fn absent() -> Self {
        Self { port: port::free(), settings: Vec::new(), child: Mutex::new(None) }
    }

    /// Starts a server.
    pub async fn running() -> Self {
        let server = Self::absent();
        server.start().await;
        server
    }

    /// Starts a server that also accepts TLS. Returns it with the host and port for TLS.
    pub async fn with_tls(tls: &Tls) -> (Self, String) {
        let port = port::free();
        let file = |path: PathBuf| path.to_str().expect("the path is not UTF-8").to_owned();
        let settings = [
            ("--tls-port", port.to_string()),
            ("--tls-cert-file", file(tls.certificate())),
            ("--tls-key-file", file(tls.key())),
            ("--tls-auth-clients", "no".to_owned()),
        ];
        let settings = settings.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        let server = Self { settings, ..Self::absent() };
        server.start().await;
        (server, format!("localhost:{port}"))
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Returns the host and port of the server.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Starts the server without data; returns when it answers.
    pub async fn start(&self) {
        let program = std::env::var("MILEPOST_TEST_REDIS_SERVER").expect(
            "MILEPOST_TEST_REDIS_SERVER is not set; run `scripts/test`, or `scripts/services run cargo test`",
        );
        let port = self.port.to_string();
        let mut command = Command::new(program);
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port,
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            "/",
        ]);
        command.args(&self.settings);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        if geteuid().is_root() {
            let nobody = User::from_name("nobody")
                .expect("cannot look up users")
                .expect("the user nobody does not exist");
            command.uid(nobody.uid.as_raw()).gid(nobody.gid.as_raw());
        }
        let child = command.spawn().expect("the server starts");
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        wait::until("Redis answers", || async { self.try_connect().await.is_ok() }).await;
    }

    /// Kills the server (SIGKILL) and waits until it has ended.
    pub async fn kill(&self) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        child.expect("the server is not running").kill().await.expect("killed");
    }

    /// Freezes the server (SIGSTOP): connections stay open but get no answers.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Resumes the server (SIGCONT).
    pub fn revive(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Deletes all data (FLUSHALL).
    pub async fn flush(&self) {
        redis::cmd("FLUSHALL").exec_async(&mut self.connect().await).await.expect("flushed");
    }

    /// Returns the keys that match a pattern.
    pub async fn keys(&self, pattern: &str) -> Vec<String> {
        redis::cmd("KEYS").arg(pattern).query_async(&mut self.connect().await).await.expect("answered")
    }

    /// Returns a connection for commands of tests.
    pub async fn connect(&self) -> MultiplexedConnection {
        self.try_connect().await.expect("Redis answers")
    }

    async fn try_connect(&self) -> redis::RedisResult<MultiplexedConnection> {
        let mut connection = connect(&self.url()).await?;
        redis::cmd("PING").exec_async(&mut connection).await?;
        Ok(connection)
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = child.as_ref().and_then(Child::id).expect("the server is not running");
        signal::kill(Pid::from_raw(pid.cast_signed()), signal).expect("the process does not exist");
    }
}

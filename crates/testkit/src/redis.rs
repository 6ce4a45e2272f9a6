//! A Redis for one test alone, which may kill, freeze and flush it.

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

/// A connection that waits for answers as long as tests wait for anything: the client's default is half a second.
///
/// # Errors
/// The server cannot be reached.
pub async fn connect(url: &str) -> redis::RedisResult<MultiplexedConnection> {
    let patient = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(wait::LIMIT))
        .set_response_timeout(Some(wait::LIMIT));
    redis::Client::open(url)?.get_multiplexed_async_connection_with_config(&patient).await
}

/// A server on a port of its own, on the loopback address, that keeps nothing. Killed when dropped.
pub struct RedisServer {
    port: u16,
    settings: Vec<String>,
    child: Mutex<Option<Child>>,
}

impl RedisServer {
    /// A place for a server that does not run yet.
    pub fn absent() -> Self {
        Self { port: port::free(), settings: Vec::new(), child: Mutex::new(None) }
    }

    /// A running server.
    pub async fn running() -> Self {
        let server = Self::absent();
        server.start().await;
        server
    }

    /// A running server that also speaks TLS; answers its host and port for that.
    pub async fn with_tls(tls: &Tls) -> (Self, String) {
        let port = port::free();
        let file = |path: PathBuf| path.to_str().expect("a path in UTF-8").to_owned();
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

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Its host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Starts it, empty; returns when it answers.
    pub async fn start(&self) {
        let program = std::env::var("MILEPOST_TEST_REDIS_SERVER").expect(
            "MILEPOST_TEST_REDIS_SERVER names no program; run `scripts/test`, or `scripts/services run cargo test`",
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
            let nobody =
                User::from_name("nobody").expect("users can be looked up").expect("nobody is a user");
            command.uid(nobody.uid.as_raw()).gid(nobody.gid.as_raw());
        }
        let child = command.spawn().expect("the server starts");
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        wait::until("Redis answers", || async { self.try_connect().await.is_ok() }).await;
    }

    /// Ends it without any warning (SIGKILL) and waits until it is gone.
    pub async fn kill(&self) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        child.expect("it runs").kill().await.expect("killed");
    }

    /// Freezes it (SIGSTOP): connections stay, nothing is answered.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on (SIGCONT).
    pub fn revive(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Forgets everything (FLUSHALL).
    pub async fn flush(&self) {
        redis::cmd("FLUSHALL").exec_async(&mut self.connect().await).await.expect("flushed");
    }

    /// The keys that match a pattern.
    pub async fn keys(&self, pattern: &str) -> Vec<String> {
        redis::cmd("KEYS").arg(pattern).query_async(&mut self.connect().await).await.expect("answered")
    }

    /// A connection for a test's own commands.
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
        let pid = child.as_ref().and_then(Child::id).expect("it runs");
        signal::kill(Pid::from_raw(pid.cast_signed()), signal).expect("it is there");
    }
}

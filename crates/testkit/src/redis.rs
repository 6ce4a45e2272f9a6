//! A Redis for one test alone, which may kill, freeze and flush it.

use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{self, Signal};
use nix::unistd::{Pid, User, geteuid};
use redis::aio::MultiplexedConnection;
use tokio::process::{Child, Command};

use crate::wait;

/// A server on a port of its own, on the loopback address, that keeps nothing. Killed when dropped.
pub struct RedisServer {
    port: u16,
    child: Mutex<Option<Child>>,
}

impl RedisServer {
    /// A place for a server that does not run yet.
    pub fn absent() -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        Self { port, child: Mutex::new(None) }
    }

    /// A running server.
    pub async fn running() -> Self {
        let server = Self::absent();
        server.start().await;
        server
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
            "MILEPOST_TEST_REDIS_SERVER names no program; run `scripts/test`, or `scripts/with-services cargo test`",
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
        let mut connection = redis::Client::open(self.url())?.get_multiplexed_async_connection().await?;
        redis::cmd("PING").exec_async(&mut connection).await?;
        Ok(connection)
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = child.as_ref().and_then(Child::id).expect("it runs");
        signal::kill(Pid::from_raw(pid.cast_signed()), signal).expect("it is there");
    }
}

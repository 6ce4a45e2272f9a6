//! NATS servers with JetStream for single tests, which may kill them.

use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::{port, wait};

/// A server on its own port on the loopback address. Its streams survive a restart. Dropping the value kills the server and deletes the streams.
pub struct NatsServer {
    home: TempDir,
    port: u16,
    settings: Vec<String>,
    child: Mutex<Option<Child>>,
}

impl NatsServer {
    /// Starts a server with these additional arguments.
    pub async fn running(settings: &[&str]) -> Self {
        let home = tempfile::Builder::new()
            .prefix("milepost-nats.")
            .tempdir()
            .expect("cannot create a temporary folder");
        let settings = settings.iter().map(ToString::to_string).collect();
        let server = Self { home, port: port::free(), settings, child: Mutex::new(None) };
        server.start().await;
        server
    }

    /// Returns the host and port of the server.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    /// Starts the server again with its streams; returns when it answers.
    pub async fn start(&self) {
        let program = std::env::var("MILEPOST_TEST_NATS_SERVER").expect(
            "MILEPOST_TEST_NATS_SERVER is not set; run `scripts/test`, or `scripts/services run cargo test`",
        );
        let mut command = Command::new(program);
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "-js", "-sd"]).arg(self.home.path());
        command.args(&self.settings).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("the server starts");
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        wait::until("NATS answers", || async { self.greets().await.unwrap_or(false) }).await;
    }

    /// Kills the server (SIGKILL) and waits until it has ended.
    pub async fn kill(&self) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        child.expect("the server is not running").kill().await.expect("killed");
    }

    async fn greets(&self) -> std::io::Result<bool> {
        let mut greeting = [0; 4];
        TcpStream::connect(self.address()).await?.read_exact(&mut greeting).await?;
        Ok(&greeting == b"INFO")
    }
}

//! A NATS with JetStream for one test alone, which may kill it.

use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::{port, wait};

/// A server on a port of its own, on the loopback address, whose streams outlive it. Killed when dropped, and its streams removed.
pub struct NatsServer {
    home: TempDir,
    port: u16,
    settings: Vec<String>,
    child: Mutex<Option<Child>>,
}

impl NatsServer {
    /// A running server, with these arguments besides its own.
    pub async fn running(settings: &[&str]) -> Self {
        let home = tempfile::Builder::new().prefix("milepost-nats.").tempdir().expect("a temporary folder");
        let settings = settings.iter().map(ToString::to_string).collect();
        let server = Self { home, port: port::free(), settings, child: Mutex::new(None) };
        server.start().await;
        server
    }

    /// Its host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    /// Starts it with the streams that it had; returns when it answers.
    pub async fn start(&self) {
        let program = std::env::var("MILEPOST_TEST_NATS_SERVER").expect(
            "MILEPOST_TEST_NATS_SERVER names no program; run `scripts/test`, or `scripts/services run cargo test`",
        );
        let mut command = Command::new(program);
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "-js", "-sd"]).arg(self.home.path());
        command.args(&self.settings).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("the server starts");
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        wait::until("NATS answers", || async { self.greets().await.unwrap_or(false) }).await;
    }

    /// Ends it without any warning (SIGKILL) and waits until it is gone.
    pub async fn kill(&self) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        child.expect("it runs").kill().await.expect("killed");
    }

    async fn greets(&self) -> std::io::Result<bool> {
        let mut greeting = [0; 4];
        TcpStream::connect(self.address()).await?.read_exact(&mut greeting).await?;
        Ok(&greeting == b"INFO")
    }
}

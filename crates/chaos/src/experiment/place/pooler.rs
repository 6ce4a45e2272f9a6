//! A connection pooler between the processes and the server.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use milepost_testkit::{port, wait};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// Where distributions install it.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A running PgBouncer in transaction mode.
pub(super) struct Pooler {
    folder: TempDir,
    port: u16,
    child: Child,
}

impl Pooler {
    /// Returns whether the program is installed.
    pub(super) fn is_installed() -> bool {
        Path::new(PROGRAM).exists()
    }

    /// Starts a pooler for the server at `host:port`.
    pub(super) async fn before(server: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = port::free();
        let (host, server_port) = server.split_once(':').context("an address without a port")?;
        // As in docs/GUARANTEES.md: fewer connections to the server than clients, and the timeout that is needed. A server that came back is tried
        // again sooner than after 15 seconds.
        let settings = format!(
            "[databases]\n* = host={host} port={server_port} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 10\nmax_client_conn = 1000\nidle_transaction_timeout = 10\nserver_login_retry = 1\n"
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, settings)?;
        for path in [folder.path(), &file] {
            allow_reading(path)?;
        }
        let child = start(&file)?;
        let pooler = Self { folder, port, child };
        pooler.until_it_answers().await;
        Ok(pooler)
    }

    /// Returns its host and port.
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills it, and starts it again.
    pub(super) async fn restart(&mut self) -> Result<()> {
        self.child.kill().await?;
        self.child = start(&self.folder.path().join("pgbouncer.ini"))?;
        self.until_it_answers().await;
        Ok(())
    }

    async fn until_it_answers(&self) {
        let address = self.address();
        wait::until("the pooler answers", || async { TcpStream::connect(&address).await.is_ok() }).await;
    }
}

/// Starts the program. It refuses to run as root.
fn start(settings: &Path) -> Result<Child> {
    let mut command = Command::new(PROGRAM);
    if nix::unistd::geteuid().is_root() {
        command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=KILL", PROGRAM]);
    }
    command.arg("-q").arg(settings).kill_on_drop(true);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context("cannot start PgBouncer")
}

fn allow_reading(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
}

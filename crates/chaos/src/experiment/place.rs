//! The store under test, with its disk, its servers, and the network before them.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use milepost_testkit::home::{Home, PostgresHome, SqliteHome};
use milepost_testkit::proxy::Proxy;
use milepost_testkit::server::Server;
use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;

use super::StoreKind;

/// The size of the disk of the store, in mebibytes.
const DISK_MIB: u32 = 1_024;
/// How long the network is cut, or loses answers.
const CUT_FOR: Duration = Duration::from_millis(500);
/// How long the disk stays full.
const FULL_FOR: Duration = Duration::from_millis(1_000);
/// Ends all connections of clients but this one.
const KILL_BACKENDS: &str = "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";

/// The store under test.
pub(super) struct Place {
    pub(super) home: Box<dyn Home>,
    pub(super) database: Option<Database>,
    /// The address for other processes.
    pub(super) address: String,
    pub(super) disk: Option<Disk>,
}

impl Place {
    /// Creates a store. `on_small_disk`: on a file system that can be filled, and with a standby on the same.
    pub(super) async fn create(kind: StoreKind, on_small_disk: bool) -> Result<Self> {
        let disk = on_small_disk.then(Disk::mount).transpose()?;
        let folder = disk.as_ref().map_or_else(std::env::temp_dir, |disk| disk.folder.path().to_owned());
        Ok(match kind {
            StoreKind::Sqlite => {
                let home = SqliteHome::fresh_in(&folder).await;
                let address = home.address();
                Self { home: Box::new(home), database: None, address, disk }
            }
            StoreKind::Postgres => {
                let (database, home, address) = Database::create(folder).await?;
                Self { home: Box::new(home), database: Some(database), address, disk }
            }
        })
    }

    /// Fills the disk for a moment. Servers that shut down because of it are started again.
    pub(super) async fn fill_disk(&self) -> Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        disk.fill().await?;
        if let Some(database) = &self.database {
            database.server.start_if_down().await;
            database.standby.start_if_down().await;
        }
        Ok(())
    }
}

/// A file system of its own, in memory.
pub(super) struct Disk {
    folder: TempDir,
}

impl Disk {
    /// Returns whether this user may mount a file system.
    pub(super) fn is_permitted() -> bool {
        nix::unistd::geteuid().is_root()
    }

    fn mount() -> Result<Self> {
        let disk = Self { folder: tempfile::Builder::new().prefix("milepost-disk.").tempdir()? };
        let size = format!("size={DISK_MIB}m,mode=777");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(disk.folder.path()))?;
        Ok(disk)
    }

    /// Takes all free space for a moment.
    async fn fill(&self) -> Result<()> {
        let path = self.folder.path().join("filler");
        fill(&path)?;
        tokio::time::sleep(FULL_FOR).await;
        Ok(std::fs::remove_file(path)?)
    }
}

/// Writes a file until nothing fits on the disk any more.
fn fill(path: &Path) -> Result<()> {
    let mut filler = File::create(path)?;
    for size in [1 << 20, 1 << 12, 1] {
        let block = vec![0; size];
        while filler.write(&block).is_ok_and(|written| written > 0) {}
    }
    Ok(())
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("umount").arg("-l").arg(self.folder.path())) {
            eprintln!("{error}");
        }
    }
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    anyhow::ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// A database server with a synchronous standby, and the proxies between it and the processes.
pub(super) struct Database {
    server: Server,
    standby: Server,
    /// The folder of new standbys.
    folder: PathBuf,
    /// The network of the processes, which has faults.
    proxy: Proxy,
    /// The network of the experiment, which has none.
    steady: Proxy,
}

impl Database {
    async fn create(folder: PathBuf) -> Result<(Self, PostgresHome, String)> {
        let server = Server::create_in(&folder).await;
        let (steady, url) = Proxy::for_url(&server.url()).await;
        let home = PostgresHome::create_at(&url).await;
        let (proxy, address) = Proxy::for_url(&server.url()).await;
        let standby = server.standby(&folder).await;
        let database = Self { server, standby, folder, proxy, steady };
        database.wait_for_standby().await?;
        Ok((database, home, address))
    }

    /// Makes every commit wait until the standby has it, so that a failover loses none.
    async fn wait_for_standby(&self) -> Result<()> {
        let mut connection = PgConnection::connect(&self.server.url()).await?;
        connection.execute("alter system set synchronous_standby_names = '*'").await?;
        connection.execute("select pg_reload_conf()").await?;
        Ok(())
    }

    /// Stops the server as if it had lost its power, and starts it.
    pub(super) async fn crash(&self) {
        self.server.crash().await;
        self.server.start().await;
    }

    /// Loses the server, promotes its standby, and gives that a standby. Clients see closed connections only.
    pub(super) async fn fail_over(&mut self) -> Result<()> {
        self.server.crash().await;
        self.standby.promote().await;
        for proxy in [&self.proxy, &self.steady] {
            proxy.lead_to(self.standby.address());
        }
        // Until it has a standby, its commits wait.
        let standby = self.standby.standby(&self.folder).await;
        self.server = std::mem::replace(&mut self.standby, standby);
        self.wait_for_standby().await
    }

    /// Ends all connections of clients.
    pub(super) async fn kill_backends(&self) -> Result<()> {
        let mut connection = PgConnection::connect(&self.server.url()).await?;
        connection.execute(KILL_BACKENDS).await?;
        Ok(())
    }

    /// Closes all connections and refuses new ones for a moment.
    pub(super) async fn cut(&self) {
        self.proxy.shut(true);
        tokio::time::sleep(CUT_FOR).await;
        self.proxy.shut(false);
    }

    /// Lets nothing pass any more on the existing connections, which stay open.
    pub(super) fn silence(&self) {
        self.proxy.fall_silent();
    }

    /// Loses the answers of all requests for a moment.
    pub(super) async fn lose_answers(&self) {
        self.proxy.lose_replies(true);
        tokio::time::sleep(CUT_FOR).await;
        self.proxy.lose_replies(false);
    }
}

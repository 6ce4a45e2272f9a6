//! The store under test, with its disk, its servers, and the network before them.

mod dump;
mod loss;
mod moving;
mod pooler;
mod sessions;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use milepost_core::event::Begin;
use milepost_postgres::{PostgresOptions, WakeMode};
use milepost_sqlite::SqliteOptions;
use milepost_testkit::home::{Home, PostgresHome, SqliteHome};
use milepost_testkit::proxy::Proxy;
use milepost_testkit::server::Server;
use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;

use super::clock::Clock;
use super::disk::Disk;
use super::processes::Processes;
use super::programs::Programs;
use super::services::Services;
use super::{StoreKind, columns};
use crate::broker;
pub(super) use moving::OLD;
use pooler::Pooler;

/// How long the network is cut, or loses answers.
const CUT_FOR: Duration = Duration::from_millis(500);
/// How long the load continues at least after all processes were started again, since the next fault may end them.
const LOADED_FOR: Duration = Duration::from_secs(5);
/// Ends all connections of clients but this one.
const KILL_BACKENDS: &str = "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";

/// What the documentation asks of operators: handlers can have open transactions on silent connections.
const END_SILENT_TRANSACTIONS: &str = "alter system set idle_in_transaction_session_timeout = '5s'";

/// The store under test.
pub(super) struct Place {
    pub(super) home: Box<dyn Home>,
    pub(super) database: Option<Database>,
    /// The address for other processes.
    pub(super) address: String,
    disk: Option<Disk>,
    /// How often columns were added.
    columns: u32,
    /// The SQLite file.
    file: Option<PathBuf>,
    /// The folder of the file or of the servers, and its owner if it is not on the disk.
    folder: PathBuf,
    _owned: Option<TempDir>,
    /// Between the processes and the server.
    pooler: Option<Pooler>,
    /// The servers beside the store.
    pub(super) services: Services,
}

impl Place {
    /// Creates a store. `on_disk`: on a file system that can be filled and lose its power, and with a standby on the same. `pooled`: processes
    /// reach the server through a pooler. `clock`: that of the servers, if it is not that of the machine.
    pub(super) async fn create(
        kind: StoreKind,
        on_disk: bool,
        pooled: bool,
        clock: Option<Clock>,
        services: Services,
        programs: &Programs,
    ) -> Result<Self> {
        let disk = on_disk.then(Disk::mount).transpose()?;
        let own = if on_disk { None } else { Some(tempfile::tempdir()?) };
        let folder = disk.as_ref().map(Disk::path).or(own.as_ref().map(TempDir::path));
        let folder = folder.map_or_else(std::env::temp_dir, Path::to_owned);
        let place = match kind {
            StoreKind::Sqlite => {
                let path = folder.join("jobs.db");
                let address = format!("sqlite:{}", path.display());
                programs.prepare(&address).await?;
                let home = Box::new(SqliteHome::open(path.clone(), SqliteOptions::default()));
                let (file, pooler, columns) = (Some(path), None, 0);
                Self {
                    home,
                    database: None,
                    address,
                    disk,
                    columns,
                    file,
                    folder,
                    _owned: own,
                    pooler,
                    services,
                }
            }
            StoreKind::Postgres => {
                let (database, home, mut address) = Database::create(folder.clone(), clock, programs).await?;
                let direct = database.proxy.address().to_string();
                let pooler = if pooled { Some(Pooler::before(&direct).await?) } else { None };
                if let Some(pooler) = &pooler {
                    address = address.replace(&direct, &pooler.address());
                    address += &format!("?pooler=transaction&direct={direct}");
                }
                let (home, database, columns) = (Box::new(home), Some(database), 0);
                Self {
                    home,
                    database,
                    address,
                    disk,
                    columns,
                    file: None,
                    folder,
                    _owned: own,
                    pooler,
                    services,
                }
            }
        };
        if place.services.has_broker() {
            place.home.store().subscribe(broker::SUBSCRIPTION, Begin::Beginning).await?;
        }
        place.synchronize()?;
        Ok(place)
    }

    /// Writes everything to the disk. The programs that create servers do not wait for that.
    fn synchronize(&self) -> Result<()> {
        self.disk.as_ref().map_or(Ok(()), Disk::synchronize)
    }

    /// Fills the disk for a moment. Servers that shut down because of it are started again.
    pub(super) async fn fill_disk(&self) -> Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        disk.fill().await?;
        self.start_what_is_down().await;
        Ok(())
    }

    /// Starts servers that have shut down by themselves, which they do some time after a disk was full or an error was read from it.
    pub(super) async fn start_what_is_down(&self) {
        if let Some(database) = &self.database {
            database.server.start_if_down().await;
            database.standby.start_if_down().await;
        }
    }

    /// The machine loses its power: nothing that was not synchronized is kept, and all processes end.
    pub(super) async fn lose_power(&mut self, processes: &mut Processes) -> Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        // First: while the file system shuts down, `fsync` can report success for data that is lost, which a machine without power cannot.
        self.kill_everything(processes).await?;
        disk.lose_power()?;
        self.start_after_reboot(processes).await
    }

    /// The file system becomes read-only for a moment, while everything works. Then the machine is started again, and the file system repaired.
    pub(super) async fn make_disk_read_only(&mut self, processes: &mut Processes) -> Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        disk.become_read_only().await?;
        self.kill_everything(processes).await?;
        self.start_after_reboot(processes).await
    }

    async fn kill_everything(&self, processes: &mut Processes) -> Result<()> {
        processes.kill_all().await?;
        if let Some(database) = &self.database {
            database.server.kill().await;
            database.standby.kill().await;
        }
        Ok(())
    }

    async fn start_after_reboot(&mut self, processes: &mut Processes) -> Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        if self.file.is_some() {
            // This process uses the file, too.
            self.home.close().await;
        }
        disk.power_on()?;
        if let Some(database) = &self.database {
            database.server.start_after_reboot().await;
            database.standby.start_after_reboot().await;
        }
        if let Some(path) = &self.file {
            self.home = Box::new(SqliteHome::open(path.clone(), SqliteOptions::default()));
        }
        processes.start_all()
    }

    /// Returns the clock of the servers, if it is not that of the machine.
    pub(super) fn clock(&self) -> Option<&Clock> {
        self.database.as_ref().and_then(|database| database.clock.as_ref())
    }

    /// Adds columns to all tables of Milepost, as the migration of a newer version does.
    pub(super) async fn add_columns(&mut self) -> Result<()> {
        self.columns += 1;
        match &self.database {
            Some(database) => columns::add_to_database(&database.server.url(), self.columns).await?,
            None => columns::add_to_file(self.home.as_ref(), self.columns).await,
        }
        Ok(())
    }

    /// Migrates the store to the version of this process, if it is older.
    pub(super) async fn migrate(&self) -> Result<()> {
        Ok(self.home.migrate().await?)
    }

    /// Kills the pooler, and starts it again.
    pub(super) async fn restart_pooler(&mut self) -> Result<bool> {
        let Some(pooler) = &mut self.pooler else { return Ok(false) };
        pooler.restart().await?;
        Ok(true)
    }

    /// Returns whether a pooler is installed.
    pub(super) fn can_have_pooler() -> bool {
        Pooler::is_installed()
    }

    /// Loses the database server, and continues with its standby.
    pub(super) async fn fail_over(&mut self) -> Result<()> {
        if let Some(database) = &mut self.database {
            database.fail_over().await?;
        }
        self.synchronize()
    }
}

/// A database server with a synchronous standby, and the proxies between it and the processes.
pub(super) struct Database {
    server: Server,
    standby: Server,
    /// The folder of new standbys.
    folder: PathBuf,
    /// The clock of the servers, if it is not that of the machine.
    clock: Option<Clock>,
    /// The network of the processes, which has faults.
    proxy: Proxy,
    /// The network of the experiment, which has none.
    steady: Proxy,
}

impl Database {
    async fn create(
        folder: PathBuf,
        clock: Option<Clock>,
        programs: &Programs,
    ) -> Result<(Self, PostgresHome, String)> {
        let (database, url, address) = Self::start(folder, clock).await?;
        programs.prepare(&url).await?;
        let options = PostgresOptions { wake: WakeMode::Poll, ..PostgresOptions::default() };
        Ok((database, PostgresHome::open(&url, options).await, address))
    }

    /// Starts an empty server with its standby. Returns also its address for the experiment, and the one for processes.
    async fn start(folder: PathBuf, clock: Option<Clock>) -> Result<(Self, String, String)> {
        let mut server = Server::create_in(&folder).await;
        if let Some(clock) = &clock {
            server.stop().await;
            server.set_environment(&clock.environment());
            server.start().await;
        }
        let (steady, url) = Proxy::for_url(&server.url()).await;
        let (proxy, address) = Proxy::for_url(&server.url()).await;
        let standby = server.standby(&folder).await;
        let database = Self { server, standby, folder, clock, proxy, steady };
        database.wait_for_standby().await?;
        Ok((database, url, address))
    }

    /// Makes every commit wait until the standby has it, so that a failover loses none.
    async fn wait_for_standby(&self) -> Result<()> {
        let mut connection = PgConnection::connect(&self.server.url()).await?;
        connection.execute(END_SILENT_TRANSACTIONS).await?;
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
    async fn fail_over(&mut self) -> Result<()> {
        self.server.crash().await;
        self.standby.promote().await;
        self.lead_to_standby().await.map(drop)
    }

    /// Leads all clients to the standby, which accepts writes now, and gives it a standby. Returns the server of before.
    async fn lead_to_standby(&mut self) -> Result<Server> {
        for proxy in [&self.proxy, &self.steady] {
            proxy.lead_to(self.standby.address());
        }
        // Until it has a standby, its commits wait.
        let standby = self.standby.standby(&self.folder).await;
        let server = std::mem::replace(&mut self.standby, standby);
        let before = std::mem::replace(&mut self.server, server);
        self.wait_for_standby().await?;
        Ok(before)
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

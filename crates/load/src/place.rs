//! The store of a run, and the servers between it and the processes.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use milepost_testkit::database::Database;
use milepost_testkit::proxy::Proxy;
use milepost_testkit::redis::RedisServer;
use tempfile::TempDir;

use crate::process::Program;
use crate::scenario::{LEASE, Scenario};
use crate::store_kind::StoreKind;

/// A new store, with the configuration of its processes.
pub struct Place {
    /// The program that works on it.
    pub program: Program,
    /// The network before PostgreSQL, if the scenario delays it.
    pub proxy: Option<Proxy>,
    /// The Redis that the processes use, if any.
    pub redis: Option<RedisServer>,
    _database: Option<Database>,
    _folder: TempDir,
}

impl Place {
    /// Creates the store and its tables, and writes the configuration. `handler`: the service that runs the jobs.
    ///
    /// # Errors
    /// When a file cannot be written, or the tables cannot be created.
    pub async fn create(
        scenario: Scenario,
        kind: StoreKind,
        path: PathBuf,
        handler: SocketAddr,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("milepost-load.").tempdir()?;
        let (mut database, mut proxy) = (None, None);
        let (direct, store) = match kind {
            StoreKind::Sqlite => {
                let file = format!("sqlite:{}", folder.path().join("jobs.db").display());
                (file.clone(), file)
            }
            StoreKind::Postgres => {
                let created = database.insert(Database::create().await);
                let direct = created.url();
                let store = match scenario {
                    // Behind a transaction pooler, workers are not notified by the database: Redis does it.
                    Scenario::RedisDown => format!("{}?pooler=transaction", created.pooled_url()),
                    Scenario::SlowDatabase => {
                        let (before, url) = Proxy::for_url(&direct).await;
                        proxy = Some(before);
                        url
                    }
                    _ => direct.clone(),
                };
                (direct, store)
            }
        };
        let redis = if scenario.uses_redis() { Some(RedisServer::running().await) } else { None };
        std::fs::write(folder.path().join("milepost.toml"), configuration(handler, redis.as_ref()))?;
        let program = Program { path, folder: folder.path().to_owned(), store };
        program.migrate(&direct).await?;
        Ok(Self { program, proxy, redis, _database: database, _folder: folder })
    }
}

fn configuration(handler: SocketAddr, redis: Option<&RedisServer>) -> String {
    let lease_s = LEASE.as_secs();
    let mut text = format!(
        "[worker]\nlease = \"{lease_s}s\"\n\n\
         [kinds.load]\nbackoff = {{ base = \"200ms\", cap = \"2s\" }}\n\n\
         [kinds.load.http]\nurl = \"http://{handler}/run\"\nallow_networks = [\"127.0.0.1/32\"]\n"
    );
    if let Some(redis) = redis {
        text.push_str(&format!("\n[redis]\nurl = \"{}\"\n", redis.url()));
    }
    text
}

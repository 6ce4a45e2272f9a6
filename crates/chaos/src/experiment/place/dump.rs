//! Faults that keep everything, but on a new server: a dump that is restored, and an upgrade.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use milepost_testkit::server::Server;

use super::{LOADED_FOR, Place};
use crate::experiment::processes::Processes;

/// How long the leases of publishers that were killed can prevent that their positions are accepted.
const RESEED_MAX: Duration = Duration::from_secs(30);
/// The pause between two attempts.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

impl Place {
    /// Kills all processes, dumps the database, restores the dump on a new server, and accepts the positions of subscriptions there.
    pub(in crate::experiment) async fn dump_and_restore(
        &mut self,
        processes: &mut Processes,
    ) -> Result<bool> {
        let Some(database) = &mut self.database else { return Ok(false) };
        processes.kill_all().await?;
        // No session of a killed process may commit after the dump has begun.
        database.server.stop().await;
        database.server.start().await;
        let new = Server::create_in(&database.folder).await;
        database.server.dump_to(&new).await;
        database.standby = new;
        drop(database.lead_to_standby().await?);
        self.continue_on_new_server(processes).await
    }

    /// Kills all processes, upgrades the server into a new cluster, and accepts the positions of subscriptions there.
    pub(in crate::experiment) async fn upgrade_server(&mut self, processes: &mut Processes) -> Result<bool> {
        let Some(database) = &mut self.database else { return Ok(false) };
        processes.kill_all().await?;
        database.server.stop().await;
        if !database.server.upgrade().await {
            return Ok(false);
        }
        database.server.start().await;
        database.standby = database.server.standby(&database.folder).await;
        database.wait_for_standby().await?;
        self.continue_on_new_server(processes).await
    }

    /// Accepts the positions of subscriptions on the new server, and continues the load.
    async fn continue_on_new_server(&self, processes: &mut Processes) -> Result<bool> {
        let began = Instant::now();
        loop {
            match self.home.store().reseed().await {
                Ok(_) => break,
                Err(error) if began.elapsed() < RESEED_MAX => drop(error),
                Err(error) => return Err(error).context("the positions of subscriptions are not accepted"),
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        self.synchronize()?;
        processes.start_all()?;
        tokio::time::sleep(LOADED_FOR).await;
        Ok(true)
    }
}

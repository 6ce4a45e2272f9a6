//! The move of a store from SQLite to PostgreSQL.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fastrand::Rng;
use milepost_postgres::{PostgresOptions, WakeMode};
use milepost_testkit::home::{Home, PostgresHome};

use super::{Database, LOADED_FOR, Place};
use crate::experiment::processes::Processes;
use crate::experiment::programs::Programs;
use crate::experiment::role::Role;
use crate::load::setup;
use crate::record::{Outcome, What};
use crate::witness::Witness;

/// The names of both stores in the record.
pub(in crate::experiment) const OLD: &str = "old";
const NEW: &str = "new";
/// The most kills of a move, and the longest time before a kill, in milliseconds.
const KILLS_MAX: u32 = 5;
const KILL_MS_MAX: u64 = 2_500;
/// One in this number of killed moves is abandoned before the next one begins.
const GIVEN_UP_IN: u32 = 3;
/// How long the move may take to end: it waits for the leases of workers that were killed.
const MOVE_MAX: Duration = Duration::from_secs(120);
/// The pause before a move that was refused begins again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

impl Place {
    /// Moves the store to a new PostgreSQL server, while clients call the old one. The move is killed several times, and sometimes abandoned before it
    /// begins again. Then all processes work on the new store. Returns false if it was moved before.
    pub(in crate::experiment) async fn move_to_database(
        &mut self,
        random: &mut Rng,
        processes: &mut Processes,
        witness: &Witness,
    ) -> Result<bool> {
        if self.file.take().is_none() {
            return Ok(false);
        }
        processes.kill_with(&[Role::Server, Role::Worker, Role::HttpWorker, Role::Reader]).await?;
        let (database, url, address) = Database::start(self.folder.clone(), None).await?;
        let begun = witness.begins(&What::Move);
        move_with_kills(random, processes.programs(), &self.address, &url).await?;
        witness.ended(&begun, Outcome::Ok, What::Move);
        // The clients have not noticed anything yet.
        tokio::time::sleep(AGAIN_AFTER).await;
        processes.kill_all().await?;
        let home = PostgresHome::create_at(&url).await;
        move_tables(self.home.as_ref(), &home).await;
        let options = PostgresOptions { wake: WakeMode::Poll, ..PostgresOptions::default() };
        self.home = Box::new(PostgresHome::open(&url, options).await);
        (self.database, self.address) = (Some(database), address);
        processes.lead_to(self.address.clone(), NEW);
        processes.start_all()?;
        tokio::time::sleep(LOADED_FOR).await;
        Ok(true)
    }
}

/// Runs `milepost move` until it has succeeded.
async fn move_with_kills(random: &mut Rng, programs: &Programs, from: &str, to: &str) -> Result<()> {
    let (began, mut kills) = (Instant::now(), random.u32(1..=KILLS_MAX));
    let command = ["move", "--from", from, "--to", to];
    let mut refused = String::new();
    while began.elapsed() < MOVE_MAX {
        let moving = programs.milepost(&command).spawn()?;
        let kill_after = Duration::from_millis(random.u64(..KILL_MS_MAX));
        if kills > 0 && tokio::time::timeout(kill_after, moving.wait_with_output()).await.is_err() {
            kills -= 1;
            if random.u32(..GIVEN_UP_IN) == 0 {
                let given_up =
                    programs.milepost(&[command.as_slice(), &["--give-up"]].concat()).output().await?;
                refused = String::from_utf8_lossy(&given_up.stderr).into_owned();
            }
            continue;
        }
        let moved = programs.milepost(&command).output().await?;
        if moved.status.success() {
            return Ok(());
        }
        refused = String::from_utf8_lossy(&moved.stderr).into_owned();
        tokio::time::sleep(AGAIN_AFTER).await;
    }
    bail!("the store was not moved in {} s: {refused}", MOVE_MAX.as_secs())
}

/// Moves the tables of the load, as users do with theirs.
async fn move_tables(old: &dyn Home, new: &PostgresHome) {
    setup::create_tables(new).await;
    let effects = old
        .effects()
        .await
        .into_iter()
        .map(|its| format!("('{}', {}, '{}')", its.job, its.token.0, its.place));
    let notes = old.notes().await.into_iter().map(|(run, member)| format!("('{run}', {member})"));
    let taken_in = old.desk().await.transactions.effects().await;
    let taken_in =
        taken_in.into_iter().map(|(consumer, id, sequence)| format!("('{consumer}', '{id}', {sequence})"));
    for (table, rows) in [
        ("test_effect (job_id, token, place)", effects.collect::<Vec<_>>()),
        ("public.note (run, member)", notes.collect()),
        ("public.inbox_effect (consumer, aggregate_id, seq)", taken_in.collect()),
    ] {
        let mut sql = String::new();
        for rows in rows.chunks(1_000) {
            let _ = write!(sql, "insert into {table} values {};", rows.join(", "));
        }
        new.tamper(&sql).await;
    }
}

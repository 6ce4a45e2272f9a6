//! Repair of times that were computed while the server's clock was ahead.

use milepost_core::clock::{DELETION_WAIT_MS, Noted, OF_DELETION, OF_PUBLISHERS, OF_WORKERS, may_delete};
use milepost_core::sql;
use sqlx::Row;

use crate::row::{self, Decoded};
use crate::session::Session;
use crate::store::PostgresStore;

/// Each moves back one kind of times by a number of milliseconds: those that jobs and retention wait for.
const OF_JOBS: [&str; 3] =
    [sql!("clock/move_turn"), sql!("clock/move_kind_rates"), sql!("clock/move_group_rates")];
/// Those that publishers wait for.
const OF_RELAY: [&str; 2] = [sql!("clock/move_publishers"), sql!("clock/move_parked")];

impl PostgresStore {
    /// Notes the time for workers. If the clock was set back since, moves back the times that retention and rates wait for; those are never reached
    /// otherwise before the clock has been ahead once more.
    pub(crate) async fn follow_clock(&self) -> Decoded<()> {
        self.follow(OF_WORKERS, &OF_JOBS).await
    }

    /// As [`follow_clock`](Self::follow_clock), for publishers: their leases, and the next attempts of parked events.
    pub(crate) async fn follow_publisher_clock(&self) -> Decoded<()> {
        self.follow(OF_PUBLISHERS, &OF_RELAY).await
    }

    async fn follow(&self, name: &'static str, moves: &'static [&'static str]) -> Decoded<()> {
        let seen = self.inner.hot.row(sqlx::query(sql!("clock/seen")).bind(name)).await?;
        let seen = seen.map(|row| row::value::<i64>(Some(row))).transpose()?;
        match Noted::of(seen) {
            Noted::Recently => {}
            Noted::LongAgo => {
                self.inner.hot.execute(sqlx::query(sql!("clock/note")).bind(name)).await?;
            }
            Noted::Jumped(_) => {
                let note =
                    sqlx::query(sql!("clock/note_jump")).bind(name).bind(OF_DELETION).bind(DELETION_WAIT_MS);
                self.inner.hot.execute(note).await?;
                tracing::info!(
                    "no worker ran for a day, or the clock was put forward; retention waits for ten minutes"
                );
            }
            Noted::Ahead(_) => {
                let back_ms = self.inner.hot.atomically(async |tx| set_back(tx, name, moves).await).await?;
                if let Some(back_ms) = back_ms {
                    tracing::warn!(
                        back_ms,
                        "the database's clock was set back; times computed before are moved back, too"
                    );
                }
            }
        }
        Ok(())
    }
}

impl PostgresStore {
    pub(crate) async fn may_delete_by_clock(&self) -> Decoded<bool> {
        let steady =
            sqlx::query(sql!("clock/steady")).bind(vec![OF_WORKERS, OF_PUBLISHERS]).bind(OF_DELETION);
        let row = self.inner.hot.row(steady).await?.ok_or(sqlx::Error::RowNotFound)?;
        Ok(may_delete(row.try_get("noted_ms")?, row.try_get("waits")?))
    }
}

/// Moves times back, unless another process does. Returns by how many milliseconds.
async fn set_back(tx: &mut Session<'_>, name: &str, moves: &[&'static str]) -> Decoded<Option<i64>> {
    let Some(row) = tx.row(sqlx::query(sql!("clock/set_back")).bind(name.to_owned())).await? else {
        return Ok(None);
    };
    let back_ms = row::value::<i64>(Some(row))?;
    for sql in moves {
        tx.execute(sqlx::query(*sql).bind(back_ms)).await?;
    }
    Ok(Some(back_ms))
}

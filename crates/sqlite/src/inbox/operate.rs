//! Verbs of operators and of consumer runners on inboxes.

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::duration::whole_ms;
use milepost_core::event::Aggregate;
use milepost_core::event::listing::AggregatePlace;
use milepost_core::inbox::listing::{ConsumerView, DeadFilter, DeadLetter, Gap, GivenUp, LetterId};
use milepost_core::inbox::{Consumer, check_position};
use milepost_core::port::{InboxStore, StoreResult};
use milepost_core::sql;
use rusqlite::{Connection, Row};

use super::checkpoint::{ConsumerAggregate, read_settings, settings};
use super::dead_letters;
use crate::clock::now_ms;
use crate::command::Hint;
use crate::error::Failure;
use crate::event::{after_place, read_event};
use crate::row;
use crate::store::SqliteStore;

type Sql<T> = rusqlite::Result<T>;

#[async_trait]
impl InboxStore for SqliteStore {
    async fn put_consumer(&self, consumer: &Consumer) -> StoreResult<()> {
        consumer.check()?;
        let (action, consumer) = (AuditedAction::put_consumer(&consumer.name), consumer.clone());
        self.act("put_consumer", Hint::NONE, action, move |tx| {
            let Consumer { name, gap_wait, parked_max, gap_policy, begins_anywhere } = consumer;
            let put = (name, whole_ms(gap_wait), parked_max, gap_policy.as_str(), begins_anywhere);
            tx.prepare_cached(sql!("inbox/put_consumer"))?.execute(put)?;
            Ok(())
        })
        .await
    }

    async fn consumers(&self) -> StoreResult<Vec<ConsumerView>> {
        self.read("consumers", |conn| {
            let mut consumers = conn.prepare_cached(sql!("inbox/consumers"))?;
            let consumers = consumers.query_map((), view)?.collect::<Sql<_>>()?;
            Ok(consumers)
        })
        .await
    }

    async fn expect_from(&self, consumer: &str, aggregate: &Aggregate, sequence: i64) -> StoreResult<bool> {
        check_position(consumer, aggregate, sequence)?;
        let action = AuditedAction::expect_from(consumer, aggregate);
        let (consumer, aggregate) = (consumer.to_owned(), aggregate.clone());
        self.act("expect_from", Hint::NONE, action, move |tx| {
            let seat = ConsumerAggregate { conn: tx, consumer: &consumer, aggregate: &aggregate };
            Ok(seat.expect_from(sequence)?)
        })
        .await
    }

    async fn inbox_ready(&self, consumer: &str, limit: u32) -> StoreResult<Vec<Aggregate>> {
        let consumer = consumer.to_owned();
        self.read("inbox_ready", move |conn| {
            let mut ready = conn.prepare_cached(sql!("inbox/ready"))?;
            let ready = ready.query_map((consumer, limit), |row| aggregate(row, 0))?.collect::<Sql<_>>()?;
            Ok(ready)
        })
        .await
    }

    async fn gaps(
        &self,
        consumer: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<Gap>> {
        let (consumer, (at_ms, of, kind, id)) = (consumer.map(str::to_owned), after_place(after));
        self.read("gaps", move |conn| {
            let mut gaps = conn.prepare_cached(sql!("inbox/gaps"))?;
            let gaps = gaps.query_map((consumer, at_ms, of, kind, id, limit), gap)?.collect::<Sql<_>>()?;
            Ok(gaps)
        })
        .await
    }

    async fn give_up_gaps(&self, consumer: Option<&str>, limit: u32) -> StoreResult<GivenUp> {
        let consumer = consumer.map(str::to_owned);
        let looked = consumer.clone();
        // This is called often and rarely has anything to write, so it is checked with a read first.
        if self.read("give_up_gaps", move |conn| due(conn, looked.as_deref(), 1)).await?.is_empty() {
            return Ok(GivenUp::default());
        }
        self.write("give_up_gaps", Hint::NONE, move |tx| give_up(tx, consumer.as_deref(), limit)).await
    }

    async fn dead_letters(&self, filter: &DeadFilter) -> StoreResult<Vec<DeadLetter>> {
        let DeadFilter { consumer, before, limit } = filter.clone();
        self.read("dead_letters", move |conn| {
            let mut letters = conn.prepare_cached(sql!("inbox/dead"))?;
            let before = before.map_or(i64::MAX, |before| before.0);
            let letters = letters.query_map((consumer, before, limit), dead_letter)?.collect::<Sql<_>>()?;
            Ok(letters)
        })
        .await
    }

    async fn retry_dead(&self, letters: &[LetterId]) -> StoreResult<u64> {
        let (action, letters) = (AuditedAction::retry_letters(letters), letters.to_vec());
        self.act("retry_dead", Hint::NONE, action, move |tx| dead_letters::retry(tx, &letters)).await
    }

    async fn drop_dead(&self, letters: &[LetterId]) -> StoreResult<u64> {
        let (action, letters) = (AuditedAction::drop_letters(letters), letters.to_vec());
        self.act("drop_dead", Hint::NONE, action, move |tx| dead_letters::drop_all(tx, &letters)).await
    }
}

/// Returns aggregates whose wait for a missing event has expired.
fn due(conn: &Connection, consumer: Option<&str>, limit: u32) -> Result<Vec<(String, Aggregate)>, Failure> {
    let mut due = conn.prepare_cached(sql!("inbox/due_gaps"))?;
    let due = due.query_map((now_ms(), consumer, limit), |row| Ok((row.get(0)?, aggregate(row, 1)?)))?;
    Ok(due.collect::<Sql<_>>()?)
}

fn give_up(conn: &Connection, consumer: Option<&str>, limit: u32) -> Result<GivenUp, Failure> {
    let mut given_up = GivenUp::default();
    for (consumer, aggregate) in due(conn, consumer, limit.min(100))? {
        let left = u64::from(limit).saturating_sub(given_up.letters);
        let Some(left) = u32::try_from(left).ok().filter(|&left| left > 0) else { break };
        let seat = ConsumerAggregate { conn, consumer: &consumer, aggregate: &aggregate };
        let missing = seat.stand()?.map_or(1, |stand| stand.last.sequence + 1);
        let wait_s = settings(conn, &consumer)?.gap_wait.as_secs_f64();
        given_up.letters +=
            seat.give_up(&format!("sequence {missing} did not arrive within {wait_s} s"), left)?;
        given_up.gaps += 1;
    }
    Ok(given_up)
}

fn aggregate(row: &Row<'_>, at: usize) -> Sql<Aggregate> {
    Ok(Aggregate { kind: row.get(at)?, id: row.get(at + 1)? })
}

fn gap(row: &Row<'_>) -> Sql<Gap> {
    Ok(Gap {
        consumer: row.get(0)?,
        aggregate: aggregate(row, 1)?,
        missing: row.get(3)?,
        parked: row.get(4)?,
        gives_up_at: row::time(row, 5)?,
    })
}

fn view(row: &Row<'_>) -> Sql<ConsumerView> {
    let name: String = row.get(0)?;
    let says: Option<i64> = row.get(1)?;
    let consumer = if says.is_some() { read_settings(row, name, 1)? } else { Consumer::new(name) };
    let count = |column| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.unsigned_abs());
    Ok(ConsumerView {
        consumer,
        aggregates: count(5)?,
        parked: count(6)?,
        dead: count(7)?,
        duplicates: count(8)?,
    })
}

pub(crate) fn dead_letter(row: &Row<'_>) -> Sql<DeadLetter> {
    let came = row.get::<_, Option<Vec<u8>>>(1)?.is_some();
    Ok(DeadLetter {
        id: LetterId(row.get(0)?),
        consumer: row.get(9)?,
        aggregate: aggregate(row, 2)?,
        sequences: row.get(4)?..=row.get(10)?,
        reason: row::word(row, 11)?,
        why: row.get(12)?,
        event: came.then(|| read_event(row)).transpose()?.map(|logged| logged.event),
        dead_at: row::time(row, 13)?,
    })
}

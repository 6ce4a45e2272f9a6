//! Limits: settings by operators and configurations, and the rates of kinds in a claim.

use std::collections::HashMap;

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::limit::{Limit, LimitView, Rate, Source, Target, class_of};
use milepost_core::port::{LimitStore, StoreResult};
use milepost_core::precedence::Put;
use milepost_core::sql;
use rusqlite::{Connection, Row};

use crate::clock::{micros, now_ms};
use crate::command::Hint;
use crate::error::Failure;
use crate::group::Bucket;
use crate::store::SqliteStore;
use crate::{group, row};

#[async_trait]
impl LimitStore for SqliteStore {
    async fn put_limit(&self, limit: &Limit, source: Source) -> StoreResult<Put> {
        limit.check()?;
        let limit = limit.clone();
        let action = AuditedAction::put_limit(&limit.target);
        self.act("put_limit", Hint::READY, action, move |tx| put(tx, &limit, source)).await
    }

    async fn remove_limit(&self, target: &Target, source: Source) -> StoreResult<bool> {
        let (action, target) = (AuditedAction::remove_limit(target), target.clone());
        self.act("remove_limit", Hint::READY, action, move |tx| remove(tx, &target, source)).await
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        self.read("limits", list).await
    }
}

fn put(conn: &Connection, limit: &Limit, source: Source) -> Result<Put, Failure> {
    let source = source.as_str();
    let written = match (&limit.target, limit.rate) {
        (Target::Kind(kind), Some(rate)) => {
            let Rate { per_second, burst } = rate;
            let limit = (kind, per_second, burst, rate.portion(), micros(now_ms()), source);
            conn.prepare_cached(sql!("put_kind_limit"))?.execute(limit)?
        }
        (Target::Kind(_), None) => 1,
        (Target::Group(name), rate) => {
            let (per_second, burst) = rate.map(|rate| (rate.per_second, rate.burst)).unzip();
            let limit = (name, limit.slots, per_second, burst, source);
            convert_debts(conn, name, per_second, source)?;
            let written = conn.prepare_cached(sql!("put_group_limit"))?.execute(limit)?;
            look_at_groups(conn, name)?;
            written
        }
    };
    Ok(if written == 1 { Put::Stands } else { Put::Foreign })
}

fn remove(conn: &Connection, target: &Target, source: Source) -> Result<bool, Failure> {
    let source = source.as_str();
    match target {
        Target::Kind(kind) => {
            Ok(conn.prepare_cached(sql!("remove_kind_limit"))?.execute((kind, source))? == 1)
        }
        Target::Group(name) => {
            convert_debts(conn, name, None, source)?;
            let removed = conn.prepare_cached(sql!("remove_group_limit"))?.execute((name, source))? == 1;
            look_at_groups(conn, name)?;
            Ok(removed)
        }
    }
}

/// Converts the debts of groups to the rate that will apply to them.
fn convert_debts(
    conn: &Connection,
    name: &str,
    per_second: Option<f64>,
    source: &str,
) -> Result<(), Failure> {
    conn.prepare_cached(sql!("convert_debts"))?.execute((name, per_second, micros(now_ms()), source))?;
    Ok(())
}

/// Assigns the slots that a changed limit of this name now allows.
fn look_at_groups(conn: &Connection, name: &str) -> Result<(), Failure> {
    let mut statement = conn.prepare_cached(sql!("groups_with_buckets"))?;
    let mut groups =
        statement.query_map([name], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let now_ms = now_ms();
    groups.extend(group::unfilled(conn, now_ms)?);
    group::fill_all(conn, &groups, now_ms).map(drop)
}

fn list(conn: &Connection) -> Result<Vec<LimitView>, Failure> {
    let now_ms = now_ms();
    let mut kinds = conn.prepare_cached(sql!("list_kind_limits"))?;
    let kinds = kinds.query_map([now_ms], |row| {
        let rate = Rate::new(row.get(1)?, row.get(2)?);
        Ok(LimitView {
            limit: Limit::kind(row.get::<_, String>(0)?, rate),
            source: row::word(row, 3)?,
            tokens: Some(rate.tokens(row.get(4)?, micros(now_ms))),
            holders: row.get(5)?,
            waiting: row.get(6)?,
        })
    })?;
    let mut groups = conn.prepare_cached(sql!("list_group_limits"))?;
    let groups = groups.query_map((), |row| read_group(row, now_ms))?;
    Ok(row::readable("limits", kinds.chain(groups))?)
}

fn read_group(row: &Row<'_>, now_ms: i64) -> rusqlite::Result<LimitView> {
    let name: String = row.get(0)?;
    let rate = row::rate_opt(row, 2)?;
    let bucket =
        Bucket::new(row.get::<_, Option<_>>(5)?.unwrap_or(0), row.get::<_, Option<_>>(6)?.unwrap_or(0));
    let now_us = micros(now_ms);
    let tokens = |rate: Rate| rate.tokens(bucket.full_without_reserved_us(rate, now_us), now_us);
    let is_class = class_of(&name).as_ref() == Some(&name);
    Ok(LimitView {
        tokens: rate.filter(|_| !is_class).map(tokens),
        limit: Limit { target: Target::Group(name), slots: row.get(1)?, rate },
        source: row::word(row, 4)?,
        holders: row.get(7)?,
        waiting: row.get(8)?,
    })
}

/// The kinds that have a rate, and how many jobs of each a claim may still take.
pub(crate) struct Gates(HashMap<String, Gate>);

struct Gate {
    rate: Rate,
    full_at_us: i64,
    left: u32,
    taken: u32,
}

impl Gate {
    /// The gate of a kind whose limit another program has set to a value that cannot be read.
    const CLOSED: Self = Self { rate: Rate { per_second: 1.0, burst: 1 }, full_at_us: 0, left: 0, taken: 0 };

    fn read(row: &Row<'_>, now_ms: i64) -> rusqlite::Result<Self> {
        let (rate, full_at_us) = (Rate::new(row.get(1)?, row.get(2)?), row.get(3)?);
        let left = rate.allows(full_at_us, micros(now_ms));
        Ok(Self { rate, full_at_us, left, taken: 0 })
    }
}

impl Gates {
    pub(crate) fn load(conn: &Connection, now_ms: i64) -> rusqlite::Result<Self> {
        let mut statement = conn.prepare_cached(sql!("kind_limits"))?;
        let gates = statement.query_map((), |row| {
            let kind = row::text_opt(row, 0)?.unwrap_or_default();
            let gate = Gate::read(row, now_ms).unwrap_or_else(|error| {
                tracing::error!(kind, %error, "the limit of a kind cannot be read; none of its jobs starts");
                Gate::CLOSED
            });
            Ok((kind, gate))
        })?;
        gates.collect::<rusqlite::Result<_>>().map(Self)
    }

    /// Returns how many of `want` jobs of a kind may be claimed.
    pub(crate) fn allowed(&self, kind: &str, want: usize) -> usize {
        self.0.get(kind).map_or(want, |gate| want.min(usize::try_from(gate.left).unwrap_or(usize::MAX)))
    }

    /// Counts claimed jobs of a kind.
    pub(crate) fn took(&mut self, kind: &str, taken: usize) {
        if let Some(gate) = self.0.get_mut(kind) {
            let taken = u32::try_from(taken).unwrap_or(u32::MAX);
            gate.left = gate.left.saturating_sub(taken);
            gate.taken = gate.taken.saturating_add(taken);
        }
    }

    /// Debits the claimed jobs.
    pub(crate) fn close(self, conn: &Connection, now_ms: i64) -> rusqlite::Result<()> {
        for (kind, gate) in self.0.into_iter().filter(|(_, gate)| gate.taken > 0) {
            let full_at_us = gate.rate.debit(gate.full_at_us, micros(now_ms), gate.taken);
            conn.prepare_cached(sql!("debit_kind"))?.execute((kind, full_at_us))?;
        }
        Ok(())
    }
}

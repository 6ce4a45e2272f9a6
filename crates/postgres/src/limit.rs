//! Implementation of the port of limits.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::error::StoreError;
use milepost_core::limit::{Limit, LimitView, Rate, Source, Target};
use milepost_core::port::{LimitStore, StoreResult};
use milepost_core::precedence::Put;
use milepost_core::sql;

use crate::row;
use crate::session::Repeatable;
use crate::store::PostgresStore;

/// Interval and number of attempts to lower a limit while slots are being assigned.
const TRY_EVERY: Duration = Duration::from_millis(20);
const TRIES: u32 = 250;

#[async_trait]
impl LimitStore for PostgresStore {
    async fn put_limit(&self, limit: &Limit, source: Source) -> StoreResult<Put> {
        limit.check()?;
        match (&limit.target, limit.rate) {
            (Target::Kind(kind), Some(rate)) => self.put_kind_limit(kind, rate, source).await,
            (Target::Kind(_), None) => Ok(Put::Stands),
            (Target::Group(name), rate) => {
                let action = AuditedAction::put_limit(&limit.target);
                let stands = self.put_group_limit(&action, name, limit.slots, rate, source).await?;
                self.fill_free_groups().await?;
                Ok(if stands { Put::Stands } else { Put::Foreign })
            }
        }
    }

    async fn remove_limit(&self, target: &Target, source: Source) -> StoreResult<bool> {
        let action = AuditedAction::remove_limit(target);
        match target {
            Target::Kind(kind) => {
                let query = sqlx::query(sql!("remove_kind_limit")).bind(kind.clone()).bind(source.as_str());
                let query = Repeatable::of(query);
                let removed =
                    self.act(&self.inner.hot, &action, async |session| session.row(query).await).await;
                removed.map(|removed| removed.is_some()).map_err(|e| self.fail("remove_limit", e))
            }
            Target::Group(name) => {
                let removed = self.put_group_limit(&action, name, None, None, source).await?;
                self.fill_free_groups().await?;
                Ok(removed)
            }
        }
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        let rows = self.inner.calm.rows(sqlx::query(sql!("limits"))).await;
        self.listed("limits", rows, row::limit_view)
    }
}

impl PostgresStore {
    async fn put_kind_limit(&self, kind: &str, rate: Rate, source: Source) -> StoreResult<Put> {
        let query = sqlx::query(sql!("put_kind_limit"))
            .bind(kind.to_owned())
            .bind(rate.per_second)
            .bind(rate.burst.cast_signed())
            .bind(rate.portion().cast_signed())
            .bind(source.as_str());
        let action = AuditedAction::put_limit(&Target::Kind(kind.to_owned()));
        let query = Repeatable::of(query);
        let stands = self.act(&self.inner.hot, &action, async |session| session.row(query).await).await;
        let stands = stands.map_err(|e| self.fail("put_limit", e))?;
        Ok(if stands.is_some() { Put::Stands } else { Put::Foreign })
    }

    /// Creates, changes or removes (neither slots nor rate) a group's limit; returns whether it did. When the limit is
    /// lowered, transactions that assign slots of these groups must end first. This function retries instead of queueing for
    /// their lock, because transactions that end jobs would have to wait behind it.
    async fn put_group_limit(
        &self,
        action: &AuditedAction,
        name: &str,
        slots: Option<u32>,
        rate: Option<Rate>,
        source: Source,
    ) -> StoreResult<bool> {
        for _ in 0..TRIES {
            let query = sqlx::query(sql!("put_group_limit"))
                .bind(name.to_owned())
                .bind(slots.map(u32::cast_signed))
                .bind(rate.map(|rate| rate.per_second))
                .bind(rate.map(|rate| rate.burst.cast_signed()))
                .bind(rate.map(|rate| rate.portion().cast_signed()))
                .bind(source.as_str());
            let query = Repeatable::of(query);
            let row = self.act(&self.inner.hot, action, async |session| session.row(query).await).await;
            let done = row.and_then(row::value::<Option<bool>>);
            let done = done.map_err(|e| self.fail("put_limit", e))?;
            if let Some(done) = done {
                return Ok(done);
            }
            tokio::time::sleep(TRY_EVERY).await;
        }
        Err(StoreError::Held {
            verb: "put_limit",
            cause: format!("a transaction that enqueues jobs of {name} is still open").into(),
        })
    }
}

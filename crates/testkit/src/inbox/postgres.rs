//! Transactions of consumers on PostgreSQL.

use std::sync::Arc;

use async_trait::async_trait;
use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_core::inbox::Received;
use milepost_core::port::StoreResult;
use milepost_postgres::{PostgresStore, pooled};
use sqlx::{Executor, PgPool, Postgres, Transaction};

use super::{Desk, Taking, Transactions};

struct Calls {
    pool: PgPool,
    pooled: bool,
}

struct Call {
    tx: Transaction<'static, Postgres>,
    pooled: bool,
}

impl Desk {
    /// Returns a consumer's database on PostgreSQL. `pooled`: through a transaction pooler.
    pub async fn postgres(store: PostgresStore, pooled: bool) -> Self {
        let pool = store.pool().clone();
        let table = "create table if not exists public.inbox_effect (pos bigint generated always as identity, consumer text not null, aggregate_id text not null, seq bigint not null)";
        pool.execute(table).await.expect("cannot create the table of effects");
        Self { store: Arc::new(store), transactions: Arc::new(Calls { pool, pooled }) }
    }
}

#[async_trait]
impl Transactions for Calls {
    async fn begin(&self) -> Box<dyn Taking> {
        let tx = self.pool.begin().await.expect("begun");
        Box::new(Call { tx, pooled: self.pooled })
    }

    async fn effects(&self) -> Vec<(String, String, i64)> {
        // Needs a transaction: outside of one, a pooler may send each message to a different server connection.
        let mut tx = self.pool.begin().await.expect("begun");
        sqlx::query_as("select consumer, aggregate_id, seq from public.inbox_effect order by pos")
            .persistent(false)
            .fetch_all(&mut *tx)
            .await
            .expect("answered")
    }

    async fn age(&self) {
        let mut tx = self.pool.begin().await.expect("begun");
        for sql in [
            "update milepost.aggregate_checkpoint set gives_up_at = gives_up_at - interval '1 hour'",
            "update milepost.inbox_parked set parked_at = parked_at - interval '1 hour'",
            "update milepost.inbox_dead set dead_at = dead_at - interval '1 hour'",
            "update milepost.processed_event set processed_at = processed_at - interval '1 hour'",
        ] {
            sqlx::query(sql).persistent(false).execute(&mut *tx).await.expect("aged");
        }
        tx.commit().await.expect("committed");
    }
}

#[async_trait]
impl Taking for Call {
    async fn once(&mut self, consumer: &str, event: EventId) -> StoreResult<bool> {
        if self.pooled {
            return pooled::once(&mut self.tx, consumer, event).await;
        }
        milepost_postgres::once(&mut self.tx, consumer, event).await
    }

    async fn receive(&mut self, consumer: &str, event: &Event) -> StoreResult<Received> {
        if self.pooled {
            return pooled::receive(&mut self.tx, consumer, event).await;
        }
        milepost_postgres::receive(&mut self.tx, consumer, event).await
    }

    async fn next_parked(&mut self, consumer: &str, aggregate: &Aggregate) -> StoreResult<Option<Event>> {
        if self.pooled {
            return pooled::next_parked(&mut self.tx, consumer, aggregate).await;
        }
        milepost_postgres::next_parked(&mut self.tx, consumer, aggregate).await
    }

    async fn expect_from(
        &mut self,
        consumer: &str,
        aggregate: &Aggregate,
        sequence: i64,
    ) -> StoreResult<bool> {
        if self.pooled {
            return pooled::expect_from(&mut self.tx, consumer, aggregate, sequence).await;
        }
        milepost_postgres::expect_from(&mut self.tx, consumer, aggregate, sequence).await
    }

    async fn effect(&mut self, consumer: &str, event: &Event) {
        sqlx::query("insert into public.inbox_effect (consumer, aggregate_id, seq) values ($1, $2, $3)")
            .bind(consumer)
            .bind(&event.aggregate.id)
            .bind(event.sequence)
            .persistent(false)
            .execute(&mut *self.tx)
            .await
            .expect("an effect");
    }

    async fn commit(self: Box<Self>) {
        self.tx.commit().await.expect("committed");
    }

    async fn roll_back(self: Box<Self>) {
        self.tx.rollback().await.expect("rolled back");
    }

    async fn die(mut self: Box<Self>) {
        let died = self.tx.execute("select pg_terminate_backend(pg_backend_pid())").await;
        assert!(died.is_err(), "the connection was not terminated");
    }
}

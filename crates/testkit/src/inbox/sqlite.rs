//! Transactions of consumers on SQLite, each with a separate thread and connection.

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_core::inbox::Received;
use milepost_core::port::StoreResult;
use milepost_sqlite::SqliteStore;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::{Desk, Taking, Transactions};

/// How long to wait for another writer.
const BUSY: Duration = Duration::from_secs(30);

struct Files(PathBuf);

type Step = Box<dyn FnOnce(&Transaction<'_>) + Send>;

struct Call {
    steps: mpsc::Sender<Step>,
    ended: oneshot::Receiver<()>,
    end: mpsc::Sender<bool>,
}

impl Desk {
    /// Returns a consumer's database in a temporary file, which is removed with it.
    pub async fn temporary() -> Self {
        Self::sqlite(SqliteStore::temporary().await.expect("cannot create a temporary store"))
    }

    /// Returns a consumer's database in a SQLite file.
    pub fn sqlite(store: SqliteStore) -> Self {
        let path = store.path().to_owned();
        let table = "CREATE TABLE IF NOT EXISTS inbox_effect (pos INTEGER PRIMARY KEY, consumer TEXT NOT NULL, aggregate_id TEXT NOT NULL, seq INTEGER NOT NULL)";
        open(&path).execute(table, ()).expect("cannot create the table of effects");
        Self { store: Arc::new(store), transactions: Arc::new(Files(path)) }
    }
}

fn open(path: &PathBuf) -> Connection {
    let connection = Connection::open(path).expect("cannot open the file");
    connection.busy_timeout(BUSY).expect("set");
    connection
}

#[async_trait]
impl Transactions for Files {
    async fn begin(&self) -> Box<dyn Taking> {
        let (steps, asked) = mpsc::channel::<Step>();
        let (end, how) = mpsc::channel::<bool>();
        let (begins, begun) = oneshot::channel();
        let (ends, ended) = oneshot::channel();
        let path = self.0.clone();
        thread::spawn(move || {
            let mut connection = open(&path);
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).expect("begun");
            begins.send(()).expect("waited for");
            for step in asked {
                step(&tx);
            }
            // A sender that is dropped without a message represents a crash.
            match how.recv() {
                Ok(true) => tx.commit().expect("committed"),
                _ => drop(tx),
            }
            drop(connection);
            let _ = ends.send(());
        });
        begun.await.expect("begun");
        Box::new(Call { steps, ended, end })
    }

    async fn effects(&self) -> Vec<(String, String, i64)> {
        let connection = open(&self.0);
        let mut effects = connection
            .prepare("SELECT consumer, aggregate_id, seq FROM inbox_effect ORDER BY pos")
            .expect("prepared");
        let effects = effects.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        effects.expect("answered").collect::<Result<_, _>>().expect("read")
    }

    async fn age(&self) {
        let older = "
            UPDATE milepost_aggregate_checkpoint SET gives_up_at_ms = gives_up_at_ms - 3600000;
            UPDATE milepost_inbox_parked SET parked_at_ms = parked_at_ms - 3600000;
            UPDATE milepost_inbox_dead SET dead_at_ms = dead_at_ms - 3600000;
            UPDATE milepost_processed_event SET processed_at_ms = processed_at_ms - 3600000;";
        open(&self.0).execute_batch(older).expect("aged");
    }
}

impl Call {
    async fn run<T: Send + 'static>(
        &mut self,
        step: impl FnOnce(&Transaction<'_>) -> T + Send + 'static,
    ) -> T {
        let (answers, answer) = oneshot::channel();
        let step: Step = Box::new(move |tx| drop(answers.send(step(tx))));
        self.steps.send(step).expect("the transaction is open");
        answer.await.expect("answered")
    }

    async fn end(self, commit: bool) {
        drop(self.steps);
        self.end.send(commit).expect("the transaction is open");
        self.ended.await.expect("ended");
    }
}

#[async_trait]
impl Taking for Call {
    async fn once(&mut self, consumer: &str, event: EventId) -> StoreResult<bool> {
        let consumer = consumer.to_owned();
        self.run(move |tx| milepost_sqlite::once(tx, &consumer, event)).await
    }

    async fn receive(&mut self, consumer: &str, event: &Event) -> StoreResult<Received> {
        let (consumer, event) = (consumer.to_owned(), event.clone());
        self.run(move |tx| milepost_sqlite::receive(tx, &consumer, &event)).await
    }

    async fn next_parked(&mut self, consumer: &str, aggregate: &Aggregate) -> StoreResult<Option<Event>> {
        let (consumer, aggregate) = (consumer.to_owned(), aggregate.clone());
        self.run(move |tx| milepost_sqlite::next_parked(tx, &consumer, &aggregate)).await
    }

    async fn expect_from(
        &mut self,
        consumer: &str,
        aggregate: &Aggregate,
        sequence: i64,
    ) -> StoreResult<bool> {
        let (consumer, aggregate) = (consumer.to_owned(), aggregate.clone());
        self.run(move |tx| milepost_sqlite::expect_from(tx, &consumer, &aggregate, sequence)).await
    }

    async fn effect(&mut self, consumer: &str, event: &Event) {
        let (consumer, id, sequence) = (consumer.to_owned(), event.aggregate.id.clone(), event.sequence);
        self.run(move |tx| {
            let effect = "INSERT INTO inbox_effect (consumer, aggregate_id, seq) VALUES (?1, ?2, ?3)";
            tx.execute(effect, (consumer, id, sequence)).expect("an effect");
        })
        .await;
    }

    async fn commit(self: Box<Self>) {
        self.end(true).await;
    }

    async fn roll_back(self: Box<Self>) {
        self.end(false).await;
    }

    async fn die(self: Box<Self>) {
        let Self { steps, ended, end } = *self;
        drop((steps, end));
        ended.await.expect("ended");
    }
}

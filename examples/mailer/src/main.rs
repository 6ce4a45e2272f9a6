//! Creates a job for each address in the arguments; without arguments, runs the jobs until Ctrl-C.

use std::sync::Arc;

use mailer::{Mail, send};
use milepost::{Job, Store, Worker};
use milepost_sqlite::{SqliteOptions, SqliteStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = SqliteStore::open("milepost.db", SqliteOptions::default())?;
    store.migrate().await?;
    let store: Arc<dyn Store> = Arc::new(store);

    let addresses: Vec<String> = std::env::args().skip(1).collect();
    if addresses.is_empty() {
        let worker = Worker::builder(store).handle(send).start().await?;
        tokio::signal::ctrl_c().await?;
        worker.shutdown().await;
        return Ok(());
    }
    for to in addresses {
        let key = format!("welcome-{to}");
        let enqueued = store.enqueue(&Mail { to }.to_job()?.key(key)).await?;
        println!("{}", if enqueued.duplicate { "duplicate" } else { "created" });
    }
    Ok(())
}

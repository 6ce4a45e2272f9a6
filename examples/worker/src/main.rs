//! Runs the shop's jobs until SIGTERM or Ctrl-C asks it to stop.

use anyhow::{Context, Result};
use example_worker::{Shop, worker};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_env_filter("info,sqlx=error").with_writer(std::io::stderr).init();
    let address = std::env::var("MILEPOST_STORE").unwrap_or_else(|_| "sqlite:shop.db".to_owned());
    let shop = Shop::open(&address).await.context("cannot use the store in MILEPOST_STORE")?;
    // Registered first, so that an early signal is not lost.
    let mut terminate = signal(SignalKind::terminate())?;
    let worker = worker(&shop).start().await?;
    tracing::info!("running; press Ctrl-C to stop");

    tokio::select! {
        _ = terminate.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    tracing::info!("stopping: waiting for running jobs, or handing them back");
    worker.shutdown().await;
    Ok(())
}

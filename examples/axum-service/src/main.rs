//! Serves orders on the loopback address until Ctrl-C.

use anyhow::{Context, Result};
use example_axum_service::{prepare, service};
use milepost_postgres::{PostgresOptions, PostgresStore};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_env_filter("info,sqlx=error").with_writer(std::io::stderr).init();
    let url = std::env::var("MILEPOST_STORE").context("MILEPOST_STORE is not a PostgreSQL database")?;
    let store = PostgresStore::connect(&url, PostgresOptions::default()).await?;
    prepare(&store).await?;
    let address = std::env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".to_owned());
    let listener =
        TcpListener::bind(&address).await.with_context(|| format!("cannot listen on {address}"))?;
    tracing::info!("accepting orders on http://{}", listener.local_addr()?);
    let leave = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(%error, "cannot listen for Ctrl-C");
        }
    };
    axum::serve(listener, service(store)).with_graceful_shutdown(leave).await?;
    Ok(())
}

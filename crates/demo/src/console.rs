//! The console without the API, for the demo.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use milepost::RetentionPolicy;
use milepost_cli_support::operations;
use milepost_cli_support::output;
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_server::Options;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The preferred port; another free port is used if it is taken.
const PORT: u16 = 7070;

/// Serves the console of a store on the loopback address, prints its URL, and runs until `stop`.
pub(crate) async fn show(address: &StoreAddress, stop: CancellationToken) -> Result<()> {
    let database = store::open_database(address, Schema::MadeWhenEmpty).await?;
    let listener = listen().await.context("cannot listen for the console")?;
    let operations = operations::start(&database, RetentionPolicy::default()).await?;
    output::note(format_args!("console: http://{} (Ctrl-C stops it)", listener.local_addr()?));
    let served = milepost_server::serve(listener, database.store(), Options::default(), stop).await;
    operations.shutdown().await;
    Ok(served?)
}

async fn listen() -> std::io::Result<TcpListener> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpListener::bind(at(PORT)).await {
        Err(error) if error.kind() == ErrorKind::AddrInUse => TcpListener::bind(at(0)).await,
        listener => listener,
    }
}

//! `milepost serve`: the HTTP API.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::log::LogFormat;
use crate::output::Outcome;
use crate::signals::Signals;
use crate::store::{self, Schema, StoreAddress};

const HELP: &str = "\
The API is described at /openapi.json; /healthz says that the process lives,
/readyz that the store answers too. No token is asked for, so the server answers
programs of this machine only.

SIGTERM or SIGINT: requests that are under way are answered. A second one ends
at once.

Examples:
  milepost serve
  milepost --store postgres://app@db.internal/shop serve --listen 127.0.0.1:8080
  curl -H 'Content-Type: application/json' -d '{\"kind\": \"mail\"}' http://127.0.0.1:7070/v1/jobs";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070", env = "MILEPOST_LISTEN")]
    listen: SocketAddr,
    /// How all on stderr is written
    #[arg(long, default_value = "text", env = "MILEPOST_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
}

pub(crate) async fn run(args: ServeArgs, address: &StoreAddress) -> Result<Outcome> {
    if !args.listen.ip().is_loopback() {
        bail!(
            "{} is not an address of this machine alone, and the server asks for no token; listen at 127.0.0.1",
            args.listen
        );
    }
    let mut signals = Signals::listen()?;
    let store = tokio::select! {
        store = store::open(address, Schema::MadeWhenEmpty) => store?,
        signal = signals.next() => return Ok(Outcome::Interrupted(signal)),
    };
    let listener =
        TcpListener::bind(args.listen).await.with_context(|| format!("cannot listen at {}", args.listen))?;
    tracing::info!(store = %address, "serving http://{}", listener.local_addr()?);
    let stop = CancellationToken::new();
    let serving = tokio::spawn(milepost_server::serve(listener, store, Vec::new(), stop.clone()));
    until_stopped(serving, &mut signals, &stop).await
}

/// Waits for a signal, then for the requests that are under way; a second signal is for those who cannot wait.
async fn until_stopped(
    mut serving: JoinHandle<std::io::Result<()>>,
    signals: &mut Signals,
    stop: &CancellationToken,
) -> Result<Outcome> {
    tokio::select! {
        ended = &mut serving => {
            ended?.context("the server cannot go on")?;
            return Ok(Outcome::Done);
        }
        signal = signals.next() => tracing::info!("signal {signal}: answering the requests that are under way"),
    }
    stop.cancel();
    tokio::select! {
        ended = serving => ended?.context("the server did not end well").map(|()| Outcome::Done),
        signal = signals.next() => Ok(Outcome::Interrupted(signal)),
    }
}

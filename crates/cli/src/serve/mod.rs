//! `milepost serve`: the HTTP API, and the workers and relay of a configuration, in one process.

mod access;
mod numbers;
mod parts;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Error, Result, bail};
use clap::{Args, ValueEnum};
use milepost_cli_support::log_format::LogFormat;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::{StoreAddress, StoreWait};
use milepost_server::{Options, ServerError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::access::AccessArgs;
use self::numbers::PoolNumbers;
use self::parts::{Part, Parts};
use crate::config::Config;
use crate::redis::RedisArgs;
use crate::selection::Selection;
use crate::signals::{self, Signals};
use crate::work::At;

const HELP: &str = "\
Runs everything in one process: the console, the API, workers for the
configured kinds and bulk jobs, publishers for the configured subscriptions, and
messages to the configured targets of alerts. Without --config, the file
milepost.toml is read if it exists. With --only, other parts do not run;
/healthz, /readyz and /metrics are served in any case.

The console is at /, the description of the API at /openapi.json. /healthz
shows that the process is alive, /readyz that the store responds, too.

While the store has no tokens, all programs on this machine have full access.
As soon as it has one (`milepost tokens create`), every client needs a token.
An address that other machines reach needs tokens and TLS; --insecure-no-tokens
and --insecure-no-tls turn these checks off.

SIGTERM or SIGINT: open requests are answered, running jobs get `drain` to end,
and deliveries in progress are completed. A second signal, at least one second
later, ends the process immediately.

Examples:
  milepost serve
  milepost serve --only relay --listen 127.0.0.1:7071
  milepost --store postgres://app@db.internal/shop serve --listen 127.0.0.1:8080
  milepost serve --listen 0.0.0.0:7070 --tls-cert cert.pem --tls-key key.pem
  curl -H 'Content-Type: application/json' -d '{\"kind\": \"mail\"}' \\
    http://127.0.0.1:7070/v1/jobs";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ServeArgs {
    /// Only this part; may be given several times
    #[arg(long, value_name = "PART", value_enum)]
    only: Vec<Part>,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    redis: RedisArgs,
    #[command(flatten)]
    store: StoreWait,
    /// The format of all output on stderr
    #[arg(long, default_value = "text", env = "MILEPOST_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
}

impl ServeArgs {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// Rejects a part without any work in the configuration.
    fn check(&self, config: Option<&Config>) -> Result<()> {
        for part in &self.only {
            if !part.has_anything_to_do(config) {
                bail!("there is nothing to {}: the configuration has no {}", part.verb(), part.sections());
            }
        }
        Ok(())
    }
}

pub(crate) async fn run(args: ServeArgs, selection: &Selection) -> Result<Outcome> {
    let mut config = selection.config_if_any()?;
    args.check(config.as_ref())?;
    let named = selection.named_store();
    let address = match &config {
        Some(config) => config.address(named),
        None => named.cloned().unwrap_or_default(),
    };
    let mut signals = Signals::listen()?;
    let database = tokio::select! {
        database = args.store.open(&address) => database?,
        signal = signals.next() => return Ok(Outcome::Interrupted(signal)),
    };
    let store = database.store();
    let listen = args.access.listen(config.as_ref());
    let options = args.access.options(config.as_mut());
    let check = async || access::check(&options, listen, store.as_ref()).await;
    let stop = CancellationToken::new();
    let configured_redis = config.as_mut().and_then(|config| config.redis.take());
    let coordination = if args.wants(Part::Api) || args.wants(Part::Work) {
        args.redis.helper(configured_redis)
    } else {
        None
    };
    let configuration = config.as_ref().map(|_| selection.file().to_owned());
    let configured = config.zip(configuration.clone());
    let pools = PoolNumbers(database.clone());
    let at = At { database, address: address.clone(), wait: args.store };
    let start = async {
        args.store.until_reachable(&address, check).await?;
        let listener = listener(listen).await?;
        Ok((listener, Parts::start(&args, configured, coordination.clone(), at, &stop).await?))
    };
    let begun = signals.during(start).await?;
    let (listener, parts) = match (begun.started, begun.signal) {
        (Some(started), None) => started,
        (Some((_, parts)), Some(_)) => {
            stop.cancel();
            return leave(parts, &mut signals).await;
        }
        (None, signal) => {
            stop.cancel();
            return Ok(Outcome::Interrupted(signal.unwrap_or_default()));
        }
    };
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    tracing::info!(store = %address, "serving {scheme}://{}", listener.local_addr()?);
    let about = about(&address, configuration, &args);
    let mut counts = parts.counts();
    counts.push(Box::new(pools));
    let options = Options { counts, about, api: args.wants(Part::Api), coordination, ..options };
    let serving = tokio::spawn(milepost_server::serve(listener, store, options, stop.clone()));
    until_stopped(serving, parts, &mut signals, &stop).await
}

async fn listener(listen: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(listen).await.map_err(|e| {
        let why = access::unheard(listen, &e);
        Error::new(e).context(why)
    })
}

/// Waits for the work in progress after a signal during the start; a second signal ends the process immediately.
async fn leave(parts: Parts, signals: &mut Signals) -> Result<Outcome> {
    tokio::select! {
        ended = parts.leave() => ended.map(|()| Outcome::Done),
        signal = signals.next() => Ok(Outcome::Interrupted(signal)),
    }
}

/// Returns what the console shows about this process.
fn about(
    address: &StoreAddress,
    configuration: Option<PathBuf>,
    args: &ServeArgs,
) -> Vec<(&'static str, String)> {
    let configuration = configuration.map_or_else(|| "none".to_owned(), |file| file.display().to_string());
    let parts: Vec<&str> =
        Part::value_variants().iter().filter(|part| args.wants(**part)).map(|part| part.verb()).collect();
    vec![("store", address.to_string()), ("configuration", configuration), ("parts", parts.join(", "))]
}

/// Waits for a signal, or until a part cannot continue, then for the work in progress; a second signal ends the process immediately.
async fn until_stopped(
    mut serving: JoinHandle<Result<(), ServerError>>,
    mut parts: Parts,
    signals: &mut Signals,
    stop: &CancellationToken,
) -> Result<Outcome> {
    let mut failed = None;
    tokio::select! {
        ended = &mut serving => {
            ended?.context("the server cannot continue")?;
            return Ok(Outcome::Done);
        }
        failure = parts.failed() => {
            tracing::error!("{}; completing work in progress", output::causes(&failure));
            failed = Some(failure);
        }
        signal = signals.next() => tracing::info!("{}: completing work in progress", signals::name(signal)),
    }
    stop.cancel();
    let ending = async {
        parts.leave().await?;
        serving.await?.context("the server did not shut down cleanly")
    };
    tokio::select! {
        ended = ending => failed.map_or(ended, Err).map(|()| Outcome::Done),
        signal = signals.next() => Ok(Outcome::Interrupted(signal)),
    }
}

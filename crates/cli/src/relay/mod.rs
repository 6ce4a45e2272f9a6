//! `milepost relay`: publishes events to the sinks of a configuration.

mod publishers;

use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use milepost_cli_support::log_format::LogFormat;
use milepost_cli_support::output::Outcome;
use milepost_cli_support::store::StoreWait;
use tokio_util::sync::CancellationToken;

pub(crate) use self::publishers::Publishers;
use crate::config::Config;
use crate::nearest::nearest;
use crate::selection::Selection;
use crate::signals::{self, Signals};

const HELP: &str = "\
Any number of relays share the work: the log of each subscription has 64 slots
(one on SQLite), which the relays divide among themselves. If a relay dies, the
others take its slots when its lease has expired.

Delivery to a broker that is unavailable, also at the start, is retried without
limit; `milepost events subscriptions` and the log report the error.

Like workers, a relay deletes events that all subscriptions have processed, in
small batches, when they are older than `[retention] events` of the
configuration (default: 7 days).

SIGTERM or SIGINT: deliveries in progress are completed and recorded. A second
signal ends the process immediately; some events are then published again, with
the same ids.

Exit status: 0 normal shutdown, 1 failure, 2 wrong usage or an invalid
configuration, 128 plus the signal number after a second signal that came at
least one second later.

Examples:
  milepost relay
  milepost relay --config /etc/milepost.toml --only orders --log-format json";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RelayArgs {
    /// Only this subscription; may be given several times
    #[arg(long = "only", value_name = "SUBSCRIPTION")]
    only: Vec<String>,
    /// The relay's display name [default: host and process id]
    #[arg(long, env = "MILEPOST_RELAY_NAME")]
    name: Option<String>,
    #[command(flatten)]
    store: StoreWait,
    /// The format of all output on stderr
    #[arg(long, default_value = "text", env = "MILEPOST_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
}

pub(crate) async fn run(args: RelayArgs, selection: &Selection) -> Result<Outcome> {
    let mut config = selection.config()?;
    choose(&mut config, &args, selection.file())?;
    let address = config.address(selection.named_store());
    let mut signals = Signals::listen()?;
    let store = tokio::select! {
        database = args.store.open(&address) => database?.store(),
        signal = signals.next() => return Ok(Outcome::Interrupted(signal)),
    };
    let stop = CancellationToken::new();
    let mut publishers = Publishers::start(store, &config, args.name, &stop)?;
    tracing::info!(store = %address, subscriptions = publishers.counted().len(), "the relay runs");
    tokio::select! {
        ended = publishers.ended() => ended.map(|()| Outcome::Done),
        signal = signals.next() => {
            stop.cancel();
            leave(&mut publishers, &mut signals, signal).await
        }
    }
}

/// Waits for the publishing in progress; a second signal ends the process immediately.
async fn leave(publishers: &mut Publishers, signals: &mut Signals, signal: u8) -> Result<Outcome> {
    tracing::info!("{}: completing deliveries in progress", signals::name(signal));
    tokio::select! {
        ended = publishers.ended() => {
            ended?;
            tracing::info!("left");
            Ok(Outcome::Done)
        }
        signal = signals.next() => Ok(Outcome::Interrupted(signal)),
    }
}

/// Removes all subscriptions except the requested ones from the configuration.
fn choose(config: &mut Config, args: &RelayArgs, file: &Path) -> Result<()> {
    let file = file.display();
    let known: Vec<String> = config.subscriptions.keys().cloned().collect();
    for name in &args.only {
        if !known.contains(name) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let meant =
                nearest(name, &known).map_or_else(String::new, |nearest| format!(" Did you mean {nearest}?"));
            bail!("{file} has no subscription {name:?}; it has {}.{meant}", known.join(", "));
        }
    }
    if !args.only.is_empty() {
        config.subscriptions.retain(|name, _| args.only.contains(name));
    }
    if config.subscriptions.is_empty() {
        bail!(
            "{file} has no subscription to publish; add one, such as\n  [subscription.orders]\n  jsonl = {{ path = \"events.jsonl\" }}"
        );
    }
    Ok(())
}

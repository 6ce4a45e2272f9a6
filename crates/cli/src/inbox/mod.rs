//! `milepost inbox`: shows and manages the inboxes of event consumers.

mod consumers;
mod dead;

use anyhow::{Result, bail};
use clap::Subcommand;
use milepost_cli_support::output::Outcome;
use milepost_cli_support::store::{self, Schema};
use milepost_core::inbox::Consumer;
use milepost_core::inbox::listing::ConsumerView;
use milepost_core::port::Store;

use crate::selection::Selection;

#[derive(Debug, Subcommand)]
pub(crate) enum InboxCommand {
    /// List consumers with their settings and counts
    List(consumers::ListArgs),
    /// List gaps: missing events for which others wait
    Gaps(consumers::GapsArgs),
    /// Set how long a consumer waits for missing events
    Set(consumers::SetArgs),
    /// Set the event from which a consumer continues in an aggregate
    Expect(consumers::ExpectArgs),
    /// List dead letters of a consumer, retry or drop them
    Dead(dead::DeadArgs),
    /// Delete old ids of processed events
    Prune(consumers::PruneArgs),
}

impl InboxCommand {
    /// Returns whether the command is read-only.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self, Self::List(_) | Self::Gaps(_))
    }
}

pub(crate) async fn run(command: InboxCommand, selection: &Selection) -> Result<Outcome> {
    let store = store::open(&selection.store()?, Schema::MustFit).await?;
    let store = store.as_ref();
    match command {
        InboxCommand::List(args) => consumers::list(&args, store).await?,
        InboxCommand::Gaps(args) => consumers::gaps(&args, store).await?,
        InboxCommand::Set(args) => consumers::set(args, store).await?,
        InboxCommand::Expect(args) => consumers::expect(&args, store).await?,
        InboxCommand::Dead(args) => dead::run(args, store).await?,
        InboxCommand::Prune(args) => consumers::prune(&args, selection, store).await?,
    }
    Ok(Outcome::Done)
}

/// Returns the consumer if it is known; otherwise its name may be mistyped.
async fn known(name: &str, store: &dyn Store) -> Result<Consumer> {
    let all = store.consumers().await?;
    match all.iter().find(|view| view.consumer.name == name) {
        Some(view) => Ok(view.consumer.clone()),
        None if all.is_empty() => {
            bail!("there is no consumer {name:?}, and no other consumer: `milepost inbox set` creates one")
        }
        None => bail!("there is no consumer {name:?}; there are {}", names(&all)),
    }
}

fn names(all: &[ConsumerView]) -> String {
    let names: Vec<&str> = all.iter().map(|view| view.consumer.name.as_str()).collect();
    names.join(", ")
}

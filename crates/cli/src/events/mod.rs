//! `milepost events`: write facts about aggregates to the log, and read it.

mod emit;
mod follow;
mod tail;

use anyhow::Result;
use clap::Subcommand;
use milepost_core::event::Aggregate;

use crate::output::Outcome;
use crate::store::{self, Schema, StoreAddress};

#[derive(Debug, Subcommand)]
pub(crate) enum EventsCommand {
    /// Write one event to the log
    Emit(emit::EmitArgs),
    /// Show the end of the log, and go on showing what is added
    Tail(tail::TailArgs),
}

impl EventsCommand {
    /// Whether it changes nothing.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self, Self::Tail(_))
    }
}

pub(crate) async fn run(command: EventsCommand, address: &StoreAddress) -> Result<Outcome> {
    match command {
        EventsCommand::Emit(args) => {
            let event = args.event()?;
            emit::run(&args, &event, store::open(address, Schema::MadeWhenEmpty).await?.as_ref()).await
        }
        EventsCommand::Tail(args) => {
            tail::run(args, store::open(address, Schema::MustFit).await?.as_ref()).await
        }
    }
}

/// An aggregate as `TYPE/ID`; what follows the first slash is the id.
fn aggregate(text: &str) -> Result<Aggregate, String> {
    match text.split_once('/') {
        Some((kind, id)) if !kind.is_empty() && !id.is_empty() => Ok(Aggregate::new(kind, id)),
        _ => Err("an aggregate is given as TYPE/ID, as order/17".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aggregate_is_a_type_and_an_id() {
        assert_eq!(aggregate("order/17"), Ok(Aggregate::new("order", "17")));
        assert_eq!(aggregate("file/a/b"), Ok(Aggregate::new("file", "a/b")));
        for text in ["order", "order/", "/17", ""] {
            assert!(aggregate(text).is_err_and(|why| why.contains("order/17")), "{text}");
        }
    }
}

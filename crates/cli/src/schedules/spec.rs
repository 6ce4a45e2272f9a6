//! The schedule options of the command line.

use std::time::Duration;

use clap::Args;
use milepost_cli_support::parsers;
use milepost_core::schedule::{InvalidSchedule, Spec};

#[derive(Debug, Args)]
#[group(required = true, multiple = false, id = "when")]
pub(super) struct When {
    /// A cron expression: 5 fields, 6 with seconds first, or a macro such as @daily
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// An interval in whole seconds; its ticks are the multiples of it since 1970 (UTC)
    #[arg(long, value_name = "DURATION", value_parser = parsers::positive_duration)]
    every: Option<Duration>,
}

impl When {
    /// Builds the schedule specification for a time zone.
    pub(super) fn spec(&self, zone: &str) -> Result<Spec, InvalidSchedule> {
        match self.every {
            Some(interval) => Spec::every(interval),
            None => Spec::parse(self.cron.as_deref().unwrap_or_default(), zone),
        }
    }
}

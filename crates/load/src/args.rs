//! The options of the command.

use std::path::PathBuf;

use clap::Parser;

use crate::scenario::Scenario;
use crate::store_kind::StoreKind;

/// Puts load on a milepost server, disturbs it, and decides whether everything was processed as requested
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    /// The scenario
    #[arg(long, value_enum)]
    pub scenario: Scenario,
    /// The store under load
    #[arg(long, value_enum, default_value = "sqlite")]
    pub store: StoreKind,
    /// How long jobs are created, in seconds; the disturbance is in the second third
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(3..=3600))]
    pub seconds: u64,
    /// The number of jobs created per second
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=20_000))]
    pub rate: u64,
    /// The report: one HTML file
    #[arg(long)]
    pub report: Option<PathBuf>,
    /// The milepost program. The default is the one in the folder of this program
    #[arg(long)]
    pub program: Option<PathBuf>,
}

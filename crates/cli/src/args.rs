//! The command line: the top of the tree and the value parsers that commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use jiff::Timestamp;
use milepost_core::duration::WAIT_MAX;
use milepost_core::ident::JobId;
use milepost_core::job::{Priority, StartAt};
use milepost_core::retention::Keep;
use milepost_core::state::JobState;
use milepost_executors::exec::STORE_VARIABLE;

use crate::audit::AuditArgs;
use crate::batch::BatchCommand;
use crate::bench::BenchCommand;
use crate::bulk::BulkArgs;
use crate::config::command::ConfigCommand;
use crate::demo::{DemoArgs, DemoWorkerArgs};
use crate::doctor::DoctorArgs;
use crate::enqueue::EnqueueArgs;
use crate::events::EventsCommand;
use crate::inbox::InboxCommand;
use crate::jobs::JobsCommand;
use crate::limits::LimitsCommand;
use crate::moving::MoveArgs;
use crate::prune::PruneArgs;
use crate::queues::QueuesCommand;
use crate::relay::RelayArgs;
use crate::schedules::SchedulesCommand;
use crate::serve::ServeArgs;
use crate::tokens::TokensCommand;
use crate::work::WorkArgs;
use crate::workers::WorkersCommand;

const EXAMPLES: &str = "\
Examples:
  milepost demo
  milepost enqueue mail --payload '{\"to\": \"ada@example.org\"}'
  milepost config init && milepost work
  milepost jobs list
  milepost jobs show 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost --store postgres://app@db.internal/app migrate

The store is the one that --store or MILEPOST_STORE names, else the one of the
configuration, else the file milepost.db in the current folder, which the first
`milepost enqueue` creates. Every command but demo and bench reads the store
from the configuration, and prints a store that is not named.
MILEPOST_LOG sets what is logged to stderr (error, warn, info, debug).

Exit status: 0 done, 1 failed, 2 wrong usage.";

/// Runs work that must not be lost, on the database you already have.
#[derive(Debug, Parser)]
#[command(name = "milepost", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// Where the jobs are: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE
    /// [default: that of the configuration, else sqlite:milepost.db; demo: a
    /// temporary file]
    // The value in the environment may hold a password, which help must not show. No default value here:
    // the demo must tell whether a store was named.
    #[arg(long, global = true, env = STORE_VARIABLE, hide_env_values = true, value_name = "ADDRESS")]
    pub(crate) store: Option<String>,

    /// The configuration [default: milepost.toml in the current folder, if it
    /// exists]
    #[arg(long, global = true, env = "MILEPOST_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the store's tables, or bring them to this binary's version
    #[command(after_help = crate::migrate::EXAMPLES)]
    Migrate,
    /// Take a SQLite store to PostgreSQL whole, and go on there
    Move(Box<MoveArgs>),
    /// Enqueue one job, or every line of a file
    Enqueue(Box<EnqueueArgs>),
    /// Run jobs by a configuration file: as HTTP calls and as programs
    Work(Box<WorkArgs>),
    /// Publish events to their sinks by a configuration file, in each aggregate's order
    Relay(Box<RelayArgs>),
    /// Serve the console and the HTTP API, and run what a configuration says beside them
    Serve(Box<ServeArgs>),
    /// Check a configuration file, begin one, print its schema
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look at jobs and intervene: cancel, retry, snooze, abort, resume and more
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Bulk jobs, over many targets: start them, look at them, stop and resume them
    Bulk(Box<BulkArgs>),
    /// Batches, DAGs of jobs: define them, start them, look at them, stop, mend and rerun them
    #[command(subcommand)]
    Batch(Box<BatchCommand>),
    /// Events, facts about aggregates in their order: emit them, read the log
    #[command(subcommand)]
    Events(Box<EventsCommand>),
    /// Inboxes: what consumers of events took in, what waits, what was given up
    #[command(subcommand)]
    Inbox(InboxCommand),
    /// Look at queues, pause and resume them
    #[command(subcommand)]
    Queues(QueuesCommand),
    /// Make jobs again and again: cron expressions with time zones, and intervals
    #[command(subcommand)]
    Schedules(SchedulesCommand),
    /// Look at limits of kinds and groups, set and remove them
    #[command(subcommand)]
    Limits(LimitsCommand),
    /// Look at the workers
    #[command(subcommand)]
    Workers(WorkersCommand),
    /// Tokens by which servers know who asks: make them, look at them, revoke them
    #[command(subcommand)]
    Tokens(TokensCommand),
    /// Look at who did what, why, and what it changed
    Audit(AuditArgs),
    /// Forget what is over, now
    Prune(PruneArgs),
    /// Hold the store against its promises, and mend what is safe
    Doctor(Box<DoctorArgs>),
    /// Measure
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Show durable jobs at work: 171,075 real places, and a worker that is killed
    #[command(after_help = crate::demo::EXAMPLES)]
    Demo(DemoArgs),
    /// A worker process of the demo, which starts it
    #[command(hide = true)]
    DemoWorker(DemoWorkerArgs),
}

impl Command {
    /// Whether it is a server or a worker, beside which programs of jobs run.
    pub(crate) const fn is_daemon(&self) -> bool {
        matches!(self, Self::Work(_) | Self::Serve(_) | Self::Relay(_))
    }

    /// Whether it changes nothing, so that all it has to do is to be read.
    pub(crate) const fn only_looks(&self) -> bool {
        match self {
            Self::Jobs(command) => command.only_looks(),
            Self::Bulk(args) => args.only_looks(),
            Self::Batch(command) => command.only_looks(),
            Self::Events(command) => command.only_looks(),
            Self::Inbox(command) => command.only_looks(),
            Self::Queues(command) => command.only_looks(),
            Self::Schedules(command) => command.only_looks(),
            Self::Limits(command) => command.only_looks(),
            Self::Tokens(command) => command.only_looks(),
            Self::Doctor(args) => args.only_lists(),
            Self::Workers(_) | Self::Audit(_) | Self::Config(ConfigCommand::Schema) => true,
            _ => false,
        }
    }
}

/// A job id, in full.
pub(crate) fn job_id(text: &str) -> Result<JobId, String> {
    text.parse().map_err(|_| "a job id is given in full, as `milepost jobs list` shows it".to_owned())
}

/// A length of time such as `90s`, `10m` or `1h 30m`, up to a hundred years.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|e| format!("{e}; a duration looks like 90s, 10m or \"1h 30m\""))?;
    if duration > WAIT_MAX {
        return Err("it is longer than a hundred years; give a shorter duration".to_owned());
    }
    Ok(duration)
}

/// A length of time that is not nothing.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than nothing".to_owned()),
        duration => Ok(duration),
    }
}

/// How long something is kept: a length of time, or `forever`.
pub(crate) fn keep(text: &str) -> Result<Keep, String> {
    match text {
        "forever" => Ok(Keep::Forever),
        text => duration(text).map(Keep::For).map_err(|e| format!("{e}, or it is forever")),
    }
}

/// A point in time: RFC 3339, or `in` and a duration.
pub(crate) fn start_at(text: &str) -> Result<StartAt, String> {
    if let Some(wait) = text.strip_prefix("in ") {
        return duration(wait.trim()).map(StartAt::After);
    }
    point_in_time(text).map(StartAt::At).map_err(|e| format!("{e}, or \"in 10m\""))
}

/// A point in time: RFC 3339.
pub(crate) fn point_in_time(text: &str) -> Result<Timestamp, String> {
    let words = "it is not a time before 9999-12-30; a time looks like 2026-05-01T09:00:00Z or 2026-05-01T09:00:00+02:00";
    text.parse().map_err(|_| words.to_owned())
}

/// A priority from 1 (first) to 4 (last).
pub(crate) fn priority(text: &str) -> Result<Priority, String> {
    let number: u8 = text.parse().map_err(|_| "it must be 1, 2, 3 or 4".to_owned())?;
    Priority::try_from(number).map_err(|e| e.to_string())
}

/// A job state by its name.
pub(crate) fn job_state() -> impl TypedValueParser<Value = JobState> {
    PossibleValuesParser::new(JobState::ALL.iter().map(|state| state.as_str()))
        .try_map(|name| name.parse::<JobState>())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_fits_a_terminal_of_80_columns() {
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.starts_with(' '), "{} loses how far its first line is in", command.get_name());
            for line in help.lines().filter(|line| !line.starts_with(' ')) {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn what_is_kept_is_kept_for_a_time_or_forever() {
        assert_eq!(keep("7d"), Ok(Keep::days(7)));
        assert_eq!(keep("forever"), Ok(Keep::Forever));
        assert!(keep("always").is_err_and(|why| why.contains("forever")));
    }

    #[test]
    fn a_start_is_a_time_or_a_wait() {
        assert_eq!(start_at("in 10m"), Ok(StartAt::After(Duration::from_secs(600))));
        assert!(matches!(start_at("2026-05-01T09:00:00+02:00"), Ok(StartAt::At(_))));
        assert!(start_at("tomorrow").is_err_and(|why| why.contains("in 10m")));
        assert!(start_at("2026-05-01T09:00:00").is_err(), "a time without a zone is ambiguous");
    }
}

//! The command line: its commands and the options that all of them have.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use milepost_bench::BenchCommand;
use milepost_demo::{DemoArgs, DemoWorkerArgs};
use milepost_executors::exec::STORE_VARIABLE;
use milepost_mcp::McpArgs;

use crate::alerts::AlertsCommand;
use crate::audit::AuditArgs;
use crate::batch::BatchCommand;
use crate::bulk::BulkArgs;
use crate::config::command::ConfigCommand;
use crate::doctor::DoctorArgs;
use crate::enqueue::EnqueueArgs;
use crate::events::EventsCommand;
use crate::generated::GeneratedCommand;
use crate::inbox::InboxCommand;
use crate::init::InitArgs;
use crate::jobs::JobsCommand;
use crate::limits::LimitsCommand;
use crate::migrate::MigrateArgs;
use crate::prune::PruneArgs;
use crate::queues::QueuesCommand;
use crate::relay::RelayArgs;
use crate::relocation::MoveArgs;
use crate::retention::RetentionCommand;
use crate::schedules::SchedulesCommand;
use crate::serve::ServeArgs;
use crate::status::StatusArgs;
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

The configuration is the file given by --config or MILEPOST_CONFIG, else
milepost.toml in the current folder, if it exists. The store is the one given by
--store or MILEPOST_STORE, else the one in the configuration, else the file
milepost.db in the current folder, which the first `milepost enqueue` creates.
Every command except demo and bench reads the store from the configuration, and
prints the store if it was not given. The demo uses a temporary file.
MILEPOST_LOG sets the log level of stderr (error, warn, info, debug).

Exit status: 0 success, 1 failure, 2 wrong usage.";

/// The heading of the options that every command has.
const OF_EVERY_COMMAND: &str = "Options of every command";

/// Runs work that must not be lost, on the database you already have.
#[derive(Debug, Parser)]
#[command(name = "milepost", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// The store: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE
    // The value of the environment variable may contain a password, which help must not show. There is no default value here, because the
    // demo needs to know whether a store was named.
    #[arg(long, global = true, env = STORE_VARIABLE, hide_env = true, value_name = "ADDRESS", help_heading = OF_EVERY_COMMAND)]
    pub(crate) store: Option<String>,

    /// The configuration file
    #[arg(long, global = true, env = "MILEPOST_CONFIG", hide_env = true, value_name = "FILE", help_heading = OF_EVERY_COMMAND)]
    pub(crate) config: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a project folder that is ready to run
    Init(InitArgs),
    /// Create the store's tables, or migrate them to this binary's version
    #[command(after_help = crate::migrate::EXAMPLES)]
    Migrate(MigrateArgs),
    /// Move a complete SQLite store to PostgreSQL
    Move(Box<MoveArgs>),
    /// Enqueue one job, or every line of a file
    Enqueue(Box<EnqueueArgs>),
    #[command(flatten)]
    Daemon(DaemonCommand),
    /// Check a configuration file, create one, print its schema
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List and show jobs; cancel, retry, snooze, abort, resume them, and more
    #[command(subcommand)]
    Jobs(Box<JobsCommand>),
    /// Bulk jobs over many targets: start, inspect, stop and resume them
    Bulk(Box<BulkArgs>),
    /// Batches (DAGs of jobs): define, start, inspect, stop, resume and rerun them
    #[command(subcommand)]
    Batch(Box<BatchCommand>),
    /// Events, which are ordered per aggregate: emit and publish them, read the log
    #[command(subcommand)]
    Events(Box<EventsCommand>),
    /// Inboxes of event consumers: processed events, waiting events, dead letters
    #[command(subcommand)]
    Inbox(InboxCommand),
    /// List queues, pause and resume them
    #[command(subcommand)]
    Queues(QueuesCommand),
    /// Recurring jobs: cron expressions with time zones, and intervals
    #[command(subcommand)]
    Schedules(SchedulesCommand),
    /// List, set and remove limits of kinds and groups
    #[command(subcommand)]
    Limits(LimitsCommand),
    /// List and silence alerts, and test their targets
    #[command(subcommand)]
    Alerts(AlertsCommand),
    /// List, set and remove retention periods
    #[command(subcommand)]
    Retention(RetentionCommand),
    #[command(flatten)]
    Report(ReportCommand),
    /// Access tokens of servers: create, list and revoke them
    #[command(subcommand)]
    Tokens(TokensCommand),
    /// Delete data whose retention period is over, now
    Prune(PruneArgs),
    /// Check the store's invariants, and repair violations where this is safe
    Doctor(Box<DoctorArgs>),
    /// Serve tools for agents on stdin and stdout, by the Model Context Protocol
    Mcp(McpArgs),
    #[command(flatten)]
    Generated(GeneratedCommand),
    /// Run benchmarks
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Demonstrate durable jobs: 171,075 real places, and a worker that is killed
    #[command(after_help = milepost_demo::EXAMPLES)]
    Demo(DemoArgs),
    /// A worker process of the demo, which starts it
    #[command(hide = true)]
    DemoWorker(DemoWorkerArgs),
}

/// The commands that only show the state of a store.
#[derive(Debug, Subcommand)]
pub(crate) enum ReportCommand {
    /// Show the current problems, and what is in progress
    Status(StatusArgs),
    /// List the workers
    #[command(subcommand)]
    Workers(WorkersCommand),
    /// List the actions of operators, with reasons and changes
    Audit(AuditArgs),
}

/// The long-running commands.
#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Run jobs as configured in a file: as HTTP calls and as programs
    Work(Box<WorkArgs>),
    /// Publish events to the sinks configured in a file, in the order of each aggregate
    Relay(Box<RelayArgs>),
    /// Serve the console and the HTTP API, and run the configured workers and publishers
    Serve(Box<ServeArgs>),
}

impl Command {
    /// Returns whether the command is a long-running process (worker, server or relay), beside which programs of jobs run.
    pub(crate) const fn is_daemon(&self) -> bool {
        matches!(self, Self::Daemon(_))
    }

    /// Returns whether the command is read-only, so that its output is its only result.
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
            Self::Alerts(command) => command.only_looks(),
            Self::Retention(command) => command.only_looks(),
            Self::Tokens(command) => command.only_looks(),
            Self::Doctor(args) => args.only_lists(),
            Self::Report(_) | Self::Config(ConfigCommand::Schema) => true,
            _ => false,
        }
    }

    /// Returns whether the command changes rows of a store, so that the rows can be the reason if it fails.
    pub(crate) const fn changes_rows(&self) -> bool {
        let on_rows = matches!(
            self,
            Self::Enqueue(_)
                | Self::Jobs(_)
                | Self::Bulk(_)
                | Self::Batch(_)
                | Self::Events(_)
                | Self::Inbox(_)
                | Self::Queues(_)
                | Self::Schedules(_)
                | Self::Limits(_)
                | Self::Alerts(_)
                | Self::Retention(_)
                | Self::Tokens(_)
                | Self::Prune(_)
        );
        on_rows && !self.only_looks()
    }
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
            assert!(!help.starts_with(' '), "{} loses the indentation of its first line", command.get_name());
            for line in help.lines().filter(|line| !line.starts_with(' ')) {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }

    /// Returns every command without subcommands, by its full name.
    fn commands() -> Vec<(String, clap::Command)> {
        let (mut left, mut found) = (vec![(String::new(), Cli::command())], Vec::new());
        while let Some((name, command)) = left.pop() {
            let mut inner: Vec<_> = command.get_subcommands().cloned().collect();
            left.extend(inner.drain(..).map(|inner| (format!("{name} {}", inner.get_name()), inner)));
            if !command.is_subcommand_required_set() {
                found.push((name.trim_start().to_owned(), command));
            }
        }
        found
    }

    #[test]
    fn every_command_that_changes_something_takes_a_reason() {
        const READ: [&str; 34] = [
            "status",
            "jobs list",
            "jobs show",
            "bulk list",
            "bulk show",
            "bulk watch",
            "bulk failures",
            "bulk dry-run",
            "batch list",
            "batch versions",
            "batch show",
            "batch graph",
            "batch watch",
            "events tail",
            "events subscriptions",
            "events lag",
            "events parked",
            "inbox list",
            "inbox gaps",
            "queues list",
            "schedules list",
            "schedules show",
            "schedules preview",
            "limits list",
            "alerts list",
            "alerts targets",
            "retention list",
            "workers list",
            "tokens list",
            "audit",
            "doctor list",
            "config check",
            "config schema",
            "config reference",
        ];
        // They act without an operator, on another store, on none, or before there is an audit.
        const OTHER: [&str; 13] = [
            "migrate",
            "move",
            "work",
            "relay",
            "serve",
            "demo",
            "demo-worker",
            "config init",
            "alerts test",
            "init",
            // Each of its tools that changes something takes a reason.
            "mcp",
            "completions",
            "man",
        ];
        let mut changing = 0;
        for (name, command) in commands() {
            let takes_reason = command.get_arguments().any(|arg| arg.get_long() == Some("reason"));
            let exempt = READ.contains(&&*name) || OTHER.contains(&&*name) || name.starts_with("bench");
            assert_eq!(takes_reason, !exempt, "{name}");
            changing += usize::from(takes_reason);
        }
        assert!(changing > 40, "{changing}");
    }

    #[test]
    fn old_names_of_the_reason_are_accepted() {
        for line in [
            ["jobs", "cancel", "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c", "--reason", "x"],
            ["batch", "abort", "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c", "--note", "x"],
            ["events", "pause", "orders", "--why", "x"],
        ] {
            assert!(Cli::try_parse_from(["milepost"].iter().chain(&line)).is_ok(), "{line:?}");
        }
    }
}

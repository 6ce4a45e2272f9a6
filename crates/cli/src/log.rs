//! The log: its level and its format, by command.

use milepost_cli_support::log_format::{LogFormat, set_format};
use milepost_cli_support::output;
use tracing_subscriber::EnvFilter;

use crate::args::{Command, DaemonCommand};

/// Starts the log. Workers, relays and servers log their activity; other commands log problems only.
pub(crate) fn start(command: &Command) {
    let (default, format) = match command {
        Command::Daemon(DaemonCommand::Work(args)) => ("warn,milepost=info,sqlx=error", args.log_format),
        // Warnings of drivers may contain published data or a URL.
        Command::Daemon(DaemonCommand::Relay(args)) => (
            "warn,milepost=info,milepost_relay=info,sqlx=error,lapin=error,async_nats=error",
            args.log_format,
        ),
        Command::Daemon(DaemonCommand::Serve(args)) => (
            "warn,milepost=info,milepost_relay=info,milepost_server=info,sqlx=error,lapin=error,async_nats=error",
            args.log_format,
        ),
        _ => ("warn,sqlx=error,milepost_redis=error", LogFormat::Text),
    };
    let format = set_format(format);
    let filter = EnvFilter::try_from_env("MILEPOST_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_target(false).with_ansi(output::colours_on(&std::io::stderr())).init(),
        LogFormat::Json => {
            std::panic::set_hook(Box::new(|panic| output::fault(panic)));
            log.json().flatten_event(true).init();
        }
    }
}

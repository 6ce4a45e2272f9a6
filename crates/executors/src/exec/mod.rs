//! Jobs that run as programs: the payload is on standard input, the result is the last line of standard output.
//!
//! | exit | result |
//! |---|---|
//! | 0 | success |
//! | 64 (`EX_USAGE`), 65 (`EX_DATAERR`) | failed, no further attempt: `exec_64`, `exec_65` |
//! | any other status | failed, another attempt: `exec_N` |
//! | by a signal | failed, another attempt: `exec_signal_N`; the program did not choose to exit |
//!
//! With [`ExecConfig::retry_exit_codes`] only those statuses lead to another attempt.
//!
//! Known secrets are removed from the program's output. A line `MILEPOST_PROGRESS done[/total] [message]` on standard output reports
//! progress and is not a result. The program runs in a separate process group, and no process of the group outlives the run.

mod output;
mod process;
mod starter;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures::future::maybe_done;
use milepost::trace::{TRACEPARENT, Traceparent};
use milepost::{Context, JobError, Outcome};
use milepost_core::secrets::Secrets;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use self::output::Output;
use self::process::ProcessGroup;
use crate::{facts, result};

/// The default time between SIGTERM and SIGKILL.
pub const KILL_GRACE_DEFAULT: Duration = Duration::from_secs(5);
/// How long to wait for output that other processes still hold open after the program has exited.
const DRAIN: Duration = Duration::from_millis(200);
/// The exit statuses without another attempt, by default: `EX_USAGE` and `EX_DATAERR` of sysexits.h. All other statuses can be unknown
/// failures, for example an uncaught exception, so another attempt may succeed.
const EXIT_CODES_FATAL: [i32; 2] = [64, 65];
/// The environment variable with the address of the store, which can contain a password: no program inherits it.
pub const STORE_VARIABLE: &str = "MILEPOST_STORE";
/// The environment variable with the address of Redis, which may contain a password.
pub const REDIS_VARIABLE: &str = "MILEPOST_REDIS";
/// The variables of the worker's environment that a program gets unless it inherits all of it.
const ENVIRONMENT_KEPT: [&str; 3] = ["PATH", "HOME", "LANG"];

/// How jobs of a kind run as a program.
#[derive(Clone)]
pub struct ExecConfig {
    /// The program: a path, or a name that is searched on `PATH`. It is never passed to a shell.
    pub program: PathBuf,
    /// Its arguments, each passed unchanged.
    pub args: Vec<String>,
    /// Environment variables besides the kept or inherited ones.
    pub env: BTreeMap<String, String>,
    /// Whether it inherits the worker's whole environment except `MILEPOST_STORE`, instead of only `PATH`, `HOME` and `LANG`.
    pub inherit_env: bool,
    /// The working directory; by default that of the worker.
    pub cwd: Option<PathBuf>,
    /// The time between SIGTERM and SIGKILL.
    pub kill_grace: Duration,
    /// The exit statuses that lead to another attempt; `None`: all but 0, 64 and 65.
    pub retry_exit_codes: Option<Vec<u8>>,
    /// Secrets that are removed from the stored part of its output.
    pub secrets: Secrets,
}

impl ExecConfig {
    /// Creates settings for this program without arguments, in a clean environment.
    #[must_use]
    pub fn of(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            inherit_env: false,
            cwd: None,
            kill_grace: KILL_GRACE_DEFAULT,
            retry_exit_codes: None,
            secrets: Secrets::default(),
        }
    }

    /// Returns whether a program that exits with this status gets another attempt.
    fn is_retried(&self, code: i32) -> bool {
        match &self.retry_exit_codes {
            Some(codes) => codes.iter().any(|&retried| i32::from(retried) == code),
            None => !EXIT_CODES_FATAL.contains(&code),
        }
    }
}

/// Runs jobs as a program.
pub struct Exec {
    config: ExecConfig,
}

impl Exec {
    /// Creates an executor with these settings.
    #[must_use]
    pub const fn new(config: ExecConfig) -> Self {
        Self { config }
    }

    /// Runs one attempt. If the context is canceled, or this future is dropped, the whole process group gets SIGTERM and, after the grace
    /// period, SIGKILL.
    ///
    /// # Errors
    /// As in the table of the [module](self); `exec_spawn`, retryable, if the program cannot be started.
    pub async fn run(&self, context: &Context) -> Result<Outcome, JobError> {
        let mut process = ProcessGroup::start(self.command(context), self.config.kill_grace)
            .await
            .map_err(|error| self.not_started(&error))?;
        let pipes = process.pipes().map_err(|error| self.not_started(&error))?;
        let mut output = Output::new(context, &self.config.secrets);
        let stopped = {
            let mut talk = pin!(maybe_done(output.listen(pipes, context.job().payload.as_bytes())));
            let listen = async {
                talk.as_mut().await;
                std::future::pending::<Infallible>().await
            };
            let stopped = tokio::select! {
                biased;
                stopped = self.watch(&process, context.cancellation()) => stopped,
                never = listen => match never {},
            };
            // Its descendants may hold its output open indefinitely. The output written so far is still read, then the whole group is
            // killed.
            let _ = tokio::time::timeout(DRAIN, talk.as_mut()).await;
            process.kill();
            let _ = tokio::time::timeout(DRAIN, talk).await;
            stopped
        };
        let status = process.reap().await.map_err(|error| self.not_started(&error))?;
        if stopped { Ok(Outcome::Stopped) } else { self.judge(status, output) }
    }

    fn command(&self, context: &Context) -> Command {
        let config = &self.config;
        let mut command = Command::new(&config.program);
        command.args(&config.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if config.inherit_env {
            command.env_remove(STORE_VARIABLE).env_remove(REDIS_VARIABLE);
        } else {
            command.env_clear();
            command.envs(ENVIRONMENT_KEPT.iter().filter_map(|&name| Some((name, std::env::var_os(name)?))));
        }
        command.envs(&config.env);
        for (name, value) in facts::of(context) {
            command.env(format!("MILEPOST_{}", name.replace('-', "_").to_ascii_uppercase()), value);
        }
        if let Some(trace) = Traceparent::current() {
            // The variable name follows the OpenTelemetry specification for environment variables.
            command.env(TRACEPARENT.to_ascii_uppercase(), trace.to_string());
        }
        command.env("MILEPOST_IDEMPOTENCY_KEY", context.idempotency_key());
        if let Some(cwd) = &config.cwd {
            command.current_dir(cwd);
        }
        command
    }

    /// Waits until the program has exited, after asking it to stop if necessary; returns whether it was asked.
    async fn watch(&self, process: &ProcessGroup, stop: &CancellationToken) -> bool {
        tokio::select! {
            biased;
            () = process.exited() => return false,
            () = stop.cancelled() => {}
        }
        process.end(self.config.kill_grace).await;
        true
    }

    fn judge(&self, status: ExitStatus, mut output: Output) -> Result<Outcome, JobError> {
        let program = self.config.program.display();
        let last_words = output.last_words(&self.config.secrets);
        match (status.code(), status.signal()) {
            (Some(0), _) => result::outcome(output.last_line(), &self.config.secrets),
            (Some(code), _) => {
                let message = format!("{program} ended with exit status {code}{last_words}");
                let end = if self.config.is_retried(code) { JobError::retryable } else { JobError::fatal };
                Err(end(format!("exec_{code}"), message))
            }
            (None, signal) => {
                let signal = signal.unwrap_or_default();
                Err(JobError::retryable(
                    format!("exec_signal_{signal}"),
                    format!("{program} was terminated by signal {signal}{last_words}"),
                ))
            }
        }
    }

    fn not_started(&self, error: &io::Error) -> JobError {
        JobError::retryable("exec_spawn", format!("cannot run {}: {error}", self.config.program.display()))
    }
}

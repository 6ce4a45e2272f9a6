//! Jobs as programs: the payload on standard input, the result on the last line of standard output.
//!
//! | exit | means |
//! |---|---|
//! | 0 | success |
//! | 64 (`EX_USAGE`), 65 (`EX_DATAERR`) | failed, no further attempt: `exec_64`, `exec_65` |
//! | any other status | failed, another attempt: `exec_N` |
//! | by a signal | failed, another attempt: `exec_signal_N`; the program did not choose its end |
//!
//! With [`ExecConfig::retry_exit_codes`] only those statuses lead to another attempt.
//!
//! What is known to be secret is hidden in what it says. A line `MILEPOST_PROGRESS done[/total] [message]` on standard output is progress and no result. The program runs
//! in a process group of its own, and nothing of the group outlives the run.

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

/// How long a program gets between SIGTERM and SIGKILL unless configured otherwise.
pub const KILL_GRACE_DEFAULT: Duration = Duration::from_secs(5);
/// How long output is waited for that others still hold open when the program itself has ended.
const DRAIN: Duration = Duration::from_millis(200);
/// The exit statuses without another attempt unless configured otherwise: `EX_USAGE` and `EX_DATAERR` of sysexits.h. All others can be
/// unknown failures, as those of an uncaught exception, which a later attempt may not meet.
const EXIT_CODES_FATAL: [i32; 2] = [64, 65];
/// The environment variable with the address of the store, which can contain a password: no program inherits it.
pub const STORE_VARIABLE: &str = "MILEPOST_STORE";
/// What a program gets of the worker's environment unless it inherits all of it.
const ENVIRONMENT_KEPT: [&str; 3] = ["PATH", "HOME", "LANG"];

/// How jobs of a kind are run as a program.
#[derive(Clone)]
pub struct ExecConfig {
    /// The program: a path, or a name that is looked up on `PATH`. Never given to a shell.
    pub program: PathBuf,
    /// Its arguments, each passed on as it is.
    pub args: Vec<String>,
    /// Environment variables besides the kept or inherited ones.
    pub env: BTreeMap<String, String>,
    /// Whether it inherits the worker's whole environment, but for `MILEPOST_STORE`, instead of `PATH`, `HOME` and `LANG` alone.
    pub inherit_env: bool,
    /// The folder it starts in; the worker's unless given.
    pub cwd: Option<PathBuf>,
    /// How long it gets to end after SIGTERM, before SIGKILL.
    pub kill_grace: Duration,
    /// The exit statuses that lead to another attempt; `None`: all but 0, 64 and 65.
    pub retry_exit_codes: Option<Vec<u8>>,
    /// What must not stand in what is kept of its output.
    pub secrets: Secrets,
}

impl ExecConfig {
    /// This program without arguments, in a clean environment.
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

    /// Whether a program that ends with this status gets another attempt.
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
    /// An executor with these settings.
    #[must_use]
    pub const fn new(config: ExecConfig) -> Self {
        Self { config }
    }

    /// Runs one attempt. When the context is canceled, or this future is dropped, the whole process group gets
    /// SIGTERM and, after its grace, SIGKILL.
    ///
    /// # Errors
    /// As the exit says, see the [module](self); `exec_spawn`, retryable, when the program cannot be started.
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
            // What it left behind may hold its output open for ever. What it has said is still read, then its
            // whole group goes.
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
            command.env_remove(STORE_VARIABLE);
        } else {
            command.env_clear();
            command.envs(ENVIRONMENT_KEPT.iter().filter_map(|&name| Some((name, std::env::var_os(name)?))));
        }
        command.envs(&config.env);
        for (name, value) in facts::of(context) {
            command.env(format!("MILEPOST_{}", name.replace('-', "_").to_ascii_uppercase()), value);
        }
        if let Some(trace) = Traceparent::current() {
            // As the specification of OpenTelemetry has it for environments.
            command.env(TRACEPARENT.to_ascii_uppercase(), trace.to_string());
        }
        command.env("MILEPOST_IDEMPOTENCY_KEY", context.idempotency_key());
        if let Some(cwd) = &config.cwd {
            command.current_dir(cwd);
        }
        command
    }

    /// Waits until the program has ended, be it because it was asked to stop: answers whether it was.
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
        let last_words = self.config.secrets.hide(output.last_words());
        match (status.code(), status.signal()) {
            (Some(0), _) => Ok(result::outcome(output.last_line(), &self.config.secrets)),
            (Some(code), _) => {
                let message = format!("{program} ended with exit status {code}{last_words}");
                let end = if self.config.is_retried(code) { JobError::retryable } else { JobError::fatal };
                Err(end(format!("exec_{code}"), message))
            }
            (None, signal) => {
                let signal = signal.unwrap_or_default();
                Err(JobError::retryable(
                    format!("exec_signal_{signal}"),
                    format!("{program} was ended by signal {signal}{last_words}"),
                ))
            }
        }
    }

    fn not_started(&self, error: &io::Error) -> JobError {
        JobError::retryable("exec_spawn", format!("cannot run {}: {error}", self.config.program.display()))
    }
}

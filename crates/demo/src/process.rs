//! The worker processes that the demo starts, observes and kills.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use milepost_cli_support::store::StoreAddress;
use milepost_executors::exec::STORE_VARIABLE;
use tokio::process::{Child, ChildStdin, Command};

use super::ledger::Scope;
use super::plan::Plan;

/// The time that a worker has to finish its running jobs.
const FINISH_TIMEOUT: Duration = Duration::from_secs(120);
/// The time between freezing a process and counting its jobs.
const SETTLING: Duration = Duration::from_millis(100);

/// A worker in a separate process, which is killed when this value is dropped.
pub(super) struct WorkerProcess {
    pub(super) name: String,
    child: Child,
    /// The process runs until this pipe is closed.
    stdin: Option<ChildStdin>,
}

impl WorkerProcess {
    /// Starts a process that runs the handlers of the demo.
    pub(super) fn spawn(number: u32, address: &StoreAddress, scope: &Scope, plan: Plan) -> Result<Self> {
        Self::start(number, address, &["--queue", &scope.queue, "--places", &plan.places.to_string()])
    }

    /// Starts a process that runs the programs of this folder, for jobs of this queue.
    pub(super) fn spawn_in(number: u32, address: &StoreAddress, queue: &str, folder: &Path) -> Result<Self> {
        let folder = folder.to_str().with_context(|| format!("{} is not UTF-8", folder.display()))?;
        Self::start(number, address, &["--queue", queue, "--programs", folder])
    }

    fn start(number: u32, address: &StoreAddress, args: &[&str]) -> Result<Self> {
        let name = format!("worker {number}");
        let binary = std::env::current_exe().context("cannot find this binary to start a worker process")?;
        let mut command = Command::new(&binary);
        command
            .args(["demo-worker", "--name", &name])
            .args(args)
            .env(STORE_VARIABLE, address.reveal())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        if std::env::var_os("MILEPOST_LOG").is_none() {
            // The demo itself reports that a worker's jobs were reclaimed.
            command.env("MILEPOST_LOG", "error");
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start a worker process ({})", binary.display()))?;
        let stdin = child.stdin.take();
        Ok(Self { name, child, stdin })
    }

    /// Returns the process id; 0 when the process has ended.
    pub(super) fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    /// Fails if the process has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended unexpectedly ({status})", self.name),
        }
    }

    /// Suspends the process (SIGSTOP), so that the jobs that it holds do not change.
    pub(super) fn freeze(&self) -> Result<()> {
        self.signal(true)
    }

    /// Suspends the process and waits until the database has finished the statements that it had sent.
    pub(super) async fn freeze_and_settle(&self) -> Result<()> {
        self.freeze()?;
        tokio::time::sleep(SETTLING).await;
        Ok(())
    }

    /// Resumes a suspended process.
    pub(super) fn thaw(&self) -> Result<()> {
        self.signal(false)
    }

    #[cfg(unix)]
    fn signal(&self, stop: bool) -> Result<()> {
        use nix::sys::signal::{Signal, kill};
        use nix::unistd::Pid;

        let signal = if stop { Signal::SIGSTOP } else { Signal::SIGCONT };
        match self.child.id() {
            Some(pid) => Ok(kill(Pid::from_raw(pid.cast_signed()), signal)?),
            None => Ok(()),
        }
    }

    #[cfg(not(unix))]
    fn signal(&self, _stop: bool) -> Result<()> {
        Ok(())
    }

    /// Kills the process immediately (SIGKILL).
    pub(super) async fn kill(mut self) -> Result<()> {
        self.child.kill().await.with_context(|| format!("cannot kill {}", self.name))
    }

    /// Asks the process to stop and waits for it.
    pub(super) async fn finish(mut self) -> Result<()> {
        drop(self.stdin.take());
        match tokio::time::timeout(FINISH_TIMEOUT, self.child.wait()).await {
            Ok(status) if status.as_ref().is_ok_and(ExitStatus::success) => Ok(()),
            Ok(status) => bail!("{} ended badly ({})", self.name, status?),
            Err(_) => bail!("{} did not end within {FINISH_TIMEOUT:?}", self.name),
        }
    }
}

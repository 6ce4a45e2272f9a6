//! The worker processes that the demo starts, watches and kills.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use milepost_executors::exec::STORE_VARIABLE;
use tokio::process::{Child, ChildStdin, Command};

use super::ledger::Scope;
use super::plan::Plan;
use crate::store::StoreAddress;

/// How long a worker may take to end what it has in hand.
const FINISH_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a frozen process is left alone before what it holds is counted.
const SETTLING: Duration = Duration::from_millis(100);

/// A worker in a process of its own. Dropped, it is killed.
pub(super) struct WorkerProcess {
    pub(super) name: String,
    child: Child,
    /// The process works until this is closed.
    stdin: Option<ChildStdin>,
}

impl WorkerProcess {
    /// One that runs the handlers of the demo.
    pub(super) fn spawn(number: u32, address: &StoreAddress, scope: &Scope, plan: Plan) -> Result<Self> {
        Self::start(number, address, &["--queue", &scope.queue, "--places", &plan.places.to_string()])
    }

    /// One that runs the programs of this folder, for jobs of this queue.
    pub(super) fn spawn_in(number: u32, address: &StoreAddress, queue: &str, folder: &Path) -> Result<Self> {
        let folder = folder.to_str().with_context(|| format!("{} is no text", folder.display()))?;
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
            // That a worker is rescued is told by the demo itself.
            command.env("MILEPOST_LOG", "error");
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start a worker process ({})", binary.display()))?;
        let stdin = child.stdin.take();
        Ok(Self { name, child, stdin })
    }

    /// The number of the process; 0 when it has ended.
    pub(super) fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    /// Fails when the process has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended by itself ({status})", self.name),
        }
    }

    /// Stops the process where it is, so that what it holds does not change under our eyes.
    pub(super) fn freeze(&self) -> Result<()> {
        self.signal(true)
    }

    /// Stops the process where it is, and waits until the database has ended what the process had sent it.
    pub(super) async fn freeze_and_settle(&self) -> Result<()> {
        self.freeze()?;
        tokio::time::sleep(SETTLING).await;
        Ok(())
    }

    /// Lets a frozen process go on.
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

    /// Ends the process at once, without a word to it: SIGKILL.
    pub(super) async fn kill(mut self) -> Result<()> {
        self.child.kill().await.with_context(|| format!("cannot kill {}", self.name))
    }

    /// Asks the process to end well and waits for it.
    pub(super) async fn finish(mut self) -> Result<()> {
        drop(self.stdin.take());
        match tokio::time::timeout(FINISH_TIMEOUT, self.child.wait()).await {
            Ok(status) if status.as_ref().is_ok_and(ExitStatus::success) => Ok(()),
            Ok(status) => bail!("{} ended badly ({})", self.name, status?),
            Err(_) => bail!("{} did not end within {FINISH_TIMEOUT:?}", self.name),
        }
    }
}

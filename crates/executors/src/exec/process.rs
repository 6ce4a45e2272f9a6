//! A program and its descendants, as one process group.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use super::starter;

/// A running program and its process group. When it is dropped, the group gets SIGTERM and, after the grace period, SIGKILL; SIGKILL
/// immediately if the runtime is shutting down.
pub(super) struct ProcessGroup {
    members: Option<Members>,
    kill_grace: Duration,
}

/// The standard streams of a program.
pub(super) struct Pipes {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

impl ProcessGroup {
    pub(super) async fn start(command: Command, kill_grace: Duration) -> io::Result<Self> {
        let members = starter::start(command).await?;
        Ok(Self { members: Some(members), kill_grace })
    }

    /// Takes the program's pipes, at most once.
    ///
    /// # Errors
    /// The runtime is shutting down.
    pub(super) fn pipes(&mut self) -> io::Result<Pipes> {
        let Some(child) = self.members.as_mut().and_then(|members| members.child.as_mut()) else {
            return Ok(Pipes { stdin: None, stdout: None, stderr: None });
        };
        Ok(Pipes {
            stdin: child.stdin.take().map(ChildStdin::from_std).transpose()?,
            stdout: child.stdout.take().map(ChildStdout::from_std).transpose()?,
            stderr: child.stderr.take().map(ChildStderr::from_std).transpose()?,
        })
    }

    /// Waits until the program has exited; its descendants may still run.
    pub(super) async fn exited(&self) {
        if let Some(members) = &self.members {
            members.exited().await;
        }
    }

    /// Sends SIGTERM to the group, and SIGKILL after the grace period; waits for the program.
    pub(super) async fn end(&self, grace: Duration) {
        if let Some(members) = &self.members {
            members.end(grace).await;
        }
    }

    /// Sends SIGKILL to the group.
    pub(super) fn kill(&self) {
        if let Some(members) = &self.members {
            members.signal(Signal::KILL);
        }
    }

    /// Returns the exit status of the program, which must have exited.
    pub(super) async fn reap(&mut self) -> io::Result<ExitStatus> {
        match self.members.take() {
            Some(members) => members.reap().await,
            None => Err(reaped_before()),
        }
    }
}

fn reaped_before() -> io::Error {
    io::Error::other("the program has already been reaped")
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let Some(members) = self.members.take() else { return };
        let grace = self.kill_grace;
        // A runtime that is shutting down drops the task and the members, which kills them.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { members.end(grace).await });
        }
    }
}

/// The members of a process group. They are killed when this is dropped.
///
/// The child is one of the standard library: `tokio::process` registers a child with the runtime after it has started it, and loses a
/// running child if the runtime shuts down in between.
///
/// The process id of a child cannot be reused before it is reaped. It is reaped last, so a signal to the group never reaches another process.
pub(super) struct Members {
    /// `None` once it is reaped.
    child: Option<Child>,
    leader: Pid,
}

impl Members {
    /// Creates the group that is led by this child.
    pub(super) fn led_by(child: Child) -> io::Result<Self> {
        let leader = Pid::from_raw(child.id().cast_signed());
        let leader = leader.ok_or_else(|| io::Error::other("the program has no process id"))?;
        Ok(Self { child: Some(child), leader })
    }

    async fn exited(&self) {
        let Ok(mut children) = signal(SignalKind::child()) else { return };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(self.leader), look), Ok(None)) {
            children.recv().await;
        }
    }

    async fn end(&self, grace: Duration) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(grace, self.exited()).await.is_err() {
            self.signal(Signal::KILL);
            self.exited().await;
        }
    }

    fn signal(&self, signal: Signal) {
        // The only possible error is that the group has no members left.
        let _ = kill_process_group(self.leader, signal);
    }

    async fn reap(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.exited().await;
        match self.child.take() {
            Some(mut child) => child.wait(),
            None => Err(reaped_before()),
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            self.signal(Signal::KILL);
            starter::reap(child);
        }
    }
}

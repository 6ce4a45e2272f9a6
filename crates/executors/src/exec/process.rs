//! A program and its descendants, as one process group.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;

use super::starter::{self, Members, reaped_before};

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

//! A program and all that it starts, as one process group.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use super::starter;

/// A running program and its process group, which nothing of it outlives: dropped, the group gets SIGTERM and, after
/// its grace, SIGKILL; at once when the runtime is going down.
pub(super) struct ProcessGroup {
    members: Option<Members>,
    kill_grace: Duration,
}

/// The two ends of what a program hears and the one of what it says.
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

    /// Takes the pipes of the program, which can be done once.
    ///
    /// # Errors
    /// When the runtime is going down.
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

    /// Waits until the program itself has ended.
    pub(super) async fn exited(&self) {
        if let Some(members) = &self.members {
            members.exited().await;
        }
    }

    /// Asks the whole group to end, and ends it when the grace is over; waits for the program itself.
    pub(super) async fn end(&self, grace: Duration) {
        if let Some(members) = &self.members {
            members.end(grace).await;
        }
    }

    /// Ends the whole group at once.
    pub(super) fn kill(&self) {
        if let Some(members) = &self.members {
            members.signal(Signal::KILL);
        }
    }

    /// Says how the program ended, which it must have.
    pub(super) async fn reap(&mut self) -> io::Result<ExitStatus> {
        match self.members.take() {
            Some(members) => members.reap().await,
            None => Err(io::Error::other("the program was reaped before")),
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let Some(members) = self.members.take() else { return };
        let grace = self.kill_grace;
        // A runtime that is going down drops the task unrun, and the members with it, which kills them.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { members.end(grace).await });
        }
    }
}

/// The members of a process group. Dropped, they are killed.
///
/// The program is one of the standard library, which needs no runtime: tokio forgets a program that it has started when the
/// runtime goes down before it is registered there, and it would run on.
///
/// As long as the program is not reaped, its number cannot be given to another process: that is why it is reaped
/// last, and why a signal to the group cannot meet anybody else.
pub(super) struct Members {
    /// `None`: it is reaped, or somebody else reaps it.
    child: Option<Child>,
    leader: Pid,
}

impl Members {
    /// The group whose leader this program is.
    pub(super) fn led_by(child: Child) -> io::Result<Self> {
        let leader = Pid::from_raw(child.id().cast_signed());
        let leader = leader.ok_or_else(|| io::Error::other("the program has no number"))?;
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
        // The only error there can be is that nobody is left.
        let _ = kill_process_group(self.leader, signal);
    }

    async fn reap(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.exited().await;
        match self.child.take() {
            Some(mut child) => child.wait(),
            None => Err(io::Error::other("the program was reaped before")),
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

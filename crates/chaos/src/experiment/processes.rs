//! The processes of an experiment.

use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Child;

use super::clock::Clock;
use super::programs::{Programs, Version};

/// The number of processes with each role.
const ROLES: [(Role, usize); 3] = [(Role::Worker, 3), (Role::Client, 2), (Role::Reader, 1)];
/// How long a process may take to end after its standard input was closed.
const FINISH_MAX: Duration = Duration::from_secs(90);

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Worker,
    Client,
    Reader,
}

impl Role {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Client => "client",
            Self::Reader => "reader",
        }
    }
}

struct Process {
    role: Role,
    version: Version,
    child: Child,
    is_stopped: bool,
}

impl Process {
    /// Asks it to end, and waits until it has. Returns how it failed.
    async fn finish(&mut self) -> Option<String> {
        let name = self.role.as_str();
        drop(self.child.stdin.take());
        match tokio::time::timeout(FINISH_MAX, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => None,
            Ok(Ok(status)) => Some(format!("a {name} failed: {status}")),
            Ok(Err(error)) => Some(format!("a {name} failed: {error}")),
            Err(_) => Some(format!("a {name} does not end")),
        }
    }

    /// Kills it. Prints a message if it had ended before.
    async fn kill(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            eprintln!("a {} had ended before it was killed ({status})", self.role.as_str());
        }
        Ok(self.child.kill().await?)
    }
}

/// All processes.
pub(super) struct Processes {
    address: String,
    programs: Programs,
    started: u64,
    processes: Vec<Process>,
    /// How processes failed that were asked to end.
    failed: Vec<String>,
}

impl Processes {
    pub(super) const fn new(address: String, programs: Programs) -> Self {
        Self { address, programs, started: 0, processes: Vec::new(), failed: Vec::new() }
    }

    /// Returns the clock that they see, if it is not that of the machine.
    pub(super) const fn clock(&self) -> Option<&Clock> {
        self.programs.clock()
    }

    pub(super) fn start_all(&mut self) -> Result<()> {
        for role in ROLES.into_iter().flat_map(|(role, count)| std::iter::repeat_n(role, count)) {
            let process = self.start(role, self.programs.first())?;
            self.processes.push(process);
        }
        Ok(())
    }

    /// Kills all processes.
    pub(super) async fn kill_all(&mut self) -> Result<()> {
        for mut process in self.processes.drain(..) {
            process.kill().await?;
        }
        Ok(())
    }

    fn start(&mut self, role: Role, version: Version) -> Result<Process> {
        self.started += 1;
        let child = self.programs.start(version, role.as_str(), &self.address, self.started)?;
        Ok(Process { role, version, child, is_stopped: false })
    }

    /// Kills a process with this role, and starts another one. Returns false if all of them are stopped.
    pub(super) async fn kill(&mut self, random: &mut Rng, role: Role) -> Result<bool> {
        let Some(index) = self.choose(random, role) else { return Ok(false) };
        self.processes[index].kill().await?;
        self.processes[index] = self.start(role, self.processes[index].version)?;
        Ok(true)
    }

    /// Asks a process to end, and starts one of the other version in its place, as a rolling upgrade and a rolling downgrade do. Returns false if
    /// it is stopped.
    pub(super) async fn roll(&mut self, random: &mut Rng) -> Result<bool> {
        let role = ROLES[random.usize(..ROLES.len())].0;
        let Some(index) = self.choose(random, role) else { return Ok(false) };
        let process = &mut self.processes[index];
        let version = self.programs.other(process.version);
        self.failed.extend(process.finish().await);
        self.processes[index] = self.start(role, version)?;
        Ok(true)
    }

    /// Stops a process with this role with SIGSTOP. Returns its id; none if it would be the last one that runs.
    pub(super) fn stop(&mut self, random: &mut Rng, role: Role) -> Result<Option<u32>> {
        let running =
            self.processes.iter().filter(|process| process.role == role && !process.is_stopped).count();
        let Some(index) = self.choose(random, role).filter(|_| running > 1) else { return Ok(None) };
        let process = &mut self.processes[index];
        let Some(pid) = process.child.id() else { return Ok(None) };
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGSTOP)?;
        process.is_stopped = true;
        Ok(Some(pid))
    }

    /// Lets a stopped process continue.
    pub(super) fn resume(&mut self, pid: u32) -> Result<()> {
        let process = self.processes.iter_mut().find(|process| process.child.id() == Some(pid));
        if let Some(process) = process {
            kill(Pid::from_raw(pid.cast_signed()), Signal::SIGCONT)?;
            process.is_stopped = false;
        }
        Ok(())
    }

    fn choose(&self, random: &mut Rng, role: Role) -> Option<usize> {
        let some = self.processes.iter().enumerate();
        let some: Vec<usize> = some
            .filter(|(_, process)| process.role == role && !process.is_stopped)
            .map(|(index, _)| index)
            .collect();
        random.choice(some)
    }

    /// Asks the processes with this role to end, and waits until they have. Returns how these and earlier ones failed.
    pub(super) async fn finish(&mut self, role: Role) -> Vec<String> {
        for process in self.processes.iter_mut().filter(|process| process.role == role) {
            self.failed.extend(process.finish().await);
        }
        std::mem::take(&mut self.failed)
    }
}

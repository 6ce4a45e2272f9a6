//! The processes of an experiment.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use fastrand::Rng;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

/// The number of workers, and of clients.
const WORKERS: usize = 3;
const CLIENTS: usize = 2;
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
    child: Child,
    is_stopped: bool,
}

impl Process {
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
    folder: PathBuf,
    seed: u64,
    started: u64,
    processes: Vec<Process>,
}

impl Processes {
    pub(super) const fn new(address: String, folder: PathBuf, seed: u64) -> Self {
        Self { address, folder, seed, started: 0, processes: Vec::new() }
    }

    pub(super) fn start_all(&mut self) -> Result<()> {
        let roles = [(Role::Worker, WORKERS), (Role::Client, CLIENTS), (Role::Reader, 1)];
        for role in roles.into_iter().flat_map(|(role, count)| std::iter::repeat_n(role, count)) {
            let process = self.start(role)?;
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

    fn start(&mut self, role: Role) -> Result<Process> {
        self.started += 1;
        let name = format!("{} {}", role.as_str(), self.started);
        let child = Command::new(std::env::current_exe()?)
            .arg(role.as_str())
            .args(["--store", &self.address, "--name", &name])
            .args(["--seed", &self.seed.wrapping_add(self.started).to_string()])
            .arg("--folder")
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Process { role, child, is_stopped: false })
    }

    /// Kills a process with this role, and starts another one. Returns false if all of them are stopped.
    pub(super) async fn kill(&mut self, random: &mut Rng, role: Role) -> Result<bool> {
        let Some(index) = self.choose(random, role) else { return Ok(false) };
        self.processes[index].kill().await?;
        self.processes[index] = self.start(role)?;
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

    /// Asks the processes with this role to end, and waits until they have. Returns how they failed.
    pub(super) async fn finish(&mut self, role: Role) -> Vec<String> {
        let (name, mut failed) = (role.as_str(), Vec::new());
        for process in self.processes.iter_mut().filter(|process| process.role == role) {
            drop(process.child.stdin.take());
            match tokio::time::timeout(FINISH_MAX, process.child.wait()).await {
                Ok(Ok(status)) if status.success() => {}
                Ok(Ok(status)) => failed.push(format!("a {name} failed: {status}")),
                Ok(Err(error)) => failed.push(format!("a {name} failed: {error}")),
                Err(_) => failed.push(format!("a {name} does not end")),
            }
        }
        failed
    }
}

//! The processes of an experiment.

use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Child;

use super::clock::Clock;
use super::programs::{Programs, Start, Version};
use super::role::Role;

/// How long a process may take to end after its standard input was closed.
const FINISH_MAX: Duration = Duration::from_secs(90);
/// How long a server may take to be ready when no fault happens any more.
const READY_MAX: Duration = Duration::from_secs(90);
/// The interval at which a server is asked whether it is ready.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// The exit code of a server that SIGTERM reached before it was ready.
const ENDED_BEFORE_READY: i32 = 128 + Signal::SIGTERM as i32;

struct Process {
    role: Role,
    /// The number among the processes with this role, from 0.
    index: usize,
    version: Version,
    child: Child,
    is_stopped: bool,
}

impl Process {
    /// Asks it to end, and waits until it has. Returns how it failed.
    async fn finish(&mut self) -> Option<String> {
        let name = self.role.as_str();
        drop(self.child.stdin.take());
        if let (Role::Server, Some(pid)) = (self.role, self.child.id()) {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM);
        }
        match tokio::time::timeout(FINISH_MAX, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => None,
            Ok(Ok(status)) if self.role == Role::Server && status.code() == Some(ENDED_BEFORE_READY) => None,
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
        for (role, count) in Role::COUNTS {
            for index in 0..count {
                let process = self.start(role, index, self.programs.first())?;
                self.processes.push(process);
            }
        }
        Ok(())
    }

    /// Returns the programs of the processes.
    pub(super) const fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Leads processes that start from now on to another store, with its name in the record.
    pub(super) fn lead_to(&mut self, address: String, name: &'static str) {
        self.address = address;
        self.programs.set_store_name(name);
    }

    /// Kills the processes with these roles.
    pub(super) async fn kill_with(&mut self, roles: &[Role]) -> Result<()> {
        for mut process in self.processes.extract_if(.., |process| roles.contains(&process.role)) {
            process.kill().await?;
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

    fn start(&mut self, role: Role, index: usize, version: Version) -> Result<Process> {
        self.started += 1;
        let start = Start { version, role, index, number: self.started, address: &self.address };
        let child = self.programs.start(start)?;
        Ok(Process { role, index, version, child, is_stopped: false })
    }

    /// Kills a process with one of these roles, and starts another one. Returns false if all of them are stopped.
    pub(super) async fn kill(&mut self, random: &mut Rng, roles: &[Role]) -> Result<bool> {
        let Some(chosen) = self.choose(random, roles) else { return Ok(false) };
        let Process { role, index, version, .. } = self.processes[chosen];
        self.processes[chosen].kill().await?;
        self.processes[chosen] = self.start(role, index, version)?;
        Ok(true)
    }

    /// Asks a process to end, and starts one of the other version in its place, as a rolling upgrade and a rolling downgrade do. Returns false if
    /// it is stopped.
    pub(super) async fn roll(&mut self, random: &mut Rng) -> Result<bool> {
        let role = Role::COUNTS[random.usize(..Role::COUNTS.len())].0;
        let Some(chosen) = self.choose(random, &[role]) else { return Ok(false) };
        let process = &mut self.processes[chosen];
        let (index, version) = (process.index, self.programs.other(process.version));
        self.failed.extend(process.finish().await);
        self.processes[chosen] = self.start(role, index, version)?;
        Ok(true)
    }

    /// Stops a process with one of these roles with SIGSTOP. Returns its id; none if it would be the last one with its role that runs.
    pub(super) fn stop(&mut self, random: &mut Rng, roles: &[Role]) -> Result<Option<u32>> {
        let Some(index) = self.choose(random, roles) else { return Ok(None) };
        let role = self.processes[index].role;
        if self.processes.iter().filter(|other| other.role == role && !other.is_stopped).count() < 2 {
            return Ok(None);
        }
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

    fn choose(&self, random: &mut Rng, roles: &[Role]) -> Option<usize> {
        let some = self.processes.iter().enumerate();
        let some: Vec<usize> = some
            .filter(|(_, process)| roles.contains(&process.role) && !process.is_stopped)
            .map(|(index, _)| index)
            .collect();
        random.choice(some)
    }

    /// Waits until all servers are ready. Returns which ones are not.
    pub(super) async fn until_ready(&self) -> Vec<String> {
        let mut unready = Vec::new();
        for server in self.processes.iter().filter(|process| process.role == Role::Server) {
            let port = self.programs.port_of_server(server.index);
            let asking = async {
                while !is_ready(port).await {
                    tokio::time::sleep(ASK_EVERY).await;
                }
            };
            if tokio::time::timeout(READY_MAX, asking).await.is_err() {
                let words = self.programs.last_words_of_server(server.index);
                unready.push(format!("server {} does not become ready{words}", server.index));
            }
        }
        unready
    }

    /// Asks the processes with these roles to end, and waits until they have. Returns how these and earlier ones failed.
    pub(super) async fn finish(&mut self, roles: &[Role]) -> Vec<String> {
        for process in self.processes.iter_mut().filter(|process| roles.contains(&process.role)) {
            self.failed.extend(process.finish().await);
        }
        std::mem::take(&mut self.failed)
    }
}

/// Returns whether the server at this port answers that it is ready.
async fn is_ready(port: u16) -> bool {
    let asked = async {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
        connection.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer.starts_with(b"HTTP/1.1 200 "))
    };
    matches!(tokio::time::timeout(READY_MAX, asked).await, Ok(Ok(true)))
}

//! The programs of the processes: this one, `milepost`, and Python; during a rolling upgrade also those of the version before.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use milepost_testkit::port;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::clock::Clock;
use super::role::{Role, SERVERS};

/// The load over HTTP.
const HTTP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/http/load.py");
/// How long a server waits at its start for a store that faults make unreachable.
const STORE_WAIT: &str = "10m";
/// How many lines of the log of a server that failed are shown.
const LOG_LINES: usize = 5;

/// The version of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// That of the experiment.
    This,
    /// The one before.
    Previous,
}

/// A process that is to be started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'a> {
    pub(super) version: Version,
    pub(super) role: Role,
    /// The number among the processes with this role, from 0.
    pub(super) index: usize,
    /// A number that no other process has had.
    pub(super) number: u64,
    /// The address of the store.
    pub(super) address: &'a str,
}

/// The programs that processes run, and what they need.
pub(super) struct Programs {
    this: PathBuf,
    previous: Option<PathBuf>,
    /// The ports of the servers.
    ports: [u16; SERVERS],
    /// The name of the store in the record, if there are two.
    store_name: Option<&'static str>,
    /// The folder of the witness.
    folder: PathBuf,
    /// The folder of the servers' logs.
    logs: TempDir,
    /// The seed of the load.
    seed: u64,
    /// The clock that processes see, if it is not that of the machine.
    clock: Option<Clock>,
    /// Options with the addresses of servers beside the store.
    services: Vec<(&'static str, String)>,
}

/// Returns the path of this program. The system's own answer is wrong in the root folder of another one (chroot) with its own file systems, so that
/// the name by which the program was started comes first.
fn this_program() -> std::io::Result<PathBuf> {
    match std::env::args_os().next().map(PathBuf::from) {
        Some(name) if name.components().count() > 1 => name.canonicalize(),
        _ => std::env::current_exe(),
    }
}

impl Programs {
    /// Finds the programs. `milepost` is expected beside `milepost-chaos`, in each version.
    pub(super) fn new(
        previous: Option<PathBuf>,
        folder: PathBuf,
        seed: u64,
        clock: Option<Clock>,
        services: Vec<(&'static str, String)>,
    ) -> Result<Self> {
        let this = this_program()?;
        let ports = std::array::from_fn(|_| port::free());
        let logs = TempDir::new()?;
        let programs = Self { this, previous, ports, store_name: None, folder, logs, seed, clock, services };
        let program = programs.milepost_of(programs.first());
        ensure!(program.exists(), "{} is missing: build it, too (--bin milepost)", program.display());
        Ok(programs)
    }

    /// Returns the port of the server with this number.
    pub(super) const fn port_of_server(&self, index: usize) -> u16 {
        self.ports[index]
    }

    /// Sets the name of the store in the record of processes that start from now on.
    pub(super) const fn set_store_name(&mut self, name: &'static str) {
        self.store_name = Some(name);
    }

    /// Returns the clock that processes see, if it is not that of the machine.
    pub(super) const fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    /// Returns the version with which everything begins.
    pub(super) const fn first(&self) -> Version {
        if self.previous.is_some() { Version::Previous } else { Version::This }
    }

    /// Returns the version to which a process of this version changes.
    pub(super) const fn other(&self, version: Version) -> Version {
        match version {
            Version::This if self.previous.is_some() => Version::Previous,
            _ => Version::This,
        }
    }

    /// Creates the store at this address, with everything that the load needs.
    pub(super) async fn prepare(&self, address: &str) -> Result<()> {
        let (what, version) = ("prepare", self.first());
        let status = self.of_store(what, version, address, "preparation", self.seed).status().await?;
        ensure!(status.success(), "the store cannot be prepared: {status}");
        Ok(())
    }

    /// Returns a command of `milepost`, which ends with its handle.
    pub(super) fn milepost(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.milepost_of(Version::This));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        command
    }

    /// Starts a process, which ends when its standard input is closed, or, if it is a server, at SIGTERM.
    pub(super) fn start(&self, start: Start<'_>) -> Result<Child> {
        let name = format!("{} {}", start.role.as_str(), start.number);
        let seed = self.seed.wrapping_add(start.number);
        let mut command = match start.role {
            Role::Server => self.server(start),
            Role::HttpWorker => self.http("worker", start.index, &name, seed),
            Role::HttpClient => self.http("client", start.index, &name, seed),
            Role::Worker | Role::Client | Role::Reader => {
                let what = start.role.as_str();
                let mut command = self.of_store(what, start.version, start.address, &name, seed);
                command.args(self.services.iter().flat_map(|(option, address)| [option, address.as_str()]));
                command
            }
        };
        if let Some(clock) = &self.clock {
            command.envs(clock.environment());
            if start.role != Role::Server {
                command.arg(clock.argument()?);
            }
        }
        let started = command.stdin(Stdio::piped()).kill_on_drop(true).spawn();
        started.with_context(|| format!("cannot start {name}"))
    }

    /// A process that calls the store.
    fn of_store(&self, what: &str, version: Version, address: &str, name: &str, seed: u64) -> Command {
        let mut command = Command::new(self.path(version));
        command.arg(what).args(["--store", address]);
        self.describe(&mut command, name, seed);
        command
    }

    /// A process that calls servers. A worker stays with one, clients change between all.
    fn http(&self, what: &str, index: usize, name: &str, seed: u64) -> Command {
        let mut command = Command::new("python3");
        command.args([HTTP, what]);
        let mut ports = self.ports;
        ports.rotate_left(index % SERVERS);
        for port in ports {
            command.arg("--url").arg(format!("http://127.0.0.1:{port}"));
        }
        self.describe(&mut command, name, seed);
        command
    }

    fn describe(&self, command: &mut Command, name: &str, seed: u64) {
        command.args(["--name", name, "--seed", &seed.to_string()]).arg("--folder").arg(&self.folder);
        command.args(self.store_name.iter().flat_map(|name| ["--store-name", name]));
    }

    fn server(&self, start: Start<'_>) -> Command {
        let mut command = Command::new(self.milepost_of(start.version));
        let listen = format!("127.0.0.1:{}", self.ports[start.index]);
        command.args(["serve", "--only", "api", "--store", start.address, "--listen", &listen]);
        for (_, url) in self.services.iter().filter(|(option, _)| *option == "--redis") {
            command.args(["--redis", url]);
        }
        // In a folder without a configuration. The log has many messages about faults: it is shown only if the server fails.
        command.args(["--store-wait", STORE_WAIT]).current_dir(&self.folder).stdout(Stdio::null());
        let log = OpenOptions::new().create(true).append(true).open(self.log_of_server(start.index));
        command.stderr(log.map_or_else(|_| Stdio::null(), Stdio::from));
        command
    }

    fn log_of_server(&self, index: usize) -> PathBuf {
        self.logs.path().join(format!("server-{index}.log"))
    }

    /// Returns the last lines of a server's log.
    pub(super) fn last_words_of_server(&self, index: usize) -> String {
        let log = std::fs::read(self.log_of_server(index)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let last: Vec<&str> = log.lines().rev().take(LOG_LINES).collect();
        last.into_iter().rev().flat_map(|line| ["\n      ", line]).collect()
    }

    fn milepost_of(&self, version: Version) -> PathBuf {
        self.path(version).with_file_name("milepost")
    }

    fn path(&self, version: Version) -> &Path {
        match (version, &self.previous) {
            (Version::Previous, Some(previous)) => previous,
            _ => &self.this,
        }
    }
}

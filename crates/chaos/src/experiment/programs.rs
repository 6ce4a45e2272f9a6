//! The programs of the processes: this one, and during a rolling upgrade that of the version before.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::process::{Child, Command};

use super::clock::Clock;

/// The version of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// That of the experiment.
    This,
    /// The one before.
    Previous,
}

/// The programs that processes run, and what they need.
pub(super) struct Programs {
    this: PathBuf,
    previous: Option<PathBuf>,
    /// The folder of the witness.
    folder: PathBuf,
    /// The seed of the load.
    seed: u64,
    /// The clock that processes see, if it is not that of the machine.
    clock: Option<Clock>,
}

impl Programs {
    pub(super) fn new(
        previous: Option<PathBuf>,
        folder: PathBuf,
        seed: u64,
        clock: Option<Clock>,
    ) -> Result<Self> {
        Ok(Self { this: std::env::current_exe()?, previous, folder, seed, clock })
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
        let status =
            self.command(self.first(), "prepare", address, "preparation", self.seed).status().await?;
        ensure!(status.success(), "the store cannot be prepared: {status}");
        Ok(())
    }

    /// Starts a process, which ends when its standard input is closed. No other process has had its number.
    pub(super) fn start(
        &mut self,
        version: Version,
        role: &str,
        address: &str,
        number: u64,
    ) -> Result<Child> {
        let name = format!("{role} {number}");
        let seed = self.seed.wrapping_add(number);
        let mut command = self.command(version, role, address, &name, seed);
        if let Some(clock) = &self.clock {
            command.envs(clock.environment()).arg(clock.argument()?);
        }
        let started = command.stdin(Stdio::piped()).kill_on_drop(true).spawn();
        let child = started.with_context(|| format!("cannot start {name}"))?;
        if let Some(clock) = &mut self.clock {
            clock.used_by(child.id());
        }
        Ok(child)
    }

    fn command(&self, version: Version, what: &str, address: &str, name: &str, seed: u64) -> Command {
        let mut command = Command::new(self.path(version));
        command.arg(what).args(["--store", address, "--name", name, "--seed", &seed.to_string()]);
        command.arg("--folder").arg(&self.folder);
        command
    }

    fn path(&self, version: Version) -> &Path {
        match (version, &self.previous) {
            (Version::Previous, Some(previous)) => previous,
            _ => &self.this,
        }
    }
}

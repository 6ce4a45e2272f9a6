//! The programs of Milepost under load. Some run all the time and are measured; others are killed and stopped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    arguments: Vec<String>,
    child: Child,
}

/// How much a process uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usage {
    /// Its memory in MiB: anonymous pages, without those of files.
    pub(crate) memory_mib: f64,
    pub(crate) threads: f64,
    /// Its open files and connections.
    pub(crate) files: f64,
}

/// All programs.
#[derive(Debug)]
pub(crate) struct Processes {
    program: PathBuf,
    folder: PathBuf,
    /// Those that run all the time.
    pub(crate) steady: Vec<Process>,
    /// Those that faults hit.
    pub(crate) hit: Vec<Process>,
}

impl Processes {
    /// Starts the programs in a folder with their configuration.
    pub(crate) fn start(program: PathBuf, folder: &Path) -> Result<Self> {
        let mut processes = Self { program, folder: folder.to_owned(), steady: Vec::new(), hit: Vec::new() };
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        for (name, arguments) in [("worker", &["work"][..]), ("relay", &["relay"]), ("server", &serve)] {
            let process = processes.spawn(name, arguments.iter().map(ToString::to_string).collect())?;
            processes.steady.push(process);
        }
        for (name, arguments) in [("worker that is hit", "work"), ("relay that is hit", "relay")] {
            let process = processes.spawn(name, vec![arguments.to_owned()])?;
            processes.hit.push(process);
        }
        Ok(processes)
    }

    fn spawn(&self, name: &'static str, arguments: Vec<String>) -> Result<Process> {
        let log = File::options().create(true).append(true).open(self.folder.join(format!("{name}.log")))?;
        let child = Command::new(&self.program)
            .args(&arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        Ok(Process { name, arguments, child })
    }

    /// Kills a program, and starts it again.
    pub(crate) async fn kill(&mut self, index: usize) -> Result<()> {
        self.hit[index].child.kill().await?;
        let Process { name, ref arguments, .. } = self.hit[index];
        self.hit[index] = self.spawn(name, arguments.clone())?;
        Ok(())
    }

    /// Stops a program, or lets it continue.
    pub(crate) fn signal(&self, index: usize, signal: Signal) -> Result<()> {
        let Some(pid) = self.hit[index].child.id() else { return Ok(()) };
        Ok(kill(Pid::from_raw(pid.cast_signed()), signal)?)
    }

    /// Asks all programs to end, and returns those that did not end well.
    pub(crate) async fn finish(&mut self) -> Vec<String> {
        let mut failed = Vec::new();
        for process in self.steady.iter_mut().chain(&mut self.hit) {
            if let Some(pid) = process.child.id() {
                for signal in [Signal::SIGCONT, Signal::SIGTERM] {
                    let _ = kill(Pid::from_raw(pid.cast_signed()), signal);
                }
            }
            match process.child.wait().await {
                Ok(status) if status.success() => {}
                ended => failed.push(format!("the {} ended with {ended:?}", process.name)),
            }
        }
        failed
    }
}

impl Process {
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns how much it uses; none if it has ended.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let folder = PathBuf::from(format!("/proc/{}", self.child.id()?));
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let field = |name: &str| -> Option<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        #[allow(clippy::cast_precision_loss, reason = "a process has few open files")]
        let files = std::fs::read_dir(folder.join("fd")).ok()?.count() as f64;
        Some(Usage { memory_mib: field("RssAnon:")? / 1024.0, threads: field("Threads:")?, files })
    }
}

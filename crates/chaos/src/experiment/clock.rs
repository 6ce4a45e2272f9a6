//! The clock that the processes see. It can be set, while timers and the clock of the witness continue.

use std::path::PathBuf;

use anyhow::Result;
use nix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

/// The library, for programs with several threads, without the folder of libraries.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
/// The files that the library leaves in /dev/shm for each process.
const LEFT: [&str; 2] = ["faketime_shm_", "sem.faketime_sem_"];

/// The clock of all processes that have its environment.
pub(super) struct Clock {
    library: PathBuf,
    folder: TempDir,
    processes: Vec<u32>,
}

impl Clock {
    /// Returns whether the library is installed.
    pub(super) fn is_installed() -> bool {
        Self::library().is_some()
    }

    fn library() -> Option<PathBuf> {
        let folders = ["x86_64-linux-gnu", "aarch64-linux-gnu", "."];
        let paths = folders.iter().map(|folder| PathBuf::from("/usr/lib").join(folder).join(LIBRARY));
        paths.into_iter().find(|path| path.exists())
    }

    /// Creates a clock that is right, if the library is installed.
    pub(super) fn create() -> Result<Option<Self>> {
        let Some(library) = Self::library() else { return Ok(None) };
        let clock = Self { library, folder: tempfile::tempdir()?, processes: Vec::new() };
        clock.set(0)?;
        Ok(Some(clock))
    }

    /// Sets the clock by this number of seconds before or after the right time.
    pub(super) fn set(&self, ahead_s: i64) -> Result<()> {
        // Renamed, so that no process reads a part of it.
        let (new, file) = (self.folder.path().join("new"), self.file());
        std::fs::write(&new, format!("{ahead_s:+}\n"))?;
        Ok(std::fs::rename(new, file)?)
    }

    /// Returns the environment of processes that see this clock.
    pub(super) fn environment(&self) -> [(&'static str, PathBuf); 4] {
        [
            ("LD_PRELOAD", self.library.clone()),
            ("FAKETIME_TIMESTAMP_FILE", self.file()),
            ("FAKETIME_NO_CACHE", PathBuf::from("1")),
            ("FAKETIME_DONT_FAKE_MONOTONIC", PathBuf::from("1")),
        ]
    }

    /// Returns the argument by which the witness of such a process knows the right time.
    pub(super) fn argument(&self) -> Result<String> {
        let [now, monotonic] = [ClockId::CLOCK_REALTIME, ClockId::CLOCK_MONOTONIC].map(clock_gettime);
        let (now, monotonic) = (now?, monotonic?);
        let seconds = now.tv_sec() - monotonic.tv_sec();
        let nanoseconds = seconds * 1_000_000_000 + now.tv_nsec() - monotonic.tv_nsec();
        Ok(format!("--boot-ns={nanoseconds}"))
    }

    /// Notes that a process uses the clock.
    pub(super) fn used_by(&mut self, process: Option<u32>) {
        self.processes.extend(process);
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("time")
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        for process in &self.processes {
            for left in LEFT {
                // A process that ended in time has removed it.
                let _ = std::fs::remove_file(format!("/dev/shm/{left}{process}"));
            }
        }
    }
}

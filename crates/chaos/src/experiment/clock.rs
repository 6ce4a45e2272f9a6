//! The clock that the processes see. It can be set, while timers and the clock of the witness continue.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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
        // Servers of other users read the time, too.
        let folder = tempfile::tempdir()?;
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let clock = Self { library, folder };
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

    fn file(&self) -> PathBuf {
        self.folder.path().join("time")
    }
}

impl Drop for Clock {
    /// Removes the files of processes that did not end in time.
    fn drop(&mut self) {
        for found in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            let name = found.file_name();
            let process = LEFT.iter().find_map(|left| name.to_str()?.strip_prefix(left));
            let has_ended = |process: &str| !Path::new("/proc").join(process).exists();
            if process.is_some_and(|process| process.parse::<u32>().is_ok() && has_ended(process)) {
                // Another experiment may have removed it.
                let _ = std::fs::remove_file(found.path());
            }
        }
    }
}

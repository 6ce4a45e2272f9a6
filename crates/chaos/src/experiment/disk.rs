//! A disk that can be filled, and that can lose its power.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sched::CloneFlags;
use tempfile::TempDir;

/// The size of the disk, in mebibytes.
const DISK_MIB: u32 = 1_024;
/// The size of the disk with which it is found out whether one can be mounted.
const TRIAL_MIB: u32 = 16;
/// How long the disk stays full, or read-only.
const FULL_FOR: Duration = Duration::from_millis(1_000);
/// Shuts an ext4 file system down without writing its journal, as if the power had failed: everything that was not synchronized is lost.
/// EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH, of `fs/ext4/ext4.h` in the Linux kernel.
const SHUT_DOWN: &str = "import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack(\"I\", 2))";

/// Lets no other process see what this one mounts, so that nothing stays mounted when it has ended, however it ends. Call it before there are other
/// threads. Without the permission, nothing can be mounted either.
pub fn keep_mounts_private() {
    if nix::sched::unshare(CloneFlags::CLONE_NEWNS).is_ok() {
        let _ = run(Command::new("mount").args(["--make-rprivate", "/"]));
    }
}

/// An ext4 file system in a file.
pub(super) struct Disk {
    mounted: TempDir,
    image: PathBuf,
    _folder: TempDir,
}

impl Disk {
    /// Returns whether this user may mount a file system from a file here.
    pub(super) fn is_permitted() -> bool {
        nix::unistd::geteuid().is_root() && Self::mount_of(TRIAL_MIB).is_ok()
    }

    /// Returns whether errors can be made in such a file system here.
    pub(super) fn can_become_read_only() -> bool {
        let can_open = |path: PathBuf| std::fs::OpenOptions::new().write(true).open(path).is_ok();
        Self::mount_of(TRIAL_MIB).is_ok_and(|disk| disk.error_trigger().is_ok_and(can_open))
    }

    pub(super) fn mount() -> Result<Self> {
        Self::mount_of(DISK_MIB)
    }

    fn mount_of(size_mib: u32) -> Result<Self> {
        let folder = tempfile::tempdir_in(fast_folder(size_mib))?;
        let image = folder.path().join("disk.img");
        File::create(&image)?.set_len(u64::from(size_mib) << 20)?;
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image))?;
        let mounted = tempfile::Builder::new().prefix("milepost-disk.").tempdir()?;
        mount_image(&image, mounted.path())?;
        let disk = Self { mounted, image, _folder: folder };
        run(Command::new("chmod").arg("777").arg(disk.path()))?;
        Ok(disk)
    }

    /// Returns the folder in which it is mounted.
    pub(super) fn path(&self) -> &Path {
        self.mounted.path()
    }

    /// Writes everything to the disk, so that a power loss keeps it.
    pub(super) fn synchronize(&self) -> Result<()> {
        run(Command::new("sync").arg("-f").arg(self.path()))
    }

    /// Takes all free space for a moment. Its blocks can be used again when the file system has committed the removal.
    pub(super) async fn fill(&self) -> Result<()> {
        let path = self.path().join("filler");
        fill(&path)?;
        tokio::time::sleep(FULL_FOR).await;
        std::fs::remove_file(path)?;
        self.synchronize()
    }

    /// Loses everything that was not synchronized. Nothing can be read or written until the [power is back](Self::power_on).
    pub(super) fn lose_power(&self) -> Result<()> {
        run(Command::new("python3").args(["-c", SHUT_DOWN]).arg(self.path()))
    }

    /// Becomes read-only, as file systems do after an error, and stays so for a moment. Until the [machine was started
    /// again](Self::power_on), nothing can be written.
    ///
    /// The error is made while no write is in progress: ext4 reports success for a `fdatasync` that waits while the journal is aborted, although
    /// its data is lost. No program can detect that.
    pub(super) async fn become_read_only(&self) -> Result<()> {
        let trigger = self.error_trigger()?;
        run(Command::new("fsfreeze").arg("--freeze").arg(self.path()))?;
        let made = std::fs::write(trigger, "an experiment");
        run(Command::new("fsfreeze").arg("--unfreeze").arg(self.path()))?;
        made?;
        tokio::time::sleep(FULL_FOR).await;
        Ok(())
    }

    /// Returns the file of the kernel by which an error is made.
    fn error_trigger(&self) -> Result<PathBuf> {
        let device = output(Command::new("findmnt").args(["-n", "-o", "SOURCE"]).arg(self.path()))?;
        let name = device.trim().rsplit('/').next().unwrap_or_default();
        Ok(PathBuf::from(format!("/sys/fs/ext4/{name}/trigger_fs_error")))
    }

    /// Mounts the disk again, and repairs it. No process may use it any more.
    pub(super) fn power_on(&self) -> Result<()> {
        run(Command::new("umount").arg(self.path()))?;
        // 1: errors were corrected.
        let checked = Command::new("e2fsck").arg("-fy").arg(&self.image).output()?;
        anyhow::ensure!(
            matches!(checked.status.code(), Some(0 | 1)),
            "the disk cannot be repaired: {checked:?}"
        );
        mount_image(&self.image, self.path())
    }
}

fn mount_image(image: &Path, place: &Path) -> Result<()> {
    run(Command::new("mount").args(["-t", "ext4", "-o", "loop,errors=remount-ro"]).args([image, place]))
}

/// Returns a folder in memory, if it has enough space. Only what was not written to the image is lost, so the image itself need not be durable.
fn fast_folder(size_mib: u32) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let free = nix::sys::statvfs::statvfs(&memory).map(|stat| stat.blocks_available() * stat.fragment_size());
    let needed = 2 * (u64::from(size_mib) << 20);
    if free.is_ok_and(|bytes| bytes > needed) { memory } else { std::env::temp_dir() }
}

/// Writes a file until nothing fits on the disk any more.
fn fill(path: &Path) -> Result<()> {
    let mut filler = File::create(path)?;
    for size in [1 << 20, 1 << 12, 1] {
        let block = vec![0; size];
        while filler.write(&block).is_ok_and(|written| written > 0) {}
    }
    Ok(())
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("umount").arg("-l").arg(self.path())) {
            eprintln!("{error}");
        }
    }
}

fn run(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{command:?}: {} {}", output.status, words.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

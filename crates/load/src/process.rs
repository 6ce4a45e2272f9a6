//! The `milepost` processes of a run.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::process::{Child, Command};

/// How long a process may take to start.
const START_MAX: Duration = Duration::from_secs(60);
/// The text before the address in the log of a server.
const SERVING: &str = "serving http://";

/// The program, its folder with the configuration, and its store.
#[derive(Clone, Debug)]
pub struct Program {
    /// The path of the program.
    pub path: PathBuf,
    /// Its working directory, with `milepost.toml` and the logs.
    pub folder: PathBuf,
    /// The address of the store.
    pub store: String,
}

/// A running process. Dropping the value kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Creates or migrates the tables of a store.
    ///
    /// # Errors
    /// When the command fails.
    pub async fn migrate(&self, store: &str) -> Result<()> {
        let output = self.command(store).arg("migrate").output().await;
        let output = output.with_context(|| format!("cannot run {}", self.path.display()))?;
        ensure!(output.status.success(), "milepost migrate: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Starts a server without workers. Returns it with its address.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn serve(&self) -> Result<(Process, SocketAddr)> {
        let mut server = self.start("server", &["serve", "--only", "api", "--listen", "127.0.0.1:0"])?;
        let began = Instant::now();
        loop {
            let log = std::fs::read_to_string(&server.log)?;
            if let Some((_, rest)) = log.split_once(SERVING)
                && let Some(address) = rest.split_whitespace().next()
            {
                return Ok((server, address.parse()?));
            }
            if began.elapsed() > START_MAX || server.child.try_wait()?.is_some() {
                bail!("the server does not start: {log}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts a worker with this name.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn work(&self, name: &str) -> Result<Process> {
        self.start(name, &["work", "--name", name])
    }

    fn start(&self, name: &str, arguments: &[&str]) -> Result<Process> {
        let log = self.folder.join(format!("{name}.log"));
        let child = self.command(&self.store).args(arguments).stderr(File::create(&log)?).spawn();
        Ok(Process { child: child.with_context(|| format!("cannot run {}", self.path.display()))?, log })
    }

    fn command(&self, store: &str) -> Command {
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.folder)
            .env("MILEPOST_STORE", store)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

impl Process {
    /// Kills it (SIGKILL). Fails if it had ended before.
    ///
    /// # Errors
    /// When it had ended before, or cannot be killed.
    pub async fn kill(&mut self) -> Result<()> {
        self.check_running()?;
        Ok(self.child.kill().await?)
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// When it has ended.
    pub fn check_running(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            bail!("a process has ended unexpectedly ({status}): {log}");
        }
        Ok(())
    }
}

/// Returns the `milepost` program in the folder of another program.
///
/// # Errors
/// When there is none.
pub fn program_beside(other: &Path) -> Result<PathBuf> {
    let program = other.with_file_name("milepost");
    ensure!(
        program.is_file(),
        "{} does not exist; build it (cargo build --workspace --bin milepost), or name a program with --program",
        program.display()
    );
    Ok(program)
}

//! A relay process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

pub(crate) struct Relay {
    config: PathBuf,
    store: String,
    name: String,
    child: Child,
    /// The task that resumes the frozen process.
    frozen: Option<tokio::task::JoinHandle<()>>,
}

impl Relay {
    pub(crate) fn start(config: &Path, store: &str, number: usize) -> Self {
        let name = format!("relay-{number}");
        let child = spawn(config, store, &name);
        Self { config: config.to_owned(), store: store.to_owned(), name, child, frozen: None }
    }

    /// Kills the process with SIGKILL and starts another one.
    pub(crate) async fn restart_killed(&mut self) {
        self.child.kill().await.unwrap();
        if let Some(frozen) = self.frozen.take() {
            frozen.abort();
        }
        self.child = spawn(&self.config, &self.store, &self.name);
    }

    /// Freezes the process for a while, longer than its lease.
    pub(crate) fn freeze(&mut self, time: Duration) {
        let Some(pid) = self.pid() else { return };
        if self.frozen.as_ref().is_some_and(|frozen| !frozen.is_finished()) {
            return;
        }
        kill(pid, Signal::SIGSTOP).unwrap();
        self.frozen = Some(tokio::spawn(async move {
            tokio::time::sleep(time).await;
            // The process may have been killed in the meantime.
            let _ = kill(pid, Signal::SIGCONT);
        }));
    }

    pub(crate) fn thaw(&mut self) {
        if let Some(pid) = self.pid() {
            kill(pid, Signal::SIGCONT).unwrap();
        }
    }

    /// Stops the process as an operator would; it must exit successfully.
    pub(crate) async fn stop(mut self) {
        kill(self.pid().expect("it runs"), Signal::SIGTERM).unwrap();
        let status = self.child.wait().await.unwrap();
        assert!(status.success(), "{} left with {status}", self.name);
    }

    fn pid(&self) -> Option<Pid> {
        self.child.id().map(|id| Pid::from_raw(id.cast_signed()))
    }
}

fn spawn(config: &Path, store: &str, name: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_milepost"))
        .args(["relay", "--name", name, "--config"])
        .arg(config)
        .env("MILEPOST_STORE", store)
        .env("MILEPOST_LOG", "error")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

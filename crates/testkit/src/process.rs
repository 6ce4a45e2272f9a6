//! Worker processes for tests: start, stop, pause, resume and kill.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use milepost::StatsView;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use crate::wait;

/// Environment variable with the store of a worker process.
pub const STORE: &str = "MILEPOST_TESTKIT_STORE";

/// Environment variable with the Redis of a worker process, if it has one.
pub const REDIS: &str = "MILEPOST_TESTKIT_REDIS";

/// Environment variable with the database of the members, if that is not the store.
pub const SHOP: &str = "MILEPOST_TESTKIT_SHOP";

/// Counters that a worker process prints, one line of JSON for each change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// Counters of the runtime.
    #[serde(flatten)]
    pub stats: StatsView,
    /// Handlers whose transaction failed because the job had left their run.
    pub handlers_fenced: u64,
}

/// Settings of a worker process.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub lease: Duration,
    pub concurrency: usize,
    pub drain: Duration,
    pub poll: Duration,
    /// Runs the bulk job `notify` with chunks of at most this number of rows.
    pub bulk_rows: Option<u32>,
    /// Maximum size of a file that the process writes: a write beyond that kills the process.
    pub file_bytes_max: Option<u64>,
    /// Only polls: on PostgreSQL, it receives no notifications, not even that its session ended while it was frozen.
    pub polls_only: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(60),
            concurrency: 8,
            drain: Duration::from_secs(20),
            poll: Duration::from_millis(500),
            bulk_rows: None,
            file_bytes_max: None,
            polls_only: false,
        }
    }
}

impl Settings {
    /// Sets the lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how many jobs run at the same time.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Sets the time to drain.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Enables the bulk job `notify` with chunks of at most `rows_max` rows.
    pub fn bulk_rows(mut self, rows_max: u32) -> Self {
        self.bulk_rows = Some(rows_max);
        self
    }

    /// Sets the limit on file sizes.
    pub fn file_bytes_max(mut self, bytes: u64) -> Self {
        self.file_bytes_max = Some(bytes);
        self
    }

    /// Disables notifications.
    pub fn polls_only(mut self) -> Self {
        self.polls_only = true;
        self
    }

    /// Returns the settings as arguments of the program.
    fn arguments(&self) -> Vec<String> {
        let ms = |name: &str, value: Duration| [format!("--{name}-ms"), value.as_millis().to_string()];
        let mut all = vec!["--concurrency".to_owned(), self.concurrency.to_string()];
        all.extend(ms("lease", self.lease));
        all.extend(ms("drain", self.drain));
        all.extend(ms("poll", self.poll));
        let options = [
            ("--bulk-rows", self.bulk_rows.map(u64::from)),
            ("--file-bytes-max", self.file_bytes_max),
            ("--polls-only", self.polls_only.then_some(1)),
        ];
        for (name, value) in options {
            all.extend(value.into_iter().flat_map(|value| [name.to_owned(), value.to_string()]));
        }
        all
    }
}

/// A running worker process. Dropping the value kills the process. The process also exits when its supervisor ends, because its standard input closes
/// then.
pub struct Process {
    child: Child,
    _stdin: ChildStdin,
    words: watch::Receiver<Words>,
}

impl Process {
    /// Starts `program` (`env!("CARGO_BIN_EXE_conformance-worker")` in an integration test) on the store at `url`.
    pub fn start(program: impl AsRef<Path>, url: &str, settings: Settings) -> Self {
        Self::start_with(program, url, None, settings)
    }

    /// Starts the program with a Redis in addition to the store.
    pub fn start_with(program: impl AsRef<Path>, url: &str, redis: Option<&str>, settings: Settings) -> Self {
        Self::start_beside(program, url, redis.map(|redis| (REDIS, redis)), settings)
    }

    /// Starts the program with an additional environment variable.
    pub fn start_beside(
        program: impl AsRef<Path>,
        url: &str,
        beside: Option<(&str, &str)>,
        settings: Settings,
    ) -> Self {
        let mut child = Command::new(program.as_ref())
            .args(settings.arguments())
            .env(STORE, url)
            .envs(beside)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("cannot start the worker program");
        let stdin = child.stdin.take().expect("piped");
        let stdout = child.stdout.take().expect("piped");
        let (sender, words) = watch::channel(Words::default());
        tokio::spawn(read(stdout, sender));
        Self { child, _stdin: stdin, words }
    }

    /// Returns the counters that the process printed last.
    pub fn words(&self) -> Words {
        *self.words.borrow()
    }

    /// Waits until the counters satisfy `say_so`. Panics with `what` if they do not within [`wait::LIMIT`] or if the process ends first.
    pub async fn until(&mut self, what: &str, say_so: impl Fn(&Words) -> bool) -> Words {
        let said = self.words.wait_for(|words| say_so(words));
        let why = match tokio::time::timeout(wait::LIMIT, said).await {
            Ok(Ok(words)) => return *words,
            Ok(Err(_)) => "the process ended",
            Err(_) => "the time limit passed",
        };
        panic!("{why} before: {what}; its last report: {:?}", self.words())
    }

    /// Kills the process (SIGKILL) and waits until it has ended.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("killed");
    }

    /// Freezes the process (SIGSTOP); returns when the kernel reports that it is stopped.
    pub async fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        let stat = format!("/proc/{}/stat", self.pid());
        wait::until("the process is frozen", || async {
            let stat = std::fs::read_to_string(&stat).expect("the process does not exist");
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        })
        .await;
    }

    /// Resumes the process (SIGCONT).
    pub fn revive(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Asks the process to shut down (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Waits until the process has exited.
    pub async fn exit(&mut self) -> ExitStatus {
        let left = tokio::time::timeout(wait::LIMIT, self.child.wait()).await;
        left.expect("the process does not exit").expect("waited for")
    }

    fn signal(&self, signal: Signal) {
        signal::kill(self.pid(), signal).expect("the process does not exist");
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().expect("the process runs").cast_signed())
    }
}

async fn read(stdout: ChildStdout, words: watch::Sender<Words>) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let said = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e} in a worker's line: {line}"));
        words.send_replace(said);
    }
}

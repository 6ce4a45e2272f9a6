//! A worker as a real process: started, stopped, paused, revived and killed.

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

/// The environment variable by which a worker process is told its store.
pub const STORE: &str = "MILEPOST_TESTKIT_STORE";

/// The environment variable by which a worker process is told its Redis, if it has one.
pub const REDIS: &str = "MILEPOST_TESTKIT_REDIS";

/// The environment variable by which a worker process is told the database on which members are, if that is not its store.
pub const SHOP: &str = "MILEPOST_TESTKIT_SHOP";

/// What a worker process says about itself: one such line of JSON at each change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// What the runtime counted.
    #[serde(flatten)]
    pub stats: StatsView,
    /// Handlers whose own transaction was told that the job had moved on.
    pub handlers_fenced: u64,
}

/// How a worker process works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub lease: Duration,
    pub concurrency: usize,
    pub drain: Duration,
    pub poll: Duration,
    /// Runs the bulk job `notify` with chunks of so many rows at most.
    pub bulk_rows: Option<u32>,
    /// How large a file that it writes may grow: it is killed by the write that would go beyond.
    pub file_bytes_max: Option<u64>,
    /// Polls only: on PostgreSQL, nobody tells it anything, not even that its session ended while it was frozen.
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
    /// The settings with this lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// The settings with so many jobs at once.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// The settings with this time to drain.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// The settings with the bulk job `notify`, in chunks of so many rows at most.
    pub fn bulk_rows(mut self, rows_max: u32) -> Self {
        self.bulk_rows = Some(rows_max);
        self
    }

    /// The settings with this limit on files.
    pub fn file_bytes_max(mut self, bytes: u64) -> Self {
        self.file_bytes_max = Some(bytes);
        self
    }

    /// The settings, listening to nobody.
    pub fn polls_only(mut self) -> Self {
        self.polls_only = true;
        self
    }

    /// As arguments of the program.
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

/// A running worker process. Killed when dropped; it also exits by itself when its supervisor is gone,
/// because its standard input closes then.
pub struct Process {
    child: Child,
    _stdin: ChildStdin,
    words: watch::Receiver<Words>,
}

impl Process {
    /// Starts `program` (`env!("CARGO_BIN_EXE_testkit-worker")` in an integration test) on the store at `url`.
    pub fn start(program: impl AsRef<Path>, url: &str, settings: Settings) -> Self {
        Self::start_with(program, url, None, settings)
    }

    /// The same with a Redis beside the store.
    pub fn start_with(program: impl AsRef<Path>, url: &str, redis: Option<&str>, settings: Settings) -> Self {
        Self::start_beside(program, url, redis.map(|redis| (REDIS, redis)), settings)
    }

    /// The same with something beside the store, in this variable of the environment.
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
            .expect("the worker program starts");
        let stdin = child.stdin.take().expect("piped");
        let stdout = child.stdout.take().expect("piped");
        let (sender, words) = watch::channel(Words::default());
        tokio::spawn(read(stdout, sender));
        Self { child, _stdin: stdin, words }
    }

    /// Its last words.
    pub fn words(&self) -> Words {
        *self.words.borrow()
    }

    /// Waits until its words say so; panics with `what` when they do not within [`wait::LIMIT`], or when the
    /// process is gone before.
    pub async fn until(&mut self, what: &str, say_so: impl Fn(&Words) -> bool) -> Words {
        let said = self.words.wait_for(|words| say_so(words));
        let why = match tokio::time::timeout(wait::LIMIT, said).await {
            Ok(Ok(words)) => return *words,
            Ok(Err(_)) => "the process ended",
            Err(_) => "too much time passed",
        };
        panic!("{why} before {what}; its last words: {:?}", self.words())
    }

    /// Ends it without any warning (SIGKILL) and waits until it is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("killed");
    }

    /// Freezes it (SIGSTOP); returns when the kernel says that it is frozen.
    pub async fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        let stat = format!("/proc/{}/stat", self.pid());
        wait::until("the process is frozen", || async {
            let stat = std::fs::read_to_string(&stat).expect("the process is there");
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        })
        .await;
    }

    /// Lets it go on (SIGCONT).
    pub fn revive(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Asks it to leave (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Waits until it has left by itself.
    pub async fn exit(&mut self) -> ExitStatus {
        let left = tokio::time::timeout(wait::LIMIT, self.child.wait()).await;
        left.expect("the process leaves").expect("waited for")
    }

    fn signal(&self, signal: Signal) {
        signal::kill(self.pid(), signal).expect("the process is there");
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

//! The thread that starts all programs.
//!
//! A program must die with its worker, even if the worker is killed. Linux signals the death of the *thread* that started a program
//! (`PR_SET_PDEATHSIG`), and threads of the runtime may end long before the process does. Therefore one thread, which runs as long as
//! the process, starts all programs.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// The members of a process group. They are killed when this is dropped.
///
/// The child is one of the standard library: `tokio::process` registers a child with the runtime after it has started it, and loses a
/// running child if the runtime shuts down in between.
///
/// The process id of a child cannot be reused before it is reaped. It is reaped last, so a signal to the group never reaches another process.
pub(super) struct Members {
    /// `None` once it is reaped.
    pub(super) child: Option<Child>,
    leader: Pid,
}

impl Members {
    /// Creates the group that is led by this child.
    pub(super) fn led_by(child: Child) -> io::Result<Self> {
        let leader = Pid::from_raw(child.id().cast_signed());
        let leader = leader.ok_or_else(|| io::Error::other("the program has no process id"))?;
        Ok(Self { child: Some(child), leader })
    }

    pub(super) async fn exited(&self) {
        let Ok(mut children) = signal(SignalKind::child()) else { return };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(self.leader), look), Ok(None)) {
            children.recv().await;
        }
    }

    pub(super) async fn end(&self, grace: Duration) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(grace, self.exited()).await.is_err() {
            self.signal(Signal::KILL);
            self.exited().await;
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        // The only possible error is that the group has no members left.
        let _ = kill_process_group(self.leader, signal);
    }

    pub(super) async fn reap(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.exited().await;
        match self.child.take() {
            Some(mut child) => child.wait(),
            None => Err(reaped_before()),
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            self.signal(Signal::KILL);
            reap(child);
        }
    }
}

/// Returns the error of a program that was waited for twice.
pub(super) fn reaped_before() -> io::Error {
    io::Error::other("the program has already been reaped")
}

enum Order {
    Start {
        command: Command,
        started: oneshot::Sender<io::Result<Members>>,
    },
    /// A killed program that no task waits for.
    Reap(Child),
}

static ORDERS: LazyLock<Sender<Order>> = LazyLock::new(|| {
    let (orders, receiver) = channel();
    // If the thread cannot be started, every order gets an error.
    let _ = std::thread::Builder::new().name("milepost-exec".to_owned()).spawn(move || serve(&receiver));
    orders
});

/// Starts a program as the leader of a new process group.
pub(super) async fn start(mut command: Command) -> io::Result<Members> {
    command.process_group(0);
    die_with_worker(&mut command);
    let gone = |()| io::Error::other("the thread that starts programs has ended");
    let (started, answer) = oneshot::channel();
    ORDERS.send(Order::Start { command, started }).map_err(|_| gone(()))?;
    answer.await.map_err(|_| gone(()))?
}

/// Reaps a killed program, which would stay a zombie otherwise.
pub(super) fn reap(child: Child) {
    // Without the thread, the system reaps it when the worker exits.
    let _ = ORDERS.send(Order::Reap(child));
}

fn serve(orders: &Receiver<Order>) {
    let mut killed: Vec<Child> = Vec::new();
    for order in orders {
        match order {
            Order::Start { mut command, started } => {
                // If the caller has gone away, the members are dropped and thereby killed.
                let _ = started.send(command.as_std_mut().spawn().and_then(Members::led_by));
            }
            Order::Reap(child) => killed.push(child),
        }
        killed.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the code between fork and exec is async-signal-safe")]
fn die_with_worker(command: &mut Command) {
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let worker = getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The worker may have died before this call.
        if getppid() == Some(worker) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: two system calls and a comparison; nothing allocates, locks or touches the parent's memory.
    unsafe { command.pre_exec(prepare) };
}

#[cfg(not(target_os = "linux"))]
fn die_with_worker(_command: &mut Command) {}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tokio::runtime::Runtime;

    use super::*;

    fn sleeper(mark: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do sleep 1000; done", mark]);
        command
    }

    /// Returns whether a running process has this argument.
    fn runs(mark: &str) -> bool {
        std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
            std::fs::read(process.path().join("cmdline"))
                .is_ok_and(|words| words.split(|&byte| byte == 0).any(|word| word == mark.as_bytes()))
        })
    }

    #[test]
    fn a_program_whose_runtime_goes_down_while_it_starts_does_not_run_on() {
        let mark = format!("milepost-{}", std::process::id());
        for _ in 0..20 {
            let runtime = Runtime::new().unwrap();
            let mut starting = Box::pin(start(sleeper(&mark)));
            drop(runtime.block_on(async { futures::poll!(&mut starting) }));
            drop(runtime);
            // Programs are started in order: once this one is, the first one is, too.
            Runtime::new().unwrap().block_on(start(Command::new("true"))).unwrap();
            drop(starting);
        }
        let began = Instant::now();
        while runs(&mark) {
            assert!(began.elapsed() < Duration::from_secs(120), "the program is still running");
            std::thread::yield_now();
        }
    }
}

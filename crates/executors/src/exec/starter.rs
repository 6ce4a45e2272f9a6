//! The thread that starts all programs.
//!
//! A program must die with its worker, even if the worker is killed. Linux signals the death of the *thread* that started a program
//! (`PR_SET_PDEATHSIG`), and threads of the runtime may end long before the process does. Therefore one thread, which runs as long as
//! the process, starts all programs.

use std::io;
use std::process::Child;
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::process::Command;
use tokio::sync::oneshot;

use super::process::Members;

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

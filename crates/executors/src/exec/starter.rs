//! The thread that starts all programs.
//!
//! A program is to die with the worker, however that dies. Linux can tell it (`PR_SET_PDEATHSIG`), but speaks of the
//! *thread* that started it: a thread of the runtime may end long before the process does. So all programs are started
//! by one thread that lives as long as the process.

use std::io;
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::process::Members;

struct Order {
    command: Command,
    runtime: Handle,
    started: oneshot::Sender<io::Result<Members>>,
}

static ORDERS: LazyLock<Sender<Order>> = LazyLock::new(|| {
    let (orders, receiver) = channel();
    // Without the thread the receiver is gone and every order answers that.
    let _ = std::thread::Builder::new().name("milepost-exec".to_owned()).spawn(move || serve(&receiver));
    orders
});

/// Starts a program as the leader of a process group of its own.
pub(super) async fn start(mut command: Command) -> io::Result<Members> {
    command.process_group(0);
    die_with_worker(&mut command);
    let gone = |()| io::Error::other("the thread that starts programs is gone");
    let (started, answer) = oneshot::channel();
    let order = Order { command, runtime: Handle::current(), started };
    ORDERS.send(order).map_err(|_| gone(()))?;
    answer.await.map_err(|_| gone(()))?
}

fn serve(orders: &Receiver<Order>) {
    for Order { mut command, runtime, started } in orders {
        let _runtime = runtime.enter();
        // Nobody waits any longer: the members are dropped, and so killed.
        let _ = started.send(command.spawn().and_then(Members::led_by));
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "what runs between fork and exec is promised to be async-signal-safe")]
fn die_with_worker(command: &mut Command) {
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let worker = getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The worker may have died before it was said.
        if getppid() == Some(worker) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: two system calls and a comparison; nothing allocates, locks or touches the parent's memory.
    unsafe { command.pre_exec(prepare) };
}

#[cfg(not(target_os = "linux"))]
fn die_with_worker(_command: &mut Command) {}

//! Faults every few seconds.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use nix::sys::signal::Signal;
use tokio::time::sleep;

use crate::configuration::LEASE;
use crate::place::Place;
use crate::processes::Processes;

/// The pause between two faults, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 2_000..6_000;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    KillProcess,
    StopProcess,
    KillBackends,
    CutNetwork,
}

impl Fault {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::KillProcess => "processes killed",
            Self::StopProcess => "processes stopped beyond their lease",
            Self::KillBackends => "times all connections ended by the server",
            Self::CutNetwork => "times all connections cut",
        }
    }
}

/// Injects faults until it is dropped.
pub(crate) async fn inject(
    place: &Place,
    processes: &tokio::sync::Mutex<Processes>,
    count: &std::sync::Mutex<BTreeMap<Fault, u32>>,
) -> Result<()> {
    let mut random = Rng::new();
    let mut kinds = vec![Fault::KillProcess, Fault::StopProcess];
    if place.has_server() {
        kinds.extend([Fault::KillBackends, Fault::CutNetwork]);
    }
    loop {
        sleep(Duration::from_millis(random.u64(PAUSE_MS))).await;
        let fault = kinds[random.usize(..kinds.len())];
        match fault {
            Fault::KillProcess => {
                let mut processes = processes.lock().await;
                let index = random.usize(..processes.hit.len());
                processes.kill(index).await?;
            }
            Fault::StopProcess => {
                let index = random.usize(..processes.lock().await.hit.len());
                processes.lock().await.signal(index, Signal::SIGSTOP)?;
                sleep(LEASE + Duration::from_secs(1)).await;
                processes.lock().await.signal(index, Signal::SIGCONT)?;
            }
            Fault::KillBackends => place.kill_backends().await?,
            Fault::CutNetwork => place.cut().await,
        }
        *count.lock().expect("not poisoned").entry(fault).or_default() += 1;
    }
}

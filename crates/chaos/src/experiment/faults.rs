//! Faults, chosen by the seed.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use fastrand::Rng;
use milepost_testkit::server::Server;

use super::STOPPED_FOR;
use super::processes::{Processes, Role};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// SIGKILL of a worker; another one starts.
    KillWorker,
    /// SIGSTOP of a worker for longer than its lease.
    StopWorker,
    /// SIGKILL of a client; another one starts.
    KillClient,
    /// An immediate shutdown of the database server, and a start.
    CrashServer,
}

impl Fault {
    const ALL: [Self; 4] = [Self::KillWorker, Self::StopWorker, Self::KillClient, Self::CrashServer];

    /// Returns its name.
    #[must_use]
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::KillWorker => "workers killed",
            Self::StopWorker => "workers stopped beyond their lease",
            Self::KillClient => "clients killed",
            Self::CrashServer => "database servers crashed",
        }
    }
}

/// The faults that were injected.
#[derive(Debug, Default)]
pub(super) struct Faults {
    count: BTreeMap<Fault, u32>,
    /// Stopped processes, with the time at which they continue.
    stopped: Vec<(u32, Instant)>,
}

impl Faults {
    /// Injects one fault.
    pub(super) async fn inject(
        &mut self,
        random: &mut Rng,
        processes: &mut Processes,
        server: Option<&Server>,
    ) -> Result<()> {
        self.resume(processes, Instant::now())?;
        let fault = Fault::ALL[random.usize(..Fault::ALL.len())];
        let is_done = match (fault, server) {
            (Fault::KillWorker, _) => processes.kill(random, Role::Worker).await?,
            (Fault::KillClient, _) => processes.kill(random, Role::Client).await?,
            (Fault::StopWorker, _) => match processes.stop(random, Role::Worker)? {
                Some(pid) => {
                    self.stopped.push((pid, Instant::now() + STOPPED_FOR));
                    true
                }
                None => false,
            },
            (Fault::CrashServer, Some(server)) => {
                server.crash().await;
                server.start().await;
                true
            }
            (Fault::CrashServer, None) => false,
        };
        *self.count.entry(fault).or_default() += u32::from(is_done);
        Ok(())
    }

    /// Lets all stopped processes continue.
    pub(super) async fn stop(&mut self, processes: &mut Processes) -> Result<()> {
        let last = self.stopped.iter().map(|(_, until)| *until).max();
        if let Some(last) = last {
            tokio::time::sleep_until(last.into()).await;
            self.resume(processes, last)?;
        }
        Ok(())
    }

    fn resume(&mut self, processes: &mut Processes, now: Instant) -> Result<()> {
        let (due, later) =
            std::mem::take(&mut self.stopped).into_iter().partition(|(_, until)| *until <= now);
        self.stopped = later;
        let due: Vec<(u32, Instant)> = due;
        due.into_iter().try_for_each(|(pid, _)| processes.resume(pid))
    }

    /// Returns the number of faults of each kind that the store can have.
    pub(super) fn count(&self, has_server: bool) -> Vec<(Fault, u32)> {
        let possible = Fault::ALL.into_iter().filter(|fault| has_server || *fault != Fault::CrashServer);
        possible.map(|fault| (fault, self.count.get(&fault).copied().unwrap_or_default())).collect()
    }
}

//! Benchmark of the throughput while the planner has wrong statistics about the tables.

use std::time::Duration;

use anyhow::Result;
use milepost_cli_support::store::StoreAddress;
use milepost_core::claim::Claim;
use milepost_core::finish::{End, Finish};
use milepost_core::worker::NewWorker;
use sqlx::{Executor, PgPool};

use super::JobsBench;
use super::drain::{Drained, drain};
use super::report::{Report, median};
use super::target::{QUEUE, Target};
use super::workload::NOOP;

/// The number of rounds with each kind of statistics.
const ROUNDS: usize = 3;

/// The contents of the tables at the last ANALYZE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// ANALYZE runs when autovacuum starts it, so the statistics are correct.
    None,
    /// The tables were empty.
    Empty,
    /// All jobs were pending.
    Pending,
    /// All jobs were running.
    Running,
}

/// Runs `--mode lying-statistics`: drains with correct statistics and with each kind of wrong ones, alternating; reports medians.
pub(super) async fn run(bench: &JobsBench, address: &StoreAddress) -> Result<Report> {
    let lies = [Lie::None, Lie::Empty, Lie::Pending, Lie::Running];
    let mut rates = [const { Vec::new() }; 4];
    let mut enqueue_rates = Vec::new();
    let mut name = "";
    for _ in 0..ROUNDS {
        for (lie, rates) in lies.iter().zip(&mut rates) {
            let target = Target::prepare(address).await?;
            let drained = drain_under(*lie, bench, &target).await?;
            rates.push(drained.run_per_s());
            enqueue_rates.push(drained.enqueue_per_s());
            name = target.name;
            target.close().await;
        }
    }
    let [honest, empty, pending, running] = rates.map(median);
    let worst = empty.min(pending).min(running);
    let mut report = Report::new("lying_statistics", name, bench.jobs());
    report.enqueue_per_s = Some(median(enqueue_rates));
    report.run_per_s = Some(worst);
    Ok(report
        .with("honest_run_per_s", honest)
        .with("analyzed_empty_run_per_s", empty)
        .with("analyzed_pending_run_per_s", pending)
        .with("analyzed_running_run_per_s", running)
        .with("ratio", worst / honest))
}

async fn drain_under(lie: Lie, bench: &JobsBench, target: &Target) -> Result<Drained> {
    let server = target.server("lying-statistics")?;
    if lie != Lie::None {
        server
            .execute(
                "alter table milepost.live set (autovacuum_enabled = false);
             alter table milepost.job set (autovacuum_enabled = false);
             alter table milepost.ended set (autovacuum_enabled = false);
             alter table milepost.history set (autovacuum_enabled = false)",
            )
            .await?;
    }
    if lie == Lie::Empty {
        analyze(server).await?;
    }
    drain(bench, target, async || match lie {
        Lie::None | Lie::Empty => Ok(()),
        Lie::Pending => analyze(server).await,
        Lie::Running => while_all_run(target, server).await,
    })
    .await
}

/// Claims all jobs, runs ANALYZE, and releases the jobs again.
async fn while_all_run(target: &Target, server: &PgPool) -> Result<()> {
    let worker = NewWorker {
        name: "bench".to_owned(),
        queues: vec![QUEUE.to_owned()],
        kinds: vec![NOOP.to_owned()],
        lease: Duration::from_secs(600),
        ..NewWorker::default()
    };
    let worker = target.store.register_worker(&worker).await?;
    let mut held = Vec::new();
    for claim_id in 1.. {
        let claim = Claim {
            worker,
            claim_id,
            queues: vec![QUEUE.to_owned()],
            kinds: vec![NOOP.to_owned()],
            limit: 1000,
            thorough: false,
        };
        let jobs = target.store.claim(&claim).await?;
        if jobs.is_empty() {
            break;
        }
        held.extend(jobs.into_iter().map(|job| job.run));
    }
    analyze(server).await?;
    for runs in held.chunks(1000) {
        let back: Vec<Finish> = runs
            .iter()
            .map(|&run| {
                let end = End::Yield { delay: Duration::ZERO, note: "bench".to_owned() };
                Finish { run, end, grouped: false, task: false }
            })
            .collect();
        target.store.finish_many(worker, &back).await?;
    }
    target.store.retire_worker(worker).await?;
    Ok(())
}

async fn analyze(server: &PgPool) -> Result<()> {
    server.execute("analyze milepost.job, milepost.live, milepost.ended, milepost.history").await?;
    Ok(())
}

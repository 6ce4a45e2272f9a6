//! Benchmark of the latency from emit to acknowledgement at a constant rate of events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use hdrhistogram::Histogram;
use milepost_relay::sink::Sink;
use sqlx::Executor;

use super::emit::numbered;
use super::sink::Meter;
use super::{EventsBench, EventsReport, Relay, drain, emit};
use crate::report::Percentiles;
use crate::target::Target;

/// The number of events emitted per second, each in a separate transaction.
const PER_SECOND: u64 = 1_000;
/// The number of concurrent callers.
const CALLERS: u64 = 64;
/// How long the relay runs before the first event is emitted.
const SETTLE: Duration = Duration::from_millis(500);
/// How long events are emitted before they are measured: every caller opens a connection with its first event.
const WARM_UP: Duration = Duration::from_secs(2);

/// Emits events for a while, and measures each one from when it was due to be emitted.
pub(super) async fn at_a_thousand(
    bench: &EventsBench,
    target: &Target,
    sink: Arc<dyn Sink>,
    time: Duration,
) -> Result<Histogram<u64>> {
    let warm_up = WARM_UP.as_secs() * PER_SECOND;
    let meter = Arc::new(Meter::new(sink, Instant::now() + SETTLE, PER_SECOND, warm_up)?);
    let relay = Relay::start(bench, target, meter.clone());
    let events = warm_up + time.as_secs() * PER_SECOND;
    let callers = (0..CALLERS).map(|caller| {
        let (store, meter, bench) = (target.store.clone(), meter.clone(), bench.clone());
        tokio::spawn(async move {
            for number in (caller..events).step_by(CALLERS as usize) {
                tokio::time::sleep_until(meter.due_at(number).into()).await;
                store.emit(&numbered(&bench, number)?).await?;
            }
            anyhow::Ok(())
        })
    });
    try_join_all(callers).await?.into_iter().collect::<Result<()>>()?;
    relay.wait_for(events).await?;
    relay.stop().await?;
    Ok(meter.measured())
}

/// Runs `--mode held-snapshot`: publishes the same backlog and measures the same stream before and during an open snapshot that prevents
/// vacuum from removing dead rows.
pub(super) async fn under_a_snapshot(
    bench: &EventsBench,
    target: &Target,
    sink: Arc<dyn Sink>,
) -> Result<EventsReport> {
    let server = target.server("held-snapshot")?;
    emit::in_portions(bench, target).await?;
    let before_per_s = drain(bench, target, sink.clone()).await?;
    let before = at_a_thousand(bench, target, sink.clone(), Duration::from_secs(10)).await?;

    let mut holder = server.begin().await?;
    holder.execute("set transaction isolation level repeatable read").await?;
    holder.execute("select count(*) from milepost.subscription_slot").await?;
    let held = Duration::from_secs(bench.seconds.unwrap_or(600));
    at_a_thousand(bench, target, sink.clone(), held).await?;
    let emit_per_s = emit::in_portions(bench, target).await?;
    let under_per_s = drain(bench, target, sink.clone()).await?;
    let under = Percentiles::of(&at_a_thousand(bench, target, sink, Duration::from_secs(10)).await?);
    holder.rollback().await?;

    let before = Percentiles::of(&before);
    let report = EventsReport {
        store: target.name,
        emit_per_s: Some(emit_per_s),
        relay_per_s: Some(under_per_s),
        e2e_ms: under,
        ..EventsReport::default()
    };
    Ok(report
        .with("seconds", held.as_secs_f64())
        .with("without_snapshot_relay_per_s", before_per_s)
        .with("without_snapshot_p50_ms", before.p50.unwrap_or_default())
        .with("without_snapshot_p99_ms", before.p99.unwrap_or_default())
        .with("ratio", under_per_s / before_per_s))
}

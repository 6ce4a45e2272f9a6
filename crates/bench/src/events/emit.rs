//! Emitting the events of a benchmark.

use std::time::Instant;

use anyhow::{Result, bail};
use futures::future::try_join_all;
use milepost_cli_support::store::StoreAddress;
use milepost_core::event::{Aggregate, NewEvent};
use milepost_postgres::{PostgresOptions, PostgresStore};
use sqlx::Executor;

use super::{AGGREGATE_TYPE, EventsBench, EventsReport};
use crate::report::{median, per_s};
use crate::target::Target;

/// The number of events per call when many are emitted at once.
const PORTION: u64 = 500;
/// The number of concurrent callers for that.
const CALLERS: u64 = 4;
/// The number of pairs of rounds; rounds with emits and with plain inserts alternate.
const ROUNDS: usize = 5;

/// Creates the event with a number, which is in its payload.
pub(super) fn numbered(bench: &EventsBench, number: u64) -> Result<NewEvent> {
    let aggregate = Aggregate::new(AGGREGATE_TYPE, (number % bench.aggregates).to_string());
    Ok(NewEvent::new(aggregate, "bench.happened", &payload(bench, number))?)
}

fn payload(bench: &EventsBench, number: u64) -> serde_json::Value {
    let text = "x".repeat(bench.payload_bytes.saturating_sub(24));
    serde_json::json!({ "n": number, "text": text })
}

/// Emits all events, many per call; returns the events per second.
pub(super) async fn in_portions(bench: &EventsBench, target: &Target) -> Result<f64> {
    let events = bench.events();
    let began = Instant::now();
    let callers = (0..CALLERS).map(|caller| {
        let (store, bench) = (target.store.clone(), bench.clone());
        tokio::spawn(async move {
            let mut from = caller * PORTION;
            while from < events {
                let portion = from..(from + PORTION).min(events);
                let portion: Vec<NewEvent> =
                    portion.map(|number| numbered(&bench, number)).collect::<Result<_>>()?;
                store.emit_many(&portion).await?;
                from += CALLERS * PORTION;
            }
            anyhow::Ok(())
        })
    });
    try_join_all(callers).await?.into_iter().collect::<Result<()>>()?;
    Ok(per_s(events, began.elapsed().as_secs_f64()))
}

/// Runs `--mode single-emit`: one event per transaction, compared with a plain insert of the same row.
pub(super) async fn singly(
    bench: &EventsBench,
    target: &Target,
    address: &StoreAddress,
) -> Result<EventsReport> {
    let StoreAddress::Postgres(url) = address else { bail!("--mode single-emit measures PostgreSQL") };
    let connections_max = u32::try_from(bench.clients).unwrap_or(u32::MAX);
    let options = PostgresOptions { connections_max, ..PostgresOptions::default() };
    let store = PostgresStore::connect(url, options).await?;
    store.pool().execute(PLAIN_TABLE).await?;
    let (mut emitted, mut inserted, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    // The first pair is a warm-up.
    for round in 0..=ROUNDS {
        let emit = each(bench, |number| emit_one(bench, &store, number)).await?;
        let insert = each(bench, |number| insert_one(bench, &store, number)).await?;
        if round > 0 {
            emitted.push(emit);
            inserted.push(insert);
            ratios.push(emit / insert);
        }
    }
    store.pool().execute("drop table public.milepost_bench_event").await?;
    store.close().await;
    let report =
        EventsReport { store: target.name, emit_per_s: Some(median(emitted)), ..EventsReport::default() };
    Ok(report.with("plain_insert_per_s", median(inserted)).with("ratio", median(ratios)))
}

/// A table with the same columns and keys as the log, and nothing else.
const PLAIN_TABLE: &str = "
    drop table if exists public.milepost_bench_event;
    create table public.milepost_bench_event (
        slot smallint not null, pos bigint generated always as identity, event_id uuid not null unique,
        aggregate_type text not null, aggregate_id text not null, aggregate_seq bigint not null,
        emitted_at timestamptz not null default now(), event_type text not null, headers jsonb, payload json not null,
        primary key (slot, pos), unique (aggregate_type, aggregate_id, aggregate_seq))";

const PLAIN_INSERT: &str = "
    insert into public.milepost_bench_event
        (slot, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload)
    values (0, $1, $2, $3, $4, $5, $6::text::json)";

async fn emit_one(bench: &EventsBench, store: &PostgresStore, number: u64) -> Result<()> {
    use milepost_core::port::EventLog;
    store.emit(&numbered(bench, number)?).await?;
    Ok(())
}

async fn insert_one(bench: &EventsBench, store: &PostgresStore, number: u64) -> Result<()> {
    let event = numbered(bench, number)?;
    sqlx::query(PLAIN_INSERT)
        .bind(event.id.0)
        .bind(event.aggregate.kind)
        .bind(event.aggregate.id)
        // Sequence numbers are not assigned here; a distinct number is enough.
        .bind(any_sequence(event.id.0))
        .bind(event.event_type)
        .bind(event.payload.get())
        .execute(store.pool())
        .await?;
    Ok(())
}

/// Returns a number from the random part of an id.
fn any_sequence(id: uuid::Uuid) -> i64 {
    (id.as_u64_pair().1 >> 1) as i64
}

/// Distributes the events over all callers; returns the events per second.
async fn each<F: Future<Output = Result<()>>>(bench: &EventsBench, one: impl Fn(u64) -> F) -> Result<f64> {
    let events = bench.events();
    let began = Instant::now();
    let callers = (0..bench.clients as u64).map(|caller| {
        let one = &one;
        async move {
            for number in (caller..events).step_by(bench.clients) {
                one(number).await?;
            }
            anyhow::Ok(())
        }
    });
    try_join_all(callers).await?;
    Ok(per_s(events, began.elapsed().as_secs_f64()))
}

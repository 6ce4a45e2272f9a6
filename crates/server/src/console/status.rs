//! The current problems of a store and its runs in progress, for terminals.

use std::sync::Arc;

use milepost_core::alert::{ALERTS_MAX, ActiveAlert};
use milepost_core::bulk::listing::BulkView;
use milepost_core::error::StoreError;
use milepost_core::port::Store;

use super::alert::Alert;
use super::alert_facts::Facts;
use super::format::{count, several};
use super::page::Page;
use super::queues;
use crate::metrics::KINDS_MAX;
use crate::status_entry::{StatusEntry, Urgency};

/// Returns the problems that the overview page of the console shows, errors first, then the bulk runs and batches in progress.
///
/// # Errors
/// If the store does not answer.
pub async fn status(store: &Arc<dyn Store>) -> Result<Vec<StatusEntry>, StoreError> {
    let facts = facts(store).await?;
    let problems = facts.alerts(&Page::of_nobody()).into_iter().map(|alert| StatusEntry {
        urgency: if alert.error { Urgency::Error } else { Urgency::Warning },
        alert: Some(alert.key.to_string()),
        title: alert.title,
        words: alert.words,
        command: alert.details.command,
    });
    Ok(problems.chain(in_progress(&facts)).collect())
}

/// Returns the problems that the overview page shows, errors first, with their identities. Their number and texts are bounded.
///
/// # Errors
/// If the store does not answer.
pub async fn alerts(store: &Arc<dyn Store>) -> Result<Vec<ActiveAlert>, StoreError> {
    let alerts = facts(store).await?.alerts(&Page::of_nobody()).into_iter();
    Ok(alerts.take(ALERTS_MAX).map(Alert::into_active).collect())
}

/// Reads everything, and waits for the counts.
async fn facts(store: &Arc<dyn Store>) -> Result<Facts, StoreError> {
    let (facts, queues, subscriptions, consumers, limits) = tokio::try_join!(
        Facts::read(store.as_ref()),
        store.queues_by_kind(KINDS_MAX),
        store.subscriptions(),
        store.consumers(),
        store.limits()
    )?;
    // Not every account may read the audit, and who paused a queue is only an addition.
    let pauses = queues::who_paused(&queues, store.as_ref()).await.unwrap_or_default();
    Ok(Facts {
        pauses,
        queues: Some(queues),
        subscriptions: Some(subscriptions),
        consumers: Some(consumers),
        limits: Some(limits),
        ..facts
    })
}

fn in_progress(facts: &Facts) -> Vec<StatusEntry> {
    let running = |title: String, words: String, command: String| StatusEntry {
        urgency: Urgency::Running,
        alert: None,
        title,
        words,
        command,
    };
    let bulks = facts.bulks.iter().map(|(bulk, _)| bulk);
    let bulks = bulks.filter(|bulk| bulk.started_at.is_some() && !bulk.is_over()).map(|bulk| {
        running(
            format!("Bulk job {} runs", bulk.name),
            progress(bulk),
            format!("milepost bulk show {}", bulk.id),
        )
    });
    let batches = facts.running_batches.iter().map(|batch| {
        let words = several(batch.counts.total(), "task", "tasks");
        running(format!("A batch of {} runs", batch.dag), words, format!("milepost batch show {}", batch.id))
    });
    bulks.chain(batches).collect()
}

fn progress(bulk: &BulkView) -> String {
    let of = bulk.total.map_or_else(String::new, |total| format!(" of {}", count(total.rows)));
    format!("{}{of} targets done", count(bulk.counts.done))
}

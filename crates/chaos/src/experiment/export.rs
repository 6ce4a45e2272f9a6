//! The rows of a store, for the record.

use anyhow::Result;
use milepost_core::audit::AuditFilter;
use milepost_core::event::PageSize;
use milepost_core::history::HistoryEntry;
use milepost_core::listing::JobRow;
use milepost_core::port::Store;
use milepost_core::search::JobFilter;
use milepost_testkit::home::Home;
use milepost_testkit::relay;

use crate::load::{EFFECT, LEASE, SUBSCRIPTION};
use crate::record::{Change, Job, Row};

/// The number of rows that are read at a time.
const PAGE: u32 = 1_000;
/// The subscription with which the log is read.
const EXPORT: &str = "chaos-export";

/// Returns all rows that the checker knows.
///
/// # Errors
/// When the store does not answer.
pub(super) async fn rows(home: &dyn Home) -> Result<Vec<Row>> {
    let store = home.store();
    let mut rows = vec![
        Row::Effectful { kind: EFFECT.to_owned() },
        Row::Subscription { name: SUBSCRIPTION.to_owned(), changes: false },
    ];
    jobs(store.as_ref(), &mut rows).await?;
    audit(store.as_ref(), &mut rows).await?;
    events(store.as_ref(), &mut rows).await?;
    let effects = home.effects().await.into_iter().map(|effect| Row::Effect {
        job: effect.job.to_string(),
        token: u64::from(effect.token.0.unsigned_abs()),
    });
    rows.extend(effects);
    Ok(rows)
}

async fn jobs(store: &dyn Store, rows: &mut Vec<Row>) -> Result<()> {
    let mut filter = JobFilter { limit: PAGE, ..JobFilter::default() };
    loop {
        let page = store.jobs(&filter).await?;
        let Some(last) = page.last() else { return Ok(()) };
        filter.before = Some(last.id);
        for job in page {
            let history = store.complete_history(job.id).await?;
            rows.extend(history.into_iter().map(|entry| Row::Change(change(entry))));
            rows.push(Row::Job(row(job)));
        }
    }
}

fn row(job: JobRow) -> Job {
    Job {
        id: job.id.to_string(),
        kind: job.kind,
        key: job.key,
        group: job.group,
        tick: None,
        state: job.state.to_string(),
        token: u64::from(job.token.0.unsigned_abs()),
        max_attempts: job.max_attempts,
    }
}

fn change(entry: HistoryEntry) -> Change {
    Change {
        pos: entry.pos,
        job: entry.job.to_string(),
        verb: entry.verb.to_string(),
        from: entry.from.map(|state| state.to_string()),
        to: entry.to.to_string(),
        attempt: entry.attempt,
        token: u64::from(entry.token.0.unsigned_abs()),
        at_ms: entry.at.as_millisecond(),
        ready_at_ms: entry.ready_at.map(jiff::Timestamp::as_millisecond),
        error_code: entry.error_code,
    }
}

async fn audit(store: &dyn Store, rows: &mut Vec<Row>) -> Result<()> {
    let mut filter = AuditFilter { limit: PAGE, ..AuditFilter::default() };
    loop {
        let page = store.audit_log(&filter).await?;
        let Some(last) = page.last() else { return Ok(()) };
        filter.before = Some(last.pos);
        rows.extend(page.into_iter().filter_map(|entry| entry.why).map(|mark| Row::Audit { mark }));
    }
}

async fn events(store: &dyn Store, rows: &mut Vec<Row>) -> Result<()> {
    let (_, mut reader) = relay::reader(store, EXPORT, LEASE * 100).await;
    loop {
        let page = reader.page(PageSize { events_max: PAGE as usize, bytes_max: 16 * 1024 * 1024 }).await?;
        if page.events.is_empty() {
            return Ok(());
        }
        rows.extend(page.events.into_iter().map(|event| Row::Event {
            id: event.id.to_string(),
            aggregate: event.aggregate.to_string(),
            sequence: event.sequence.unsigned_abs(),
            payload: event.payload.get().to_owned(),
            change: None,
        }));
        reader.pass();
    }
}

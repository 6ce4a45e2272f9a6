//! The store as users see it when the configuration hides data.
//!
//! This is the only place where data is hidden: handlers of all requests get a [`HidingStore`] instead of the store. It returns the placeholder
//! in place of hidden values in everything that users read, and the real values to workers, publishers and the store's own functions.

mod definitions;
mod events;
mod jobs;
mod passed;

use std::sync::Arc;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::BatchEntry;
use milepost_core::error::StoreError;
use milepost_core::event::Event;
use milepost_core::hide::{Hidden, PLACEHOLDER, is_structured};
use milepost_core::history::{HistoryEntry, HistoryPart};
use milepost_core::ident::JobId;
use milepost_core::listing::{JobRow, JobView, LastFailure};
use milepost_core::port::{Store, StoreResult};
use milepost_core::schedule::{Makes, ScheduleView};
use serde_json::value::RawValue;

/// The maximum number of state changes of a job in which the text of a search is looked for.
const ENTRIES_MAX: u32 = 200;

/// A store whose hidden data is replaced by a placeholder.
pub(crate) struct HidingStore {
    inner: Arc<dyn Store>,
    hidden: Arc<Hidden>,
}

impl HidingStore {
    /// Returns the store as users see it.
    pub(crate) fn before(inner: Arc<dyn Store>, hidden: &Arc<Hidden>) -> Arc<dyn Store> {
        if hidden.is_empty() { inner } else { Arc::new(Self { inner, hidden: Arc::clone(hidden) }) }
    }

    fn mask_job(&self, view: &mut JobView) {
        let (hidden, kind) = (&self.hidden, view.row.kind.as_str());
        let jsons = [&mut view.result, &mut view.checkpoint].into_iter().flatten();
        jsons.chain([&mut view.payload]).for_each(|json| hidden.mask_json(kind, json));
        let progress = view.progress.as_mut().and_then(|progress| progress.message.as_mut());
        let failure = view.last_failure.as_mut().and_then(|failure| failure.message.as_mut());
        progress.into_iter().chain(failure).for_each(|text| hidden.mask_text(kind, text));
    }

    fn mask_event(&self, event: &mut Event) {
        self.hidden.mask_json(&event.aggregate.kind, &mut event.payload);
    }

    fn mask_schedule(&self, view: &mut ScheduleView) {
        match &mut view.schedule.makes {
            Makes::Job(job) => self.hidden.mask_json(&job.kind, &mut job.payload),
            Makes::Batch(batch) => self.hidden.mask_json(&batch.dag, &mut batch.input),
        }
        self.mask_refusal(view);
    }

    /// Hides why a tick was refused: the reason can quote the input.
    fn mask_refusal(&self, view: &mut ScheduleView) {
        let (kind, _) = data(&view.schedule.makes);
        if self.hidden.hides_in(kind)
            && let Some(refused) = &mut view.refused
        {
            PLACEHOLDER.clone_into(&mut refused.why);
        }
    }

    fn mask_batch_entries(&self, entries: &mut [BatchEntry]) {
        entries
            .iter_mut()
            .filter_map(|entry| entry.note.as_mut())
            .for_each(|note| self.hidden.mask_quotes(note));
    }

    async fn mask_failure(&self, failure: &mut LastFailure) -> StoreResult<()> {
        if let Some(text) = failure.message.as_mut().filter(|text| is_structured(text))
            && let Some(kind) = self.kind(failure.job).await?
        {
            // The text of a list is shortened, so that it may not be complete JSON.
            match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => self.hidden.mask_text(&kind, text),
                Err(_) if self.hidden.hides_in(&kind) => PLACEHOLDER.clone_into(text),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Masks the texts of state changes. Only a text that is JSON needs the kind of its job.
    async fn mask_entries(&self, entries: &mut [HistoryEntry]) -> StoreResult<()> {
        for entry in entries {
            if let Some(text) = entry.error_message.as_mut().filter(|text| is_structured(text))
                && let Some(kind) = self.kind(entry.job).await?
            {
                self.hidden.mask_text(&kind, text);
            }
        }
        Ok(())
    }

    /// Keeps the jobs with an error that has the text of a search also when its hidden values are not considered.
    async fn keep_visible_errors(&self, rows: &mut Vec<JobRow>, text: &str) -> StoreResult<()> {
        let (text, mut visible) = (text.to_lowercase(), Vec::new());
        for row in std::mem::take(rows) {
            if !self.hidden.hides_in(&row.kind) || self.has_visible_error(row.id, &text).await? {
                visible.push(row);
            }
        }
        *rows = visible;
        Ok(())
    }

    async fn has_visible_error(&self, job: JobId, text: &str) -> StoreResult<bool> {
        let mut entries = self.inner.history(job, HistoryPart::Newest { limit: ENTRIES_MAX }).await?;
        self.mask_entries(&mut entries).await?;
        let has = |its: &Option<String>| its.as_ref().is_some_and(|its| its.to_lowercase().contains(text));
        Ok(entries.iter().any(|entry| has(&entry.error_code) || has(&entry.error_message)))
    }

    async fn kind(&self, job: JobId) -> StoreResult<Option<String>> {
        Ok(self.inner.job(job).await?.map(|view| view.row.kind))
    }
}

/// Hides why stored input was refused: the reason can quote it.
fn without_quotes<T>(result: StoreResult<T>) -> StoreResult<T> {
    result.map_err(|error| match error {
        StoreError::Batch(InvalidBatch::Input { .. }) => {
            InvalidBatch::Input { why: PLACEHOLDER.to_owned() }.into()
        }
        other => other,
    })
}

/// Returns the kind or DAG of a schedule, and its payload or input.
fn data(makes: &Makes) -> (&str, &RawValue) {
    match makes {
        Makes::Job(job) => (&job.kind, &job.payload),
        Makes::Batch(batch) => (&batch.dag, &batch.input),
    }
}

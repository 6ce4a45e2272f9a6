//! Audit rows, built from the state of an object before and after an action.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{AuditedAction, Subject};
use crate::batch::start::Started;
use crate::batch::wait::{NewSignal, SignalResult};
use crate::event::{Emitted, NewEvent};
use crate::ident::JobId;
use crate::job::{Enqueued, NewJob};

/// The maximum number of ids that a row lists.
pub const LISTED_MAX: usize = 1_000;
/// The maximum size of a value in a row, in bytes; for a longer value only its size is recorded.
const VALUE_BYTES_MAX: usize = 2_000;

/// The content of an audit row, without author and reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The action.
    pub what: &'static str,
    /// The object of the action.
    pub subject: Option<String>,
    /// The object's state before and after.
    pub detail: Value,
}

impl AuditedAction {
    /// Returns the row for an action, from the state of its object before and after and the details that the verb returned;
    /// `None` when nothing changed.
    #[must_use]
    pub fn note(&self, before: Option<Value>, after: Option<Value>, told: Option<Value>) -> Option<Note> {
        let changes_always = match self.subject {
            // An action on a job is refused, or in its history: a second request to stop, or a snooze to the same time, leaves its state equal.
            Subject::Job(_) => true,
            // These fail if there is nothing to change: the event was parked, or became a dead letter, between the look at it and the change.
            Subject::Parked(..) | Subject::DeadEvent(..) => before.is_none(),
            _ => false,
        };
        if told.is_none() && before == after && !changes_always {
            return None;
        }
        let mut detail = Map::new();
        for (name, value) in [("before", before), ("after", with(after, told))] {
            if let Some(value) = value {
                detail.insert(name.to_owned(), slim(value));
            }
        }
        Some(Note { what: self.what, subject: self.subject.name(), detail: Value::Object(detail) })
    }
}

/// Merges the state after the action with the details that the verb returned.
fn with(after: Option<Value>, told: Option<Value>) -> Option<Value> {
    match (after, told) {
        (Some(Value::Object(mut after)), Some(Value::Object(told))) => {
            after.extend(told);
            Some(Value::Object(after))
        }
        (after, told) => told.or(after),
    }
}

/// Removes null fields, and replaces values that are too long for a row by their size.
fn slim(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| if name == "ids" { (name, value) } else { (name, shortened(value)) })
            .collect(),
        Value::Array(values) => values.into_iter().take(LISTED_MAX).map(slim).collect(),
        value => shortened(value),
    }
}

fn shortened(value: Value) -> Value {
    let bytes = match &value {
        Value::String(text) => text.len(),
        Value::Object(_) | Value::Array(_) => value.to_string().len(),
        _ => 0,
    };
    if bytes > VALUE_BYTES_MAX { json!({ "bytes": bytes }) } else { value }
}

/// Returns details of the jobs that a call created or replaced; `None` when it changed nothing.
#[must_use]
pub fn made_jobs(asked: &[NewJob], enqueued: &[Enqueued]) -> Option<Value> {
    let made = || asked.iter().zip(enqueued).filter(|(_, enqueued)| enqueued.changed());
    let ids: Vec<JobId> = made().map(|(_, enqueued)| enqueued.job).take(LISTED_MAX).collect();
    let kinds: BTreeSet<&str> = made().map(|(job, _)| job.kind.as_str()).take(LISTED_MAX).collect();
    let replaced = made().filter(|(_, enqueued)| enqueued.duplicate).count();
    let mut detail = json!({ "jobs": made().count(), "kinds": kinds, "ids": ids });
    if replaced > 0 {
        detail["replaced"] = replaced.into();
    }
    (!ids.is_empty()).then_some(detail)
}

/// Returns details of the run that a call started over the failures of another run; `None` when it existed before.
#[must_use]
pub fn made_run(made: Enqueued) -> Option<Value> {
    (!made.duplicate).then(|| json!({ "run": made.job }))
}

/// Returns details of the batch that a call started; `None` when it existed before.
#[must_use]
pub fn made_batch(dag: &str, started: Started) -> Option<Value> {
    (!started.duplicate).then(|| json!({ "dag": dag, "batch": started.batch }))
}

/// Returns details of the signal that a call sent; `None` when it was not stored.
#[must_use]
pub fn made_signal(signal: &NewSignal, result: SignalResult) -> Option<Value> {
    (result == SignalResult::Accepted).then(|| json!({ "signal": signal.name, "id": signal.id }))
}

/// Returns details of the events that a call wrote; `None` when all of them existed before.
#[must_use]
pub fn made_events(given: &[NewEvent], emitted: &[Emitted]) -> Option<Value> {
    let made = || given.iter().zip(emitted).filter(|(_, emitted)| !emitted.duplicate).map(|(event, _)| event);
    let ids: Vec<_> = made().map(|event| event.id).take(LISTED_MAX).collect();
    let types: BTreeSet<&str> = made().map(|event| event.event_type.as_str()).take(LISTED_MAX).collect();
    (!ids.is_empty()).then(|| json!({ "events": made().count(), "types": types, "ids": ids }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Aggregate;
    use crate::event::relay_listing::ParkedVerb;

    #[test]
    fn what_changed_nothing_has_no_row() {
        let audited = AuditedAction::pause_queue("mail", true);
        let paused = || Some(json!({ "paused_at": "then" }));
        assert_eq!(audited.note(paused(), paused(), None), None);
        assert_eq!(audited.note(None, None, None), None);
        let note = audited.note(Some(json!({ "paused_at": null })), paused(), None).unwrap();
        assert_eq!((note.what, note.subject.as_deref()), ("queue.pause", Some("mail")));
        assert_eq!(note.detail, json!({ "before": {}, "after": { "paused_at": "then" } }));
    }

    #[test]
    fn a_change_of_an_event_that_was_parked_at_that_moment_has_a_row() {
        let audited = AuditedAction::change_parked("all", &Aggregate::new("order", "1"), &ParkedVerb::Skip);
        assert_eq!(audited.note(None, None, None).unwrap().what, "parked.skip");
        let parked = || Some(json!({ "deliveries": 3 }));
        assert_eq!(audited.note(parked(), parked(), None), None);
    }

    #[test]
    fn what_was_told_stands_beside_what_is_there() {
        let audited = AuditedAction::replay("all");
        let stands = || Some(json!({ "paused_at": null }));
        let note = audited.note(stands(), stands(), Some(json!({ "events": 3 }))).unwrap();
        assert_eq!(note.detail, json!({ "before": {}, "after": { "events": 3 } }));
        let note = AuditedAction::reseed().note(None, None, Some(json!({ "subscriptions": 1 }))).unwrap();
        assert_eq!((note.subject, note.detail), (None, json!({ "after": { "subscriptions": 1 } })));
    }

    #[test]
    fn long_values_are_told_by_their_size_and_still_compared() {
        let audited = AuditedAction::put_schedule("tax");
        let schedule = |letter: &str| Some(json!({ "payload": letter.repeat(5_000), "spec": "@daily" }));
        assert_eq!(audited.note(schedule("a"), schedule("a"), None), None);
        let note = audited.note(schedule("a"), schedule("b"), None).unwrap();
        let shown = json!({ "payload": { "bytes": 5_000 }, "spec": "@daily" });
        assert_eq!(note.detail, json!({ "before": shown, "after": shown }));
    }

    #[test]
    fn jobs_that_were_there_are_not_made() {
        let asked: Vec<NewJob> = (0..3).map(|_| NewJob::new("mail", &()).unwrap()).collect();
        let answer = |duplicate| {
            let enqueued =
                |job: &NewJob| if duplicate { Enqueued::kept(job.id) } else { Enqueued::created(job.id) };
            asked.iter().map(enqueued).collect::<Vec<Enqueued>>()
        };
        let mut enqueued = answer(false);
        enqueued[1] = Enqueued::kept(enqueued[1].job);
        let made = made_jobs(&asked, &enqueued).unwrap();
        assert_eq!(made, json!({ "jobs": 2, "kinds": ["mail"], "ids": [asked[0].id, asked[2].id] }));
        assert_eq!(made_jobs(&asked, &answer(true)), None);
    }
}

//! Changes of the payload and the options of an existing job.

use serde_json::value::RawValue;

use crate::actions::trimmed;
use crate::audit::check_reason;
use crate::job::error::InvalidJob;
use crate::job::{Priority, StartAt, check_attempts, check_start};
use crate::json::check_payload;

/// A change of a job that waits, has failed or was aborted. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default)]
pub struct JobEdit {
    /// The new input, as JSON text.
    pub payload: Option<Box<RawValue>>,
    /// The new priority within the queue.
    pub priority: Option<Priority>,
    /// The new earliest start of a job that waits.
    pub start: Option<StartAt>,
    /// The new maximum number of attempts. A job that waits always has one attempt left.
    pub max_attempts: Option<u32>,
    /// The reason, recorded in the history.
    pub note: Option<String>,
}

impl JobEdit {
    /// Returns the reason as it is recorded: without surrounding whitespace, and none if it is blank.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.note.as_deref().and_then(trimmed)
    }

    /// Returns the names of the changed fields, for the audit, which contains no payloads.
    #[must_use]
    pub fn fields(&self) -> Vec<&'static str> {
        let given = [
            (self.payload.is_some(), "payload"),
            (self.priority.is_some(), "priority"),
            (self.start.is_some(), "start_at"),
            (self.max_attempts.is_some(), "max_attempts"),
        ];
        given.into_iter().filter_map(|(is_given, name)| is_given.then_some(name)).collect()
    }

    /// Checks everything that does not need a database.
    ///
    /// # Errors
    /// [`InvalidJob`] with the field and the reason.
    pub fn check(&self, payload_bytes_max: usize) -> Result<(), InvalidJob> {
        if self.fields().is_empty() {
            return Err(InvalidJob::EditsNothing);
        }
        if let Some(max_attempts) = self.max_attempts {
            check_attempts(max_attempts)?;
        }
        if let Some(start) = self.start {
            check_start(start)?;
        }
        check_reason(self.reason())?;
        match &self.payload {
            Some(payload) => check_payload(payload.get(), payload_bytes_max),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_checked_like_a_new_job() {
        let payload = |text: &str| Some(RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(JobEdit::default().check(10), Err(InvalidJob::EditsNothing));
        let long = JobEdit { payload: payload("\"123456789\""), ..JobEdit::default() };
        assert_eq!(long.check(10), Err(InvalidJob::PayloadTooLarge { bytes: 11, bytes_max: 10 }));
        assert!(JobEdit { max_attempts: Some(0), ..JobEdit::default() }.check(10).is_err());
        let sound = JobEdit { payload: payload("1"), priority: Some(Priority::FIRST), ..JobEdit::default() };
        assert_eq!((sound.check(10), sound.fields()), (Ok(()), vec!["payload", "priority"]));
    }
}

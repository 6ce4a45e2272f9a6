//! Signals for batches, and waits of tasks as shown to operators.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::InvalidBatch;
use crate::dag::wait::{OnTimeout, Wait};
use crate::ident::BatchId;
use crate::job::{NAME_BYTES_MAX, check_key, check_name};
use crate::json::check_payload;
use crate::named::named_enum;

/// The maximum size of the payload of a signal, in bytes of JSON text.
pub const SIGNAL_BYTES_MAX: usize = 64 * 1024;
/// The maximum size of the id of a signal, in bytes.
pub const SIGNAL_ID_BYTES_MAX: usize = 200;
/// The maximum number of waits that one transaction ends.
pub const WAITS_A_PAGE: u32 = 500;
/// The maximum number of names that an error about an unknown signal lists.
pub const NAMES_LISTED: u32 = 20;

/// A signal for a batch.
#[derive(Clone, Debug)]
pub struct NewSignal {
    /// The batch.
    pub batch: BatchId,
    /// The name that a task of the batch waits for.
    pub name: String,
    /// The output of that task, as JSON text.
    pub payload: Box<RawValue>,
    /// Its id: a second signal for the batch with the same id is ignored.
    pub id: String,
}

impl NewSignal {
    /// Creates a signal with a new id and without a payload.
    #[must_use]
    pub fn new(batch: BatchId, name: impl Into<String>) -> Self {
        let id = BatchId::new().to_string();
        Self { batch, name: name.into(), payload: RawValue::NULL.to_owned(), id }
    }

    /// Sets the payload.
    ///
    /// # Errors
    /// [`InvalidBatch::Signal`] when it cannot be written as JSON.
    pub fn payload(mut self, payload: &impl Serialize) -> Result<Self, InvalidBatch> {
        self.payload = serde_json::value::to_raw_value(payload)
            .map_err(|e| InvalidBatch::Signal { why: format!("its payload is not JSON: {e}") })?;
        Ok(self)
    }

    /// Sets the id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Checks everything that does not need a database.
    ///
    /// # Errors
    /// [`InvalidBatch`] with the reason.
    pub fn check(&self) -> Result<(), InvalidBatch> {
        check_name("name of the signal", &self.name, NAME_BYTES_MAX).map_err(InvalidBatch::Name)?;
        check_key("id of the signal", &self.id, SIGNAL_ID_BYTES_MAX).map_err(InvalidBatch::Name)?;
        check_payload(self.payload.get(), SIGNAL_BYTES_MAX).map_err(|invalid| InvalidBatch::Signal {
            why: invalid.to_string().replacen("the payload", "its payload", 1),
        })
    }

    /// Checks the payload against the wait that it is for. This can take a second: do not call it on an async runtime thread.
    ///
    /// # Errors
    /// [`InvalidBatch::Signal`] with the reason.
    pub fn check_fit(&self, wait: &Wait) -> Result<(), InvalidBatch> {
        let refuse = |why: String| InvalidBatch::Signal { why: format!("its payload: {why}") };
        let payload: Value = serde_json::from_str(self.payload.get()).map_err(|e| refuse(e.to_string()))?;
        wait.check_payload(&payload).map_err(refuse)
    }
}

named_enum! {
    /// What happened to a signal.
    SignalResult {
        /// It is stored. The task that waits for it ends soon, or when it begins to wait.
        Accepted = "accepted",
        /// The batch has a signal with this id; nothing was changed.
        Duplicate = "duplicate",
        /// The task has ended, so the signal was not stored.
        Late = "late",
    }
}

/// The answer to a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Signaled {
    /// What happened to it.
    pub result: SignalResult,
}

/// What ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// A signal.
    Signal,
    /// Its time.
    Time,
}

/// Decides whether a wait ends. A signal that is stored precedes the time, even if it was stored later: an approval is not lost because
/// the check of the time was late.
#[must_use]
pub const fn decide(has_signal: bool, is_time_over: bool) -> Option<WaitEnd> {
    match (has_signal, is_time_over) {
        (true, _) => Some(WaitEnd::Signal),
        (false, true) => Some(WaitEnd::Time),
        (false, false) => None,
    }
}

/// Returns the note in the history of a batch when a signal ended a wait.
#[must_use]
pub fn ended_by_signal(name: &str, id: &str) -> String {
    format!("the signal {name} ({id}) arrived")
}

/// Returns the note in the history of a batch when the time of a wait was over.
#[must_use]
pub fn ended_by_time(signal: Option<&str>) -> String {
    match signal {
        Some(name) => format!("timeout: the signal {name} did not arrive in time"),
        None => "its time has come".to_owned(),
    }
}

/// What a task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WaitView {
    /// The name of the signal; none: it waits for a time only.
    pub signal: Option<String>,
    /// When it began to wait.
    pub since: Timestamp,
    /// The time until which it waits; none: without a limit.
    pub until: Option<Timestamp>,
    /// What follows after that time.
    pub on_timeout: OnTimeout,
    /// The values that the member `choice` of the payload can have; empty: any.
    pub choices: Vec<String>,
    /// The JSON Schema of the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

impl WaitView {
    /// Returns the view of a wait that has begun; `spec`: the wait in the definition, as JSON text.
    #[must_use]
    pub fn new(
        signal: Option<String>,
        since: Timestamp,
        until: Option<Timestamp>,
        on_timeout: OnTimeout,
        spec: Option<&str>,
    ) -> Self {
        let spec: Wait = spec.and_then(|spec| serde_json::from_str(spec).ok()).unwrap_or_default();
        Self { signal, since, until, on_timeout, choices: spec.choices, schema: spec.schema }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_signal_precedes_the_timeout() {
        assert_eq!(decide(true, true), Some(WaitEnd::Signal));
        assert_eq!(decide(true, false), Some(WaitEnd::Signal));
        assert_eq!(decide(false, true), Some(WaitEnd::Time));
        assert_eq!(decide(false, false), None);
    }

    #[test]
    fn a_signal_is_checked_before_it_is_sent() {
        let signal = || NewSignal::new(BatchId::new(), "approved");
        assert_eq!(signal().check(), Ok(()));
        assert!(matches!(signal().id("").check(), Err(InvalidBatch::Name(_))));
        assert!(matches!(NewSignal::new(BatchId::new(), "a\nb").check(), Err(InvalidBatch::Name(_))));
        let large = signal().payload(&"x".repeat(SIGNAL_BYTES_MAX)).unwrap().check().unwrap_err();
        assert!(large.to_string().contains("its payload"), "{large}");
    }
}

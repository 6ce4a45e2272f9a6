//! Start of a batch and checks of its input.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::InvalidBatch;
use super::nominal::NominalTime;
use crate::dag::schema::InputSchema;
use crate::dag::version::Version;
use crate::ident::BatchId;
use crate::job::{KEY_BYTES_MAX, NAME_BYTES_MAX, check_key, check_name};
use crate::json::check_payload;
use crate::trace::Traceparent;

/// A batch to be started.
#[derive(Clone, Debug)]
pub struct NewBatch {
    /// Its permanent id, generated here so that a start can be repeated safely.
    pub id: BatchId,
    /// The name of its DAG.
    pub dag: String,
    /// Its version; `None`: the latest.
    pub version: Option<Version>,
    /// At most one batch of the DAG ever has this key; a repeated start returns the existing batch.
    pub key: Option<String>,
    /// The value of `input` in its expressions, as JSON text.
    pub input: Box<RawValue>,
    /// Its nominal time, the value of `tick` in its expressions. The time zone determines the date of the tick.
    pub nominal: Option<NominalTime>,
    /// The trace span that its tasks follow from: the active span where the batch was created.
    pub traceparent: Option<Traceparent>,
}

impl NewBatch {
    /// Creates a batch of the latest version of `dag`.
    ///
    /// # Errors
    /// [`InvalidBatch::Input`] when the input cannot be written as JSON.
    pub fn new(dag: impl Into<String>, input: &impl Serialize) -> Result<Self, InvalidBatch> {
        let input = serde_json::value::to_raw_value(input)
            .map_err(|e| InvalidBatch::Input { why: format!("it is not JSON: {e}") })?;
        let id = BatchId::new();
        let traceparent = Traceparent::current();
        Ok(Self { id, dag: dag.into(), version: None, key: None, input, nominal: None, traceparent })
    }

    /// Sets the key: at most one batch of the DAG ever has it.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the nominal time, as if a schedule had started the batch. The tick's date is computed in the time zone with this IANA name.
    #[must_use]
    pub fn nominal_at(mut self, at: Timestamp, zone: impl Into<String>) -> Self {
        self.nominal = Some(NominalTime { at, zone: zone.into() });
        self
    }

    /// Sets the version of the DAG.
    #[must_use]
    pub const fn version(mut self, version: Version) -> Self {
        self.version = Some(version);
        self
    }

    /// Checks everything that does not need a database.
    ///
    /// # Errors
    /// [`InvalidBatch`] with the reason.
    pub fn check(&self, input_bytes_max: usize) -> Result<(), InvalidBatch> {
        check_name("name of the DAG", &self.dag, NAME_BYTES_MAX).map_err(InvalidBatch::Name)?;
        if let Some(key) = &self.key {
            check_key("key of the batch", key, KEY_BYTES_MAX).map_err(InvalidBatch::Name)?;
        }
        self.nominal.as_ref().map_or(Ok(()), NominalTime::check)?;
        check_payload(self.input.get(), input_bytes_max)
            .map_err(|invalid| InvalidBatch::Input { why: invalid.to_string().replace("the payload", "it") })
    }
}

/// The result of starting a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Started {
    /// The new batch, or the existing one with the same key.
    pub batch: BatchId,
    /// Whether a batch with the same key already existed; then nothing was changed.
    pub duplicate: bool,
}

/// Checks the input of a batch against the schema of its DAG. This can take a second: do not call it on an async runtime thread or
/// within a transaction.
///
/// # Errors
/// [`InvalidBatch::Input`] with the reason and the location.
pub fn check_fit(schema: &Value, input: &Value) -> Result<(), InvalidBatch> {
    let unfit = |why| InvalidBatch::Input { why };
    let schema = InputSchema::compile(schema).map_err(|invalid| unfit(invalid.to_string()))?;
    schema.check(input).map_err(|invalid| unfit(invalid.to_string()))
}

/// Performs the same check on an input that is JSON text.
///
/// # Errors
/// As [`check_fit`]; also for a text that is not JSON.
pub fn check_fit_of_text(schema: &Value, input: &str) -> Result<(), InvalidBatch> {
    check_fit(schema, &value_of(input)?)
}

/// Performs the same check on a schema and an input that are JSON texts.
///
/// # Errors
/// As [`check_fit`]; also for a text that is not JSON.
pub fn check_fit_of_texts(schema: &str, input: &str) -> Result<(), InvalidBatch> {
    check_fit_of_text(&value_of(schema)?, input)
}

fn value_of(json: &str) -> Result<Value, InvalidBatch> {
    serde_json::from_str(json)
        .map_err(|error| InvalidBatch::Input { why: format!("it is not JSON: {error}") })
}

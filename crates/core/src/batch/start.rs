//! Starting a batch.

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
    /// Its id for ever; made here, so that a start can be repeated.
    pub id: BatchId,
    /// The name of its DAG.
    pub dag: String,
    /// Which version; `None`: the latest.
    pub version: Option<Version>,
    /// At most one batch of the DAG ever has this key; asking again returns the same batch.
    pub key: Option<String>,
    /// What its expressions see as `input`, as JSON text.
    pub input: Box<RawValue>,
    /// The tick that it is for, which expressions see as `tick`. The time zone is of the tick's date.
    pub nominal: Option<NominalTime>,
    /// The span of a trace that its tasks follow from: the one under way where it was made.
    pub traceparent: Option<Traceparent>,
}

impl NewBatch {
    /// A batch of the latest version of `dag`.
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

    /// The batch with this key: at most one batch of the DAG ever has it.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The batch for this tick, whose date is of the time zone with this IANA name: as if a schedule had started it.
    #[must_use]
    pub fn nominal_at(mut self, at: Timestamp, zone: impl Into<String>) -> Self {
        self.nominal = Some(NominalTime { at, zone: zone.into() });
        self
    }

    /// The batch of this version of its DAG.
    #[must_use]
    pub const fn version(mut self, version: Version) -> Self {
        self.version = Some(version);
        self
    }

    /// Checks what can be checked without a database.
    ///
    /// # Errors
    /// [`InvalidBatch`] says what is wrong.
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

/// What became of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Started {
    /// The batch that now stands for the request.
    pub batch: BatchId,
    /// Whether it was there before, under the same key; then nothing was changed.
    pub duplicate: bool,
}

/// Checks the input of a batch against the schema of its DAG. That can take a second: it is neither for a thread of a runtime nor for a
/// transaction.
///
/// # Errors
/// [`InvalidBatch::Input`] says what is wrong and where.
pub fn check_fit(schema: &Value, input: &Value) -> Result<(), InvalidBatch> {
    let unfit = |why| InvalidBatch::Input { why };
    let schema = InputSchema::compile(schema).map_err(|invalid| unfit(invalid.to_string()))?;
    schema.check(input).map_err(|invalid| unfit(invalid.to_string()))
}

/// The same for JSON texts.
///
/// # Errors
/// As [`check_fit`], also for a text that is no JSON.
pub fn check_fit_of_texts(schema: &str, input: &str) -> Result<(), InvalidBatch> {
    let read = |text: &str| {
        serde_json::from_str(text)
            .map_err(|error| InvalidBatch::Input { why: format!("it is not JSON: {error}") })
    };
    check_fit(&read(schema)?, &read(input)?)
}

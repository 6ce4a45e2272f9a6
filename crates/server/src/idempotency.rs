//! `Idempotency-Key`: a create that can be repeated. The key becomes that of the job, so that the store itself keeps its promise.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use milepost_core::batch::start::NewBatch;
use milepost_core::ident::{BatchId, EventId, JobId};
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use sha2::{Digest, Sha256};
use utoipa::IntoParams;

use crate::problem::Problem;

/// How long a key may be.
const BYTES_MAX: usize = 255;

/// What the request is known by.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct IdempotencyKey {
    /// Repeated with the same content, the request is answered with what it created the first time; with other content it is refused. Says
    /// nothing for what has a key of its own.
    #[param(rename = "Idempotency-Key", max_length = 255)]
    given: Option<String>,
}

impl IdempotencyKey {
    /// Whether there is one.
    pub(crate) const fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// The id of the event at a place in the request: the same when it is repeated.
    pub(crate) fn event_id(&self, index: usize) -> Option<EventId> {
        let given = self.given.as_ref()?;
        let hash = Sha256::digest(format!("milepost idempotency {given}\u{0}{index}"));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Some(EventId(uuid::Builder::from_custom_bytes(bytes).into_uuid()))
    }

    /// Gives it to a job that has no key; `index` is its place in the request. Answers whether it did.
    pub(crate) fn key(&self, job: &mut NewJob, index: usize) -> bool {
        give(&mut job.key, self.given.as_deref(), index)
    }

    /// Gives it to a batch that has no key. Answers whether it did.
    pub(crate) fn batch_key(&self, batch: &mut NewBatch) -> bool {
        give(&mut batch.key, self.given.as_deref(), 0)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(given) = parts.headers.get("idempotency-key") else { return Ok(Self { given: None }) };
        match given.to_str() {
            Ok(text) if !text.is_empty() && text.len() <= BYTES_MAX => {
                Ok(Self { given: Some(text.to_owned()) })
            }
            _ => Err(Problem::bad_request(
                "invalid_parameter",
                format!("it must have 1 to {BYTES_MAX} printable characters"),
            )
            .at("header Idempotency-Key")),
        }
    }
}

fn give(key: &mut Option<String>, given: Option<&str>, index: usize) -> bool {
    match given {
        Some(given) if key.is_none() => {
            *key = Some(format!("idempotency:{given}:{index}"));
            true
        }
        _ => false,
    }
}

/// Refuses a key under which another batch was started.
pub(crate) async fn check_same_batch(
    store: &dyn Store,
    asked: &NewBatch,
    made: BatchId,
) -> Result<(), Problem> {
    let Some(made) = store.batch(made).await? else { return Ok(()) };
    if same_json(made.input.get(), asked.input.get()) {
        return Ok(());
    }
    let words = format!(
        "batch {} was started under this key with other input; a new request needs a new key",
        made.row.id
    );
    Err(Problem::conflict("idempotency_key_taken", words).at("header Idempotency-Key"))
}

/// Refuses a key under which something else was created.
pub(crate) async fn check_same(store: &dyn Store, asked: &NewJob, made: JobId) -> Result<(), Problem> {
    let Some(made) = store.job(made).await? else { return Ok(()) };
    let same = made.row.kind == asked.kind
        && made.row.queue == asked.queue
        && made.row.group == asked.group
        && same_json(made.payload.get(), asked.payload.get());
    if same {
        return Ok(());
    }
    let words = format!(
        "job {} was created under this key with other content; a new request needs a new key",
        made.row.id
    );
    Err(Problem::conflict("idempotency_key_taken", words).at("header Idempotency-Key"))
}

fn same_json(one: &str, other: &str) -> bool {
    let read = |text| serde_json::from_str::<serde_json::Value>(text).ok();
    one == other || read(one) == read(other)
}

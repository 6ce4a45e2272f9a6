//! The header `Idempotency-Key`, which makes creates repeatable. It becomes the job's key, so that the store enforces uniqueness.

use std::collections::BTreeSet;
use std::fmt::Arguments;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use milepost_core::batch::nominal::NominalTime;
use milepost_core::batch::start::NewBatch;
use milepost_core::bulk::listing::BulkFilter;
use milepost_core::hide::Hidden;
use milepost_core::ident::{BatchId, JobId};
use milepost_core::job::{IDEMPOTENCY_PREFIX, KeyHolder, NewJob};
use milepost_core::json::is_same_json;
use milepost_core::port::Store;
use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::IntoParams;
use uuid::Uuid;

use crate::problem::{Code, Problem};

/// Maximum length of a key, in bytes.
const BYTES_MAX: usize = 255;

/// The idempotency key of a request.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct IdempotencyKey {
    /// An idempotency key. If the request is repeated with the same content (kind, queue, group, payload), the response contains the objects
    /// that the first request created; with other content of the same kind, the request is refused. The key is valid for the whole store, for
    /// all callers. It does not apply to items with a separate `key`.
    #[param(rename = "Idempotency-Key", max_length = 255)]
    given: Option<String>,
}

impl IdempotencyKey {
    /// Returns an id for the item at this index of the request; a repeated request gets the same id. `None` without the header.
    pub(crate) fn id(&self, index: usize) -> Option<Uuid> {
        let given = self.given.as_ref()?;
        Some(id_of(&format!("milepost idempotency {given}\u{0}{index}")))
    }

    /// Sets the key from the header if `key` is `None`; `index` is the position in the request. Returns whether it did.
    pub(crate) fn give(&self, key: &mut Option<String>, index: usize) -> bool {
        match &self.given {
            Some(given) if key.is_none() => {
                *key = Some(format!("{IDEMPOTENCY_PREFIX}{given}:{index}"));
                true
            }
            _ => false,
        }
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
            _ => Err(Problem::new(
                Code::InvalidParameter,
                format!("it must have 1 to {BYTES_MAX} printable characters"),
            )
            .at("header Idempotency-Key")),
        }
    }
}

/// Returns an id that only this text has.
pub(crate) fn id_of(text: &str) -> Uuid {
    let hash = Sha256::digest(text);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Builds the response for an object that was created (201), or that existed under its key (200).
pub(crate) fn made(duplicate: bool, url: String, what: impl Serialize) -> Response {
    let status = if duplicate { StatusCode::OK } else { StatusCode::CREATED };
    (status, [(header::LOCATION, url)], Json(what)).into_response()
}

/// Refuses a key under which a different batch was started.
pub(crate) async fn check_same_batch(
    store: &dyn Store,
    hidden: &Hidden,
    asked: &NewBatch,
    made: BatchId,
) -> Result<(), Problem> {
    let Some(made) = store.batch(made).await? else { return Ok(()) };
    // The store returns the placeholder for hidden values. That another value was given is not told, or it could be guessed.
    let masked = hidden.mask(&asked.dag, asked.input.get());
    let same_input = is_same_json(made.input.get(), masked.as_deref().unwrap_or(asked.input.get()));
    // Stores keep milliseconds.
    let tick = |nominal: NominalTime| (nominal.at.as_millisecond(), nominal.zone);
    let same_tick = made.row.nominal().map(tick) == asked.nominal.clone().map(tick);
    match (same_input, same_tick) {
        (true, true) => Ok(()),
        (false, _) => Err(taken(format_args!("batch {} was started", made.row.id), "other input")),
        (true, false) => {
            Err(taken(format_args!("batch {} was started", made.row.id), "another nominal time"))
        }
    }
}

/// Refuses, before anything is created, jobs whose key belongs to different jobs. Returns whether the request is a repetition.
/// The jobs of a request are created all or none: if only some of the keys exist, they belong to another request, or to one whose
/// jobs are being deleted by retention.
pub(crate) async fn check_repeated(store: &dyn Store, asked: &[&NewJob]) -> Result<bool, Problem> {
    let holders = holders(store, asked).await?;
    let Some(first) = holders.iter().flatten().next() else { return Ok(false) };
    if holders.iter().any(Option::is_none) {
        return Err(taken(
            format_args!("job {} was created", first.job),
            "fewer other jobs, or some of these were deleted",
        ));
    }
    holders.iter().flatten().try_for_each(check_same).map(|()| true)
}

/// Refuses a repetition that contains fewer jobs than the original request. The original request is detected by the key of the
/// next index, which is looked up for each kind in `jobs`.
pub(crate) async fn check_complete(
    store: &dyn Store,
    jobs: &[NewJob],
    idempotency: &IdempotencyKey,
) -> Result<(), Problem> {
    let kinds: BTreeSet<&str> = jobs.iter().map(|job| job.kind.as_str()).collect();
    let following: Vec<NewJob> = kinds
        .into_iter()
        .filter_map(|kind| NewJob::new(kind, &()).ok())
        .map(|mut following| {
            idempotency.give(&mut following.key, jobs.len());
            following
        })
        .collect();
    let holders = holders(store, &following.iter().collect::<Vec<_>>()).await?;
    match holders.into_iter().flatten().next() {
        Some(more) => Err(taken(format_args!("job {} was created", more.job), "more other jobs")),
        None => Ok(()),
    }
}

/// Refuses a key that a job with different content holds.
pub(crate) async fn check_held(store: &dyn Store, asked: &NewJob) -> Result<(), Problem> {
    check_each(store, &[asked]).await?.into_iter().collect()
}

/// Refuses a key under which a run over a file with another number of rows was started.
pub(crate) async fn check_rows(store: &dyn Store, run: JobId, rows: u64) -> Result<(), Problem> {
    let filter = BulkFilter { job: Some(run), limit: 1, ..BulkFilter::default() };
    let held = store.bulks(&filter).await?.pop().and_then(|run| run.file);
    if held.is_none_or(|file| file.rows == rows) {
        return Ok(());
    }
    Err(taken(format_args!("run {run} was started"), "another file"))
}

/// Returns the job with the same content that holds the key of this one, if there is one.
pub(crate) async fn holder(store: &dyn Store, asked: &NewJob) -> Result<Option<JobId>, Problem> {
    let Some(holder) = holders(store, &[asked]).await?.into_iter().flatten().next() else { return Ok(None) };
    check_same(&holder).map(|()| Some(holder.job))
}

/// Checks each of several jobs like [`check_held`]; the results are in the order of the jobs.
pub(crate) async fn check_each(
    store: &dyn Store,
    asked: &[&NewJob],
) -> Result<Vec<Result<(), Problem>>, Problem> {
    let holders = holders(store, asked).await?;
    Ok(holders.iter().map(|holder| holder.as_ref().map_or(Ok(()), check_same)).collect())
}

async fn holders(store: &dyn Store, asked: &[&NewJob]) -> Result<Vec<Option<KeyHolder>>, Problem> {
    if asked.is_empty() { Ok(Vec::new()) } else { Ok(store.key_holders(asked).await?) }
}

/// Refuses a key under which something else was created. A deleted job cannot be compared and is accepted.
fn check_same(holder: &KeyHolder) -> Result<(), Problem> {
    match holder.is_same {
        Some(false) => Err(taken(format_args!("job {} was created", holder.job), "other content")),
        _ => Ok(()),
    }
}

/// Refuses a request whose key another request took at the same moment.
pub(crate) fn in_between() -> Problem {
    taken(format_args!("other jobs were created"), "another request")
}

fn taken(made: Arguments<'_>, with: &str) -> Problem {
    let words = format!("{made} under this key with {with}; a new request needs a new key");
    Problem::new(Code::IdempotencyKeyTaken, words).at("header Idempotency-Key")
}

//! `Idempotency-Key`: a create that can be repeated. The key becomes that of the job, so that the store itself keeps its promise.

use std::collections::BTreeSet;
use std::fmt::Arguments;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use milepost_core::batch::nominal::NominalTime;
use milepost_core::batch::start::NewBatch;
use milepost_core::ident::{BatchId, JobId};
use milepost_core::job::{KeyHolder, NewJob};
use milepost_core::json::is_same_json;
use milepost_core::port::Store;
use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::IntoParams;
use uuid::Uuid;

use crate::problem::Problem;

/// How long a key may be.
const BYTES_MAX: usize = 255;

/// What the request is known by.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct IdempotencyKey {
    /// Repeated with the same content (kind, queue, group, payload), the request is answered with what it created the first time; with other
    /// content of the same kind it is refused. It is the store's, whoever asks. Says nothing for what has a key of its own.
    #[param(rename = "Idempotency-Key", max_length = 255)]
    given: Option<String>,
}

impl IdempotencyKey {
    /// An id for what stands at a place in the request: the same when it is repeated.
    pub(crate) fn id(&self, index: usize) -> Option<Uuid> {
        let given = self.given.as_ref()?;
        let hash = Sha256::digest(format!("milepost idempotency {given}\u{0}{index}"));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Some(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// Gives it to what has no key; `index` is the place in the request. Answers whether it did.
    pub(crate) fn give(&self, key: &mut Option<String>, index: usize) -> bool {
        match &self.given {
            Some(given) if key.is_none() => {
                *key = Some(format!("idempotency:{given}:{index}"));
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
            _ => Err(Problem::bad_request(
                "invalid_parameter",
                format!("it must have 1 to {BYTES_MAX} printable characters"),
            )
            .at("header Idempotency-Key")),
        }
    }
}

/// What is answered for what was created, or was there before under its key.
pub(crate) fn made(duplicate: bool, url: String, what: impl Serialize) -> Response {
    let status = if duplicate { StatusCode::OK } else { StatusCode::CREATED };
    (status, [(header::LOCATION, url)], Json(what)).into_response()
}

/// Refuses a key under which another batch was started.
pub(crate) async fn check_same_batch(
    store: &dyn Store,
    asked: &NewBatch,
    made: BatchId,
) -> Result<(), Problem> {
    let Some(made) = store.batch(made).await? else { return Ok(()) };
    let same_input = is_same_json(made.input.get(), asked.input.get());
    // A store keeps milliseconds.
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

/// Refuses, before anything is created, jobs of a request whose key other ones were created with; answers whether it is a repetition. The
/// jobs of a request are created all or none, so that a key that only some of them hold is that of another request, or of one that is being
/// forgotten.
pub(crate) async fn check_repeated(store: &dyn Store, asked: &[&NewJob]) -> Result<bool, Problem> {
    let holders = holders(store, asked).await?;
    let Some(first) = holders.iter().flatten().next() else { return Ok(false) };
    if holders.iter().any(Option::is_none) {
        return Err(taken(
            format_args!("job {} was created", first.job),
            "fewer others, or some of them are forgotten",
        ));
    }
    holders.iter().flatten().try_for_each(check_same).map(|()| true)
}

/// Refuses a repetition of `jobs` with fewer jobs than the request had that created them. It is recognized by the key of the job that would
/// follow, if that is of a kind that the request names.
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
        Some(more) => Err(taken(format_args!("job {} was created", more.job), "more others")),
        None => Ok(()),
    }
}

/// Refuses a key that a job of other content holds.
pub(crate) async fn check_held(store: &dyn Store, asked: &NewJob) -> Result<(), Problem> {
    check_each(store, &[asked]).await?.into_iter().collect()
}

/// The job of the same content that holds the key of this one, if there is one.
pub(crate) async fn holder(store: &dyn Store, asked: &NewJob) -> Result<Option<JobId>, Problem> {
    let Some(holder) = holders(store, &[asked]).await?.into_iter().flatten().next() else { return Ok(None) };
    check_same(&holder).map(|()| Some(holder.job))
}

/// The same for each of many, in their order.
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

/// Refuses a key under which something else was created. Of what is forgotten nobody knows.
fn check_same(holder: &KeyHolder) -> Result<(), Problem> {
    match holder.is_same {
        Some(false) => Err(taken(format_args!("job {} was created", holder.job), "other content")),
        _ => Ok(()),
    }
}

fn taken(made: Arguments<'_>, with: &str) -> Problem {
    let words = format!("{made} under this key with {with}; a new request needs a new key");
    Problem::conflict("idempotency_key_taken", words).at("header Idempotency-Key")
}

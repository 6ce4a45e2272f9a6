//! JSON request bodies. Errors in a body are reported with their position.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::problem::{Code, Problem};

/// A request body that must be JSON of type `T`.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        check_content_type(request.headers())?;
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| unreadable(&rejection))?;
        read(&bytes).map(Self)
    }
}

/// Describes a body that could not be read, or is too large.
pub(crate) fn unreadable(rejection: &BytesRejection) -> Problem {
    let code = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Code::BodyTooLarge,
        _ => Code::BodyUnreadable,
    };
    Problem::new(code, rejection.body_text()).with_status(rejection.status())
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let given = if given.is_empty() { "there is none".to_owned() } else { format!("it is {given:?}") };
    Err(Problem::new(
        Code::NotJson,
        format!("the body must be JSON, with the header Content-Type: application/json; {given}"),
    )
    .at("header Content-Type"))
}

/// Deserializes the body. If that fails, deserializes it again to find the position of the error.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // A list would be read as the fields in the order of their declaration.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::new(Code::InvalidBody, "the body is a list, but must be an object"));
    }
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let read: Result<T, _> = serde_path_to_error::deserialize(&mut deserializer);
    let error = match read {
        Ok(_) => return Err(trailing(&mut deserializer)),
        Err(error) => error,
    };
    let path = error.path().to_string();
    let inner = error.into_inner();
    match inner.classify() {
        Category::Data => {
            let problem = Problem::new(Code::InvalidBody, inner.to_string());
            Err(if path == "." { problem } else { problem.at(path) })
        }
        _ => Err(not_json(&inner)),
    }
}

fn trailing(deserializer: &mut serde_json::Deserializer<serde_json::de::SliceRead<'_>>) -> Problem {
    match deserializer.end() {
        Err(error) => not_json(&error),
        Ok(()) => Problem::new(Code::MalformedJson, "the body cannot be read"),
    }
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::new(Code::MalformedJson, format!("the body is not JSON: {error}")).at(format!(
        "line {} column {}",
        error.line(),
        error.column()
    ))
}

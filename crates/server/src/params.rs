//! Path and query parameters of URLs.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::{Code, Problem};

/// The query string as `T`. Unknown parameters are refused.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        if let Some((name, _)) = url_pairs(query).find(|(_, value)| value.contains('\0')) {
            return Err(nul().at(format!("query {name}")));
        }
        let deserializer = serde_urlencoded::Deserializer::new(url_pairs(query));
        serde_path_to_error::deserialize(deserializer).map(Self).map_err(|error| {
            let name = error.path().to_string();
            let problem = Problem::new(Code::InvalidParameter, error.into_inner().to_string());
            if name == "." { problem } else { problem.at(format!("query {name}")) }
        })
    }
}

/// No store can keep text with a NUL character.
fn nul() -> Problem {
    Problem::new(Code::InvalidParameter, "it has a NUL character")
}

/// Encodes a text for the path or the query of a URL.
pub(crate) fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn url_pairs(query: &str) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(query.as_bytes())
}

/// The single parameter of the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: FromStr<Err: Display>> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let unreadable = |words: String| Problem::new(Code::InvalidParameter, words);
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|rejection| unreadable(rejection.body_text()))?;
        let Some((name, value)) = params.iter().next() else {
            return Err(unreadable("the path has no parameter".to_owned()));
        };
        if value.contains('\0') {
            return Err(nul().at(format!("path {name}")));
        }
        value.parse().map(Self).map_err(|error: T::Err| {
            unreadable(format!("{value:?} cannot be used as {name}: {error}")).at(format!("path {name}"))
        })
    }
}

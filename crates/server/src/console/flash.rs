//! What became of what somebody did, said once at the top of the next page: it travels in a cookie.

use axum::http::header::{COOKIE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::words::{cut, encoded};
use crate::problem::Problem;

const COOKIE_NAME: &str = "milepost_said";
/// How much is said.
const CHARS_MAX: usize = 600;

/// Something to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flash {
    /// Whether it is done, rather than refused.
    pub(crate) done: bool,
    pub(crate) words: String,
}

impl Flash {
    pub(crate) fn done(words: impl Into<String>) -> Self {
        Self { done: true, words: words.into() }
    }

    pub(crate) fn refused(words: impl Into<String>) -> Self {
        Self { done: false, words: words.into() }
    }

    /// What the browser brought back.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == COOKIE_NAME)?;
        let (kind, words) = value.split_once('.')?;
        let words = percent_encoding::percent_decode_str(words).decode_utf8().ok()?.into_owned();
        (!words.is_empty()).then(|| Self { done: kind == "done", words: cut(&words, CHARS_MAX) })
    }

    fn cookie(&self) -> HeaderValue {
        let kind = if self.done { "done" } else { "refused" };
        let words = encoded(&cut(&self.words, CHARS_MAX));
        let text = format!("{COOKIE_NAME}={kind}.{words}; Path=/; Max-Age=30; HttpOnly; SameSite=Strict");
        HeaderValue::from_str(&text).unwrap_or_else(|_| Self::forgotten())
    }

    /// What makes the browser forget it.
    pub(super) fn forgotten() -> HeaderValue {
        HeaderValue::from_static("milepost_said=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict")
    }

    /// Says it on the page at `back`.
    pub(crate) fn on(&self, back: &str) -> Response {
        let location = HeaderValue::from_str(back).unwrap_or_else(|_| HeaderValue::from_static("/"));
        let mut response = StatusCode::SEE_OTHER.into_response();
        response.headers_mut().insert(LOCATION, location);
        response.headers_mut().insert(SET_COOKIE, self.cookie());
        response
    }
}

impl From<Problem> for Flash {
    fn from(problem: Problem) -> Self {
        Self::refused(problem.words())
    }
}

impl From<milepost_core::error::StoreError> for Flash {
    fn from(error: milepost_core::error::StoreError) -> Self {
        Problem::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_comes_back_as_it_was() {
        let said = Flash::refused("job; \"x\" <b>=ä\r\n");
        let cookie = said.cookie();
        let (pair, _) = cookie.to_str().unwrap().split_once(';').unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::from_str(&format!("other=1; {pair}")).unwrap());
        assert_eq!(Flash::of(&headers), Some(said));
    }
}

//! Flash messages: the result of an action, shown once at the top of the next page. A cookie carries the message.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::format::cut;
use crate::access::cookie as read_cookie;
use crate::app::App;
use crate::params::encoded;
use crate::problem::Problem;
use crate::session::cookie::Cookie;

/// Maximum length of a message, in characters.
const CHARS_MAX: usize = 600;

/// The header of a form that a script sends: the answer is JSON, and the form stays open if it is refused.
const BY_SCRIPT: &str = "x-milepost-form";

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flash {
    /// Whether the action was performed; otherwise it was refused.
    pub(crate) done: bool,
    pub(crate) words: String,
}

/// The change of the cookie by a response, in its extensions.
#[derive(Clone, Debug)]
pub(super) enum Said {
    /// The next page shows this message.
    Next(Flash),
    /// This page has shown the message.
    Here,
}

/// Reads and sets the cookie; its name and attributes depend on whether browsers reach the server by HTTPS.
pub(crate) async fn carry(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let cookie = app.sessions.said;
    if let Some(flash) = Flash::of(request.headers(), cookie) {
        request.extensions_mut().insert(flash);
    }
    let by_script = request.headers().contains_key(BY_SCRIPT);
    let mut response = next.run(request).await;
    let said = response.extensions_mut().remove();
    if let (true, Some(Said::Next(flash))) = (by_script, &said) {
        response = flash.to_script(&response);
    }
    let set = match said {
        // The script shows a refusal in the form.
        Some(Said::Next(flash)) => (flash.done || !by_script).then(|| flash.cookie(cookie)).flatten(),
        Some(Said::Here) => cookie.without(),
        None => None,
    };
    if let Some(set) = set {
        response.headers_mut().append(SET_COOKIE, set);
    }
    response
}

/// Returns whether the response redirects because a form was refused.
pub(crate) fn is_refused_form(response: &Response) -> bool {
    matches!(response.extensions().get(), Some(Said::Next(flash)) if !flash.done)
}

impl Flash {
    pub(crate) fn done(words: impl Into<String>) -> Self {
        Self { done: true, words: words.into() }
    }

    pub(crate) fn refused(words: impl Into<String>) -> Self {
        Self { done: false, words: words.into() }
    }

    /// Reads the message from the cookie.
    fn of(headers: &HeaderMap, cookie: Cookie) -> Option<Self> {
        let (kind, words) = read_cookie(headers, cookie.name())?.split_once('.')?;
        let words = percent_encoding::percent_decode_str(words).decode_utf8().ok()?.into_owned();
        (!words.is_empty()).then(|| Self { done: kind == "done", words: cut(&words, CHARS_MAX) })
    }

    fn cookie(&self, cookie: Cookie) -> Option<HeaderValue> {
        let kind = if self.done { "done" } else { "refused" };
        let words = encoded(&cut(&self.words, CHARS_MAX));
        cookie.briefly(&format!("{kind}.{words}"))
    }

    /// Turns a redirect into the answer to a script: the page to open, or why the form was refused.
    fn to_script(&self, redirect: &Response) -> Response {
        if !self.done {
            return Json(json!({ "refused": self.words })).into_response();
        }
        let to = redirect.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("/");
        Json(json!({ "to": to })).into_response()
    }

    /// Redirects to the page at `back`, which shows the message.
    pub(crate) fn on(self, back: &str) -> Response {
        let location = HeaderValue::from_str(back).unwrap_or_else(|_| HeaderValue::from_static("/"));
        let mut response = StatusCode::SEE_OTHER.into_response();
        response.headers_mut().insert(LOCATION, location);
        response.extensions_mut().insert(Said::Next(self));
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
    use axum::http::header::COOKIE;

    use super::*;
    use crate::session::sessions::Sessions;

    #[test]
    fn what_is_said_comes_back_as_it_was() {
        for secure in [false, true] {
            let cookie = Sessions::new(milepost_core::session::SessionTimes::default(), secure).said;
            let said = Flash::refused("job; \"x\" <b>=ä\r\n");
            let set = said.cookie(cookie).unwrap();
            let (pair, _) = set.to_str().unwrap().split_once(';').unwrap();
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_str(&format!("other=1; {pair}")).unwrap());
            assert_eq!(Flash::of(&headers, cookie), Some(said));
        }
    }

    #[test]
    fn under_https_another_host_of_the_domain_can_say_nothing() {
        let cookie = Sessions::new(milepost_core::session::SessionTimes::default(), true).said;
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::from_static("milepost_said=done.all%20is%20well"));
        assert_eq!(Flash::of(&headers, cookie), None);
    }
}

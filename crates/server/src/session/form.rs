//! What a form must carry.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::csrf::is_masked;
use crate::access::{Identity, comes_from_here};
use crate::problem::Problem;

/// The field of a form, and the header of what is no form.
pub(crate) const FIELD: &str = "csrf";
const HEADER: &str = "x-csrf-token";
/// How large a form may be.
pub(super) const FORM_BYTES_MAX: usize = 256 * 1024;

/// Lets requests pass but for those of somebody who is signed in that change something and that no page of this server sent. It reads the
/// body, so it stands behind what bounds a request.
pub(crate) async fn guard_forms(request: Request, next: Next) -> Response {
    let identity = request.extensions().get::<Identity>().cloned();
    let request = match identity.filter(|identity| identity.session.is_some()) {
        Some(identity) => check_form(request, &identity).await,
        None => Ok(request),
    };
    match request {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

async fn check_form(request: Request, identity: &Identity) -> Result<Request, Problem> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(request);
    }
    if !comes_from_here(request.headers(), request.uri()) {
        return Err(refused("it does not come from a page of this server").at("header Origin"));
    }
    if let Some(given) = request.headers().get(HEADER) {
        let same = given.to_str().is_ok_and(|given| is_masked(given, &identity.csrf));
        return if same { Ok(request) } else { Err(old_page().at(format!("header {HEADER}"))) };
    }
    if !is_form(request.headers()) {
        return Err(refused("it lacks the header x-csrf-token").at(format!("header {HEADER}")));
    }
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, FORM_BYTES_MAX).await.map_err(|_| too_large())?;
    let given = form_urlencoded::parse(&body).find(|(name, _)| name == FIELD);
    if given.is_some_and(|(_, given)| is_masked(&given, &identity.csrf)) {
        Ok(Request::from_parts(parts, Body::from(body)))
    } else {
        Err(old_page().at(format!("field {FIELD}")))
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded"))
}

pub(super) fn too_large() -> Problem {
    let words = format!("the form could not be read, or has more than {FORM_BYTES_MAX} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", words)
}

fn old_page() -> Problem {
    refused("it does not carry what a page of this session has; load the page anew")
}

fn refused(why: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forged_request", format!("the request was refused: {why}"))
}

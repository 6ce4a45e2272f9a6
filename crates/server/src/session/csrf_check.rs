//! The CSRF check of requests with a session.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::csrf_token::is_masked;
use crate::access::{Identity, comes_from_here};
use crate::console::multipart;
use crate::problem::{Code, Problem};

/// The name of the form field, and of the header for other requests.
pub(crate) const FIELD: &str = "csrf";
const HEADER: &str = "x-csrf-token";
/// Maximum size of a form.
pub(super) const FORM_BYTES_MAX: usize = 256 * 1024;

/// Refuses requests with a session that change something and were not sent by a page of this server. Reads the body, so it must
/// run after the layers that limit requests. `body_bytes_max`: the limit of a form with a file.
pub(crate) async fn guard_forms(
    State(body_bytes_max): State<usize>,
    request: Request,
    next: Next,
) -> Response {
    let identity = request.extensions().get::<Identity>().cloned();
    let request = match identity.filter(|identity| identity.session.is_some()) {
        Some(identity) => check_form(request, &identity, body_bytes_max).await,
        None => Ok(request),
    };
    match request {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

async fn check_form(
    request: Request,
    identity: &Identity,
    body_bytes_max: usize,
) -> Result<Request, Problem> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(request);
    }
    if !comes_from_here(request.headers(), request.uri()) {
        return Err(refused("it was not sent by a page of this server").at("header Origin"));
    }
    if let Some(given) = request.headers().get(HEADER) {
        let same = given.to_str().is_ok_and(|given| is_masked(given, &identity.csrf));
        return if same { Ok(request) } else { Err(old_page().at(format!("header {HEADER}"))) };
    }
    let boundary = request.headers().get(header::CONTENT_TYPE).and_then(multipart::boundary);
    if boundary.is_none() && !is_form(request.headers()) {
        return Err(refused("the header x-csrf-token is missing").at(format!("header {HEADER}")));
    }
    let (parts, body) = request.into_parts();
    let bytes_max = if boundary.is_some() { body_bytes_max } else { FORM_BYTES_MAX };
    let body = to_bytes(body, bytes_max).await.map_err(|_| too_large(bytes_max))?;
    let given = match boundary {
        Some(boundary) => multipart::field(&boundary, body.clone(), FIELD).await,
        None => {
            form_urlencoded::parse(&body).find(|(name, _)| name == FIELD).map(|(_, given)| given.into_owned())
        }
    };
    if given.is_some_and(|given| is_masked(&given, &identity.csrf)) {
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

pub(super) fn too_large(bytes_max: usize) -> Problem {
    let words = format!("the form could not be read, or has more than {bytes_max} bytes");
    Problem::new(Code::BodyTooLarge, words)
}

fn old_page() -> Problem {
    refused("its CSRF token does not belong to this session; reload the page")
}

fn refused(why: &str) -> Problem {
    Problem::new(Code::ForgedRequest, format!("the request was refused: {why}"))
}

//! Errors as HTML pages, since users of a browser should not get JSON.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::uri::{Authority, PathAndQuery};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use super::page::{Page, draw};
use crate::access;
use crate::app::App;
use crate::client::Client;
use crate::problem::Problem;
use crate::redirect::own_path;
use crate::session::sign_in::sign_in_path;

#[derive(Template)]
#[template(path = "trouble.html")]
struct Trouble<'a> {
    page: Page,
    title: &'static str,
    words: &'a str,
    code: &'static str,
    /// The page with the refused form.
    back: Option<&'a str>,
    /// The sign-in page, if the user has to sign in.
    sign_in: Option<String>,
}

/// Converts a problem to a page if the client asked for HTML. Redirects to the sign-in page if the user has to sign in first.
pub(crate) async fn explain(State(app): State<App>, request: Request, next: Next) -> Response {
    if !wants_a_page(&request) {
        return next.run(request).await;
    }
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let (headers, client) = (request.headers().clone(), Client::of(request.extensions()));
    let flash = request.extensions().get().cloned();
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let is_look = matches!(method, Method::GET | Method::HEAD);
    if problem.is_unauthorized() && is_look {
        return Redirect::to(&sign_in_path(path(&uri))).into_response();
    }
    let known = access::known(&app, &headers, client).await;
    let page = draw_problem(problem, is_look, Page::of(&uri, flash, known.as_ref()), &headers);
    with_headers_of(page, &response)
}

/// Returns whether the client is a browser that expects a page.
fn wants_a_page(request: &Request) -> bool {
    let accepted = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    !request.uri().path().starts_with("/v1/")
        && accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

fn path(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", PathAndQuery::as_str)
}

fn draw_problem(problem: &Problem, is_look: bool, page: Page, headers: &HeaderMap) -> Response {
    let from: Option<Uri> = headers.get(header::REFERER).and_then(|from| from.to_str().ok()?.parse().ok());
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let back = from.as_ref().filter(|from| from.authority().map(Authority::as_str) == host);
    let back = back.map(|from| own_path(path(from)));
    let sign_in = problem.is_unauthorized().then(|| sign_in_path(back.unwrap_or("/")));
    let title = match problem.status() {
        StatusCode::NOT_FOUND => "Not found",
        _ if is_look => "The page cannot be shown",
        status if status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT => {
            "The request was refused"
        }
        _ => "The outcome of the request is unknown",
    };
    let back = back.filter(|_| !is_look);
    let mut response =
        draw(&Trouble { page, title, words: problem.words(), code: problem.code().as_str(), back, sign_in });
    *response.status_mut() = problem.status();
    response
}

/// Copies the cookies and `Retry-After` of the original response.
fn with_headers_of(mut page: Response, first: &Response) -> Response {
    for name in [header::SET_COOKIE, header::RETRY_AFTER] {
        for value in first.headers().get_all(&name) {
            page.headers_mut().append(&name, value.clone());
        }
    }
    page
}

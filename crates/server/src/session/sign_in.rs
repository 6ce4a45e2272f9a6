//! The sign-in page, sign-in with a token, and sign-out.

use std::time::{Duration, Instant};

use askama::Template;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Extension, Request};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use milepost_core::session::SessionUser;
use milepost_core::token::{FoundToken, Role, Secret};
use serde::Deserialize;

use super::csrf_check::{FORM_BYTES_MAX, too_large};
use super::{begin, end};
use crate::access::{Identity, Needed, check, comes_from_here, foreign};
use crate::app::App;
use crate::client::Client;
use crate::console::asset;
use crate::oidc::Provider;
use crate::pages::Pages;
use crate::params::{Query, encoded};
use crate::problem::{Code, Problem};
use crate::redirect::own_path;

/// The time in which a sign-in form must arrive.
const FORM_TIME: Duration = Duration::from_secs(10);
/// The path of the sign-in page.
const SIGN_IN: &str = "/sign-in";
/// The path that begins a sign-in with a provider.
pub(crate) const BEGIN: &str = "/sign-in/oidc";

pub(crate) fn routes() -> Pages {
    Pages::default()
        .add(Method::GET, SIGN_IN, Needed::Nothing, get(show))
        .add(Method::POST, SIGN_IN, Needed::Nothing, post(sign_in))
        .add_own(Method::POST, "/sign-out", Needed::Role(Role::Viewer), post(sign_out))
}

/// Returns the path of the sign-in page that redirects to `next`.
pub(crate) fn sign_in_path(next: &str) -> String {
    format!("{SIGN_IN}?next={}", encoded(next))
}

#[derive(Template)]
#[template(path = "sign_in.html")]
pub(crate) struct Page<'a> {
    /// The path to redirect to.
    next: &'a str,
    /// The reason why the last attempt failed.
    fault: Option<&'a str>,
    /// The text and the URL of the button for sign-in with a provider.
    provider: Option<(&'a str, String)>,
}

impl<'a> Page<'a> {
    pub(crate) fn new(app: &'a App, next: &'a str, fault: Option<&'a str>) -> Self {
        // By the external URL, to which the provider returns: the cookie of the sign-in is that of a host.
        let url = |oidc: &Provider| format!("{}{BEGIN}?next={}", oidc.origin(), encoded(next));
        let provider = app.oidc.as_ref().map(|oidc| (oidc.button(), url(oidc)));
        Self { next, fault, provider }
    }

    fn asset(name: &str) -> String {
        asset(name)
    }

    pub(crate) fn answer(&self, status: StatusCode) -> Response {
        rendered(self, status)
    }
}

/// The page after a session has ended here, which leads to the page of the provider to sign out. A redirect would be refused by browsers,
/// because pages may send forms to this server only.
#[derive(Template)]
#[template(path = "signed_out.html")]
struct SignedOut<'a> {
    /// The URL of the provider's page.
    url: &'a str,
}

impl SignedOut<'_> {
    fn asset(name: &str) -> String {
        asset(name)
    }
}

fn rendered(page: &impl Template, status: StatusCode) -> Response {
    match page.render() {
        Ok(page) => (status, Html(page)).into_response(),
        Err(error) => {
            tracing::error!(%error, "the page could not be rendered");
            Problem::new(Code::PageFailed, "the page could not be rendered").into_response()
        }
    }
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    next: String,
}

async fn show(app: App, Query(asked): Query<Asked>) -> Result<Response, Problem> {
    if !app.tokens.are_asked_for().await? {
        return Ok(Redirect::to(own_path(&asked.next)).into_response());
    }
    Ok(Page::new(&app, own_path(&asked.next), None).answer(StatusCode::OK))
}

async fn sign_in(app: App, request: Request) -> Result<Response, Problem> {
    if !comes_from_here(request.headers(), request.uri()) {
        return Err(foreign());
    }
    let client = Client::of(request.extensions());
    let (parts, body) = request.into_parts();
    let body = received(&app, client, body).await?;
    let field = |name: &str| {
        form_urlencoded::parse(&body).find(|(its, _)| its == name).map(|(_, value)| value.into_owned())
    };
    let (token, next) = (field("token").unwrap_or_default(), field("next").unwrap_or_default());
    let next = own_path(&next);
    if let Err(wait) = app.sessions.attempts.begin(client, Instant::now()) {
        let seconds = wait.as_secs() + 1;
        let fault = format!("Too many attempts. Try again in {seconds} s.");
        let mut answer = Page::new(&app, next, Some(&fault)).answer(StatusCode::TOO_MANY_REQUESTS);
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        return Ok(answer);
    }
    let token = match find(&app, token.trim()).await? {
        Ok(token) => token,
        Err(fault) => {
            tracing::warn!(?client, "an attempt to sign in failed");
            return Ok(Page::new(&app, next, Some(&fault)).answer(StatusCode::UNAUTHORIZED));
        }
    };
    app.sessions.attempts.succeeded(client);
    // An existing session is ended.
    end(&app, &parts.headers).await?;
    tracing::info!(token = token.view.name, "a user signed in");
    let limited = token.view.scope.is_some();
    let session = begin(&app, SessionUser::Token(token.view.prefix), limited).await?;
    Ok(with_cookie(Redirect::to(next), session))
}

/// Receives the form. Whoever sends none, or only a part, must not keep a connection for long.
async fn received(app: &App, client: Client, body: Body) -> Result<Bytes, Problem> {
    let Some(_place) = app.sessions.forms.enter(client) else {
        let words = "too many sign-ins of this address are in progress; wait until some have ended";
        return Err(Problem::new(Code::TooManyInFlight, words).retry_after_s(1));
    };
    match tokio::time::timeout(FORM_TIME, to_bytes(body, FORM_BYTES_MAX)).await {
        Ok(body) => body.map_err(|_| too_large(FORM_BYTES_MAX)),
        Err(_) => Err(Problem::new(Code::RequestTimeout, "the form did not arrive in time")),
    }
}

/// Returns the token if it can be used to sign in, or the reason why not.
async fn find(app: &App, text: &str) -> Result<Result<FoundToken, String>, Problem> {
    let Some(secret) = Secret::parse(text) else {
        return Ok(Err("This is not a token. A token begins with mp_.".to_owned()));
    };
    let Some(token) = app.tokens.find(&secret).await? else {
        return Ok(Err("This token is unknown.".to_owned()));
    };
    if let Err(problem) = check(&token) {
        return Ok(Err(format!("The {}.", problem.words())));
    }
    if !token.view.role.allows(Role::Viewer) {
        return Ok(Err("This token is for workers and cannot be used to sign in.".to_owned()));
    }
    Ok(Ok(token))
}

async fn sign_out(
    app: App,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    end(&app, &headers).await?;
    let provider = app.oidc.as_ref().filter(|_| identity.token.is_none());
    let url = match provider {
        Some(provider) => provider.sign_out_url().await,
        None => None,
    };
    let cookie = app.sessions.cookie.without();
    Ok(match url {
        Some(url) => with_cookie(rendered(&SignedOut { url: url.as_str() }, StatusCode::OK), cookie),
        None => with_cookie(Redirect::to(SIGN_IN), cookie),
    })
}

pub(crate) fn with_cookie(response: impl IntoResponse, cookie: Option<HeaderValue>) -> Response {
    let mut response = response.into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_to_go_to_afterwards_is_quoted() {
        assert_eq!(sign_in_path("/jobs?a=b&c"), "/sign-in?next=%2Fjobs%3Fa%3Db%26c");
    }
}

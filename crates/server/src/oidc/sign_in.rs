//! Sign-in with the provider: the way to its page, and the way back.

use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{Redirect, Response};
use axum::routing::get;
use milepost_core::oidc::{NotAdmitted, Person};
use milepost_core::session::{NewSignIn, ReturnedSignIn, SessionUser};
use milepost_core::token::Digest;
use serde::Deserialize;
use thiserror::Error;

use super::discovery::Unavailable;
use super::options::CALLBACK;
use super::provider::{NotIdentified, Provider};
use crate::access::{Needed, cookie as read_cookie};
use crate::app::App;
use crate::client::Client;
use crate::pages::Pages;
use crate::params::Query;
use crate::problem::{Code, Problem};
use crate::redirect::own_path;
use crate::session::sign_in::{BEGIN, Page, with_cookie};
use crate::session::{begin, end, random};
use crate::store_timeout::in_time;

/// Maximum length of the path to go to afterwards, in bytes. Longer ones are replaced by `/`.
const NEXT_BYTES_MAX: usize = 2_000;
/// Maximum length of a code, in bytes. Those of large providers have up to 2,000.
const CODE_BYTES_MAX: usize = 8_000;

pub(crate) fn routes() -> Pages {
    Pages::default().add(Method::GET, BEGIN, Needed::Nothing, get(begin_sign_in)).add(
        Method::GET,
        CALLBACK,
        Needed::Nothing,
        get(end_sign_in),
    )
}

/// The reason why a sign-in failed, as the page shows it.
#[derive(Debug, Error)]
enum Fault {
    #[error("The sign-in service cannot be used: {0}. Try again, or sign in with a token.")]
    Unavailable(Unavailable),
    #[error("The sign-in service refused the sign-in ({0}).")]
    Refused(String),
    #[error(
        "This sign-in has ended: it was used before, took more than 10 minutes, or began in another browser. Sign in again."
    )]
    Unknown,
    #[error(
        "The answer of the sign-in service is not valid. Sign in again. The server's log contains the reason."
    )]
    Invalid,
    #[error("You cannot sign in: {0}. Ask an administrator.")]
    NotAdmitted(#[from] NotAdmitted),
}

impl Fault {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Unavailable(_) => StatusCode::BAD_GATEWAY,
            Self::Refused(_) | Self::Unknown | Self::Invalid => StatusCode::UNAUTHORIZED,
            Self::NotAdmitted(_) => StatusCode::FORBIDDEN,
        }
    }
}

impl From<NotIdentified> for Fault {
    fn from(why: NotIdentified) -> Self {
        match why {
            NotIdentified::Unavailable(unavailable) => Self::Unavailable(unavailable),
            NotIdentified::CodeRefused(_) | NotIdentified::Unverified(_) => Self::Invalid,
        }
    }
}

fn provider(app: &App) -> Result<&Provider, Problem> {
    let words = "this server has no provider for sign-in: [serve.oidc] of its configuration is missing";
    app.oidc.as_deref().ok_or_else(|| Problem::new(Code::NoSuchPath, words))
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    next: String,
}

/// Sends the browser to the provider, with a cookie that binds the sign-in to it.
async fn begin_sign_in(
    app: App,
    Query(Asked { next }): Query<Asked>,
    client: Client,
) -> Result<Response, Problem> {
    let provider = provider(&app)?;
    app.limits.check_sign_in(client)?;
    let next = if next.len() > NEXT_BYTES_MAX { "/" } else { own_path(&next) };
    let (id, state, nonce, verifier) = (random()?, random()?, random()?, random()?);
    let url = match provider.sign_in_url(state.clone(), nonce.clone(), verifier.clone()).await {
        Ok(url) => url,
        Err(unavailable) => return Ok(refused(&app, next, &Fault::Unavailable(unavailable))),
    };
    let (hash, state) = (Digest::of(&id), Digest::of(&state));
    let sign_in = NewSignIn { id: hash, state, nonce, verifier, next: next.to_owned() };
    in_time(app.store.begin_sign_in(&sign_in, &provider.limits)).await?;
    let cookie = app.sessions.sign_in.lasting(&id, provider.limits.lasts);
    Ok(with_cookie(Redirect::to(url.as_str()), cookie))
}

/// The provider's answer. It may have further parameters.
#[derive(Deserialize)]
struct Answer {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

/// Receives the browser from the provider, and begins a session.
async fn end_sign_in(
    app: App,
    Query(answer): Query<Answer>,
    client: Client,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let provider = provider(&app)?;
    app.limits.check_stranger(client)?;
    let Some(sign_in) = returned(&app, provider, &headers, &answer).await? else {
        return Ok(refused(&app, "/", &Fault::Unknown));
    };
    let next = own_path(&sign_in.next);
    let person = match person(provider, answer, &sign_in).await {
        Ok(person) => person,
        Err(fault) => {
            tracing::warn!(client = ?client, reason = %fault, "a sign-in with the provider failed");
            return Ok(with_cookie(refused(&app, next, &fault), app.sessions.sign_in.without()));
        }
    };
    // An existing session is ended.
    end(&app, &headers).await?;
    tracing::info!(name = person.who(), role = %person.role, "a user signed in");
    let session = begin(&app, SessionUser::Person(person), false).await?;
    let response = with_cookie(Redirect::to(next), session);
    Ok(with_cookie(response, app.sessions.sign_in.without()))
}

/// Returns the sign-in that this browser began with this state, once.
async fn returned(
    app: &App,
    provider: &Provider,
    headers: &HeaderMap,
    answer: &Answer,
) -> Result<Option<ReturnedSignIn>, Problem> {
    let (Some(id), Some(state)) = (read_cookie(headers, app.sessions.sign_in.name()), &answer.state) else {
        return Ok(None);
    };
    let (id, state) = (Digest::of(id), Digest::of(state));
    Ok(in_time(app.store.end_sign_in(&id, &state, &provider.limits)).await?)
}

/// Returns the person whom the provider identified.
async fn person(provider: &Provider, answer: Answer, sign_in: &ReturnedSignIn) -> Result<Person, Fault> {
    if answer.iss.is_some_and(|iss| !provider.is_issuer(&iss)) {
        tracing::warn!("the answer of the provider names another issuer");
        return Err(Fault::Invalid);
    }
    if let Some(error) = answer.error {
        return Err(Fault::Refused(short_code(&error)));
    }
    let code =
        answer.code.filter(|code| !code.is_empty() && code.len() <= CODE_BYTES_MAX).ok_or(Fault::Invalid)?;
    let claims = provider.claims(code, sign_in).await.map_err(|why| {
        tracing::warn!(reason = %why, "the provider identified no person");
        Fault::from(why)
    })?;
    Ok(provider.rules().person(&claims)?)
}

/// Returns an error code such as `access_denied`, or a replacement for other text: everyone can make a URL with a message in it.
fn short_code(error: &str) -> String {
    let is_code = error.len() <= 40 && error.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_code && !error.is_empty() { error.to_owned() } else { "without a known reason".to_owned() }
}

fn refused(app: &App, next: &str, fault: &Fault) -> Response {
    Page::new(app, next, Some(&fault.to_string())).answer(fault.status())
}

//! Console sessions: a cookie instead of a token, and the CSRF check of forms.
//!
//! Browsers send cookies automatically, so a cookie does not prove that the user sent a request. A request that changes something
//! must therefore come from a page of this server (`Origin`) and contain the session's CSRF token, as the form field `csrf` or
//! the header `x-csrf-token`.

pub(crate) mod cookie;
pub(crate) mod csrf_check;
pub(crate) mod csrf_token;
pub(crate) mod sessions;
pub(crate) mod sign_in;
mod sign_in_throttle;

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use milepost_core::error::StoreError;
use milepost_core::session::{FoundSession, FoundUser, NewSession, SessionUser};
use milepost_core::token::Digest;

use self::sessions::Known;
use crate::access::{Identity, Recalled, check, cookie as read_cookie};
use crate::app::App;
use crate::client::Client;
use crate::problem::{Code, Problem};
use crate::store_timeout::in_time;

/// The header of automatic requests by scripts of the console.
const REFRESH: &str = "x-milepost-refresh";

/// A caller with a session, and the cookie with the new id of the session if it was rotated.
pub(crate) struct Signed {
    pub(crate) identity: Identity,
    pub(crate) cookie: Option<HeaderValue>,
}

/// Returns the caller by the session cookie, if there is a valid session. Counts as use of the session, except for automatic
/// requests.
pub(crate) async fn of_headers(
    app: &App,
    headers: &HeaderMap,
    client: Client,
) -> Result<Option<Signed>, Problem> {
    let Some(id) = shown(app, headers) else { return Ok(None) };
    let Some((known, rotate)) = recall(app, &id, client, !is_refresh(headers)).await? else {
        return Ok(None);
    };
    let cookie = if rotate { self::rotate(app, &id, known.is_limited()).await? } else { None };
    Ok(Some(Signed { identity: identity(&known), cookie }))
}

/// Returns the caller without counting as use of the session.
pub(crate) async fn peek(
    app: &App,
    headers: &HeaderMap,
    client: Client,
) -> Result<Option<Identity>, Problem> {
    let Some(id) = shown(app, headers) else { return Ok(None) };
    Ok(recall(app, &id, client, false).await?.map(|(known, _)| identity(&known)))
}

/// How the ids of sessions with limited tokens begin.
const LIMITED: &str = "limited.";

/// Returns a new id of a session. `limited`: whether its user has a limited token.
fn new_id(limited: bool) -> Result<String, Problem> {
    let random = random()?;
    Ok(if limited { format!("{LIMITED}{random}") } else { random })
}

/// Returns the digest of the id of a session. For limited tokens it is that of a longer text, so that servers of earlier releases, which do not
/// read scopes, do not find these sessions.
fn digest(id: &str) -> Digest {
    if id.starts_with(LIMITED) { Digest::of(&format!("{id}/{LIMITED}")) } else { Digest::of(id) }
}

/// Returns the digest of the session id in the request.
fn shown(app: &App, headers: &HeaderMap) -> Option<Digest> {
    read_cookie(headers, app.sessions.cookie.name()).map(digest)
}

/// Returns a valid session, and whether its id must be rotated.
async fn recall(
    app: &App,
    id: &Digest,
    client: Client,
    used: bool,
) -> Result<Option<(Known, bool)>, Problem> {
    let sessions = &app.sessions;
    match sessions.known.recall(id) {
        Recalled::Fresh(known) if known.used || !used => return Ok(Some((known, false))),
        Recalled::Fresh(_) | Recalled::Stale => {}
        Recalled::Nothing => app.limits.check_stranger(client)?,
    }
    let found = in_time(app.store.session(id, &sessions.times, used)).await?;
    let Some(found) = found else { return Ok(None) };
    check_user(app, &found.user)?;
    let FoundSession { id: present, user, csrf, rotate } = found;
    let known = Known { id: present, user, csrf: csrf.into(), used };
    sessions.known.keep(id, known.clone());
    Ok(Some((known, rotate)))
}

/// Refuses the user of a session whose token is not valid, or whose role the configuration does not grant any more.
pub(crate) fn check_user(app: &App, user: &FoundUser) -> Result<(), Problem> {
    match user {
        FoundUser::Token(token) => check(token),
        FoundUser::Person(person) if app.oidc.as_ref().is_some_and(|oidc| oidc.grants(person)) => Ok(()),
        FoundUser::Person(person) => {
            let words =
                format!("the configuration does not give {} the role of this session any more", person.who());
            Err(Problem::new(Code::SessionOver, words))
        }
    }
}

/// Returns whether the request is an automatic refresh or an event stream: an open page does not count as use of the session.
fn is_refresh(headers: &HeaderMap) -> bool {
    headers.contains_key(REFRESH)
        || headers.get(header::ACCEPT).is_some_and(|accept| accept == "text/event-stream")
}

fn identity(known: &Known) -> Identity {
    let identity = match &known.user {
        FoundUser::Token(token) => Identity::of_token(&token.view),
        FoundUser::Person(person) => Identity::of_person(person),
    };
    Identity { session: Some(known.id), csrf: Arc::clone(&known.csrf), ..identity }
}

/// Returns the current session, or `None` if it has ended. Does not count as use.
pub(crate) async fn look(app: &App, id: &Digest) -> Result<Option<FoundSession>, StoreError> {
    in_time(app.store.session(id, &app.sessions.times, false)).await
}

/// Rotates the session id. Returns the cookie with the new id, or `None` if another request has rotated it.
async fn rotate(app: &App, id: &Digest, limited: bool) -> Result<Option<HeaderValue>, Problem> {
    let next = new_id(limited)?;
    let rotated = app.store.rotate_session(id, &digest(&next)).await?;
    Ok(if rotated { app.sessions.cookie.with(&next) } else { None })
}

/// Starts a session of this user and returns its cookie. `limited`: whether the user has a limited token.
pub(crate) async fn begin(
    app: &App,
    user: SessionUser,
    limited: bool,
) -> Result<Option<HeaderValue>, Problem> {
    let id = new_id(limited)?;
    let session = NewSession { id: digest(&id), user, csrf: random()? };
    app.store.begin_session(&session, &app.sessions.times).await?;
    Ok(app.sessions.cookie.with(&id))
}

/// Ends the session of the request, if there is one.
pub(crate) async fn end(app: &App, headers: &HeaderMap) -> Result<(), StoreError> {
    let Some(id) = shown(app, headers) else { return Ok(()) };
    app.sessions.known.forget(&id);
    app.store.end_session(&id).await
}

/// Returns 256 random bits as text.
pub(crate) fn random() -> Result<String, Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the operating system returned no random numbers");
        Problem::new(Code::NoRandomNumbers, "the operating system returned no random numbers")
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

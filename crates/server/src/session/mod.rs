//! Sessions of people at a browser: a cookie in the place of a token, and what forms must carry.
//!
//! What a browser sends by itself proves nothing: whatever changes something must come from one of this server's pages (`Origin`) and carry what
//! only these know (the session's `csrf`, as the field of a form or the header `x-csrf-token`).

mod attempts;
mod cookie;
mod csrf;
mod form;
mod sign_in;

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use milepost_core::error::StoreError;
use milepost_core::session::{FoundSession, NewSession, SessionTimes};
use milepost_core::token::{Digest, FoundToken};

pub(crate) use self::attempts::Attempts;
pub(crate) use self::cookie::Cookie;
pub(crate) use self::csrf::mask;
pub(crate) use self::form::guard_forms;
pub(crate) use self::sign_in::{routes, sign_in_path};
use crate::access::{Identity, Memory, Recalled, check, cookie as read_cookie};
use crate::app::App;
use crate::client::Client;
use crate::patience::in_time;
use crate::problem::Problem;

/// What scripts of a page say when they ask by themselves.
const REFRESH: &str = "x-milepost-refresh";

/// The sessions of a store, remembered for a moment.
pub(crate) struct Sessions {
    times: SessionTimes,
    cookie: Cookie,
    /// What pages say once at their top.
    pub(crate) said: Cookie,
    known: Memory<Known>,
    attempts: Attempts,
}

#[derive(Clone)]
struct Known {
    id: Digest,
    token: FoundToken,
    csrf: Arc<str>,
    /// Whether the store was told that it is used.
    used: bool,
}

/// Somebody who is signed in, and the cookie with the next id of their session.
pub(crate) struct Signed {
    pub(crate) identity: Identity,
    pub(crate) cookie: Option<HeaderValue>,
}

impl Sessions {
    /// `secure`: whether browsers reach the server by HTTPS.
    pub(crate) fn new(times: SessionTimes, secure: bool) -> Self {
        Self {
            times,
            cookie: Cookie::session(secure),
            said: Cookie::said(secure),
            known: Memory::default(),
            attempts: Attempts::default(),
        }
    }
}

/// Who has signed in at the browser that sends this, if anybody has. Unless a page asks by itself, the session is used by this.
pub(crate) async fn of_headers(
    app: &App,
    headers: &HeaderMap,
    client: Client,
) -> Result<Option<Signed>, Problem> {
    let Some(id) = shown(app, headers) else { return Ok(None) };
    let Some((known, rotate)) = recall(app, &id, client, !is_refresh(headers)).await? else {
        return Ok(None);
    };
    let cookie = if rotate { self::rotate(app, &id).await? } else { None };
    Ok(Some(Signed { identity: identity(&known), cookie }))
}

/// The same without using the session.
pub(crate) async fn peek(
    app: &App,
    headers: &HeaderMap,
    client: Client,
) -> Result<Option<Identity>, Problem> {
    let Some(id) = shown(app, headers) else { return Ok(None) };
    Ok(recall(app, &id, client, false).await?.map(|(known, _)| identity(&known)))
}

/// The id of the session that a request shows.
fn shown(app: &App, headers: &HeaderMap) -> Option<Digest> {
    read_cookie(headers, app.sessions.cookie.name()).map(Digest::of)
}

/// A session that goes on, and whether its id is to be changed.
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
    check(&found.token)?;
    let FoundSession { id: present, token, csrf, rotate } = found;
    let known = Known { id: present, token, csrf: csrf.into(), used };
    sessions.known.keep(id, known.clone());
    Ok(Some((known, rotate)))
}

/// Whether a page asks that keeps itself new, or listens to what happens: who has left it open does not use it.
fn is_refresh(headers: &HeaderMap) -> bool {
    headers.contains_key(REFRESH)
        || headers.get(header::ACCEPT).is_some_and(|accept| accept == "text/event-stream")
}

fn identity(known: &Known) -> Identity {
    Identity {
        session: Some(known.id),
        csrf: Arc::clone(&known.csrf),
        ..Identity::of_token(&known.token.view)
    }
}

/// A session as it stands, unless it is over; nobody uses it by this.
pub(crate) async fn look(app: &App, id: &Digest) -> Result<Option<FoundSession>, StoreError> {
    in_time(app.store.session(id, &app.sessions.times, false)).await
}

/// Changes the id; answers the cookie with the next one, unless somebody else has it.
async fn rotate(app: &App, id: &Digest) -> Result<Option<HeaderValue>, Problem> {
    let next = random()?;
    let rotated = app.store.rotate_session(id, &Digest::of(&next)).await?;
    Ok(if rotated { app.sessions.cookie.with(&next) } else { None })
}

/// Begins a session with this token; answers its cookie.
async fn begin(app: &App, token: &FoundToken) -> Result<Option<HeaderValue>, Problem> {
    let id = random()?;
    let session = NewSession { id: Digest::of(&id), token: token.view.prefix.clone(), csrf: random()? };
    app.store.begin_session(&session, &app.sessions.times).await?;
    Ok(app.sessions.cookie.with(&id))
}

/// Ends the session that a request shows, if it shows one.
async fn end(app: &App, headers: &HeaderMap) -> Result<(), StoreError> {
    let Some(id) = shown(app, headers) else { return Ok(()) };
    app.sessions.known.forget(&id);
    app.store.end_session(&id).await
}

/// 256 random bits as text.
fn random() -> Result<String, Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "this machine gives no random numbers");
        Problem::internal("no_random_numbers", "this machine gives no random numbers")
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

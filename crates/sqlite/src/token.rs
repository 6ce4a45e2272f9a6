//! Access tokens and console sessions.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::audit::{Actor, Note};
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::oidc::Person;
use milepost_core::port::{SessionStore, StoreResult, TokenStore};
use milepost_core::session::{
    FORMER_ID, FoundSession, FoundUser, NewSession, NewSignIn, ReturnedSignIn, SessionTimes, SessionUser,
    SignInLimits,
};
use milepost_core::sql;
use milepost_core::token::{Digest, FoundToken, InvalidToken, NewToken, TokenScope, TokenView};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::clock::{later_ms, now_ms};
use crate::command::Hint;
use crate::error::Failure;
use crate::store::SqliteStore;
use crate::{audit, row};

type Sql<T> = rusqlite::Result<T>;

/// The shortest interval between two updates of the time of last use.
const USED_EVERY_MS: i64 = 60_000;
/// How long a request waits for that update, behind other writers. The update is written even if the wait ends.
const USE_NOTED_WITHIN: Duration = Duration::from_millis(250);

#[async_trait]
impl TokenStore for SqliteStore {
    async fn create_token(&self, token: &NewToken) -> StoreResult<TokenView> {
        token.check()?;
        let (token, actor) = (token.clone(), self.named(&token.created_by));
        self.write("create_token", Hint::NONE, move |tx| create(tx, &token, &actor)).await
    }

    async fn token(&self, prefix: &str) -> StoreResult<Option<FoundToken>> {
        let prefix = prefix.to_owned();
        self.read_access("token", move |conn| Ok(find(conn, &prefix)?)).await
    }

    async fn tokens(&self) -> StoreResult<Vec<FoundToken>> {
        self.read_access("tokens", |conn| {
            let mut tokens = conn.prepare_cached(sql!("token/tokens"))?;
            let tokens = tokens.query_map((), found)?.collect::<Sql<_>>()?;
            Ok(tokens)
        })
        .await
    }

    async fn has_tokens(&self) -> StoreResult<bool> {
        self.read_access("has_tokens", |conn| {
            Ok(conn.prepare_cached(sql!("token/has"))?.query_row((), |row| row.get(0))?)
        })
        .await
    }

    async fn revoke_token(&self, prefix: &str, who: &str) -> StoreResult<bool> {
        let (prefix, actor) = (prefix.to_owned(), self.named(who));
        self.write("revoke_token", Hint::NONE, move |tx| revoke(tx, prefix, &actor)).await
    }

    async fn touch_token(&self, prefix: &str) -> StoreResult<()> {
        let prefix = prefix.to_owned();
        self.write("touch_token", Hint::NONE, move |tx| {
            tx.prepare_cached(sql!("token/touch"))?.execute((prefix, now_ms()))?;
            Ok(())
        })
        .await
    }
}

impl SqliteStore {
    /// Returns an actor with this name and the reason of the current one.
    fn named(&self, who: &str) -> Actor {
        let current = self.actor();
        let why = current.as_deref().and_then(Actor::why);
        Actor::new(who).and_then(|actor| actor.because(why)).unwrap_or_else(|_| Actor::nobody())
    }
}

fn create(conn: &Connection, token: &NewToken, actor: &Actor) -> Result<TokenView, Failure> {
    let now_ms = now_ms();
    let starts_ms = token.starts_at.map_or(now_ms, jiff::Timestamp::as_millisecond);
    let expires_ms = token.lasts.map(|lasts| later_ms(starts_ms, lasts));
    let NewToken { prefix, name, role, created_by, .. } = token;
    let (hash, scope) = (token.stored_hash(), token.scope.as_ref().map(scope_text));
    let row =
        (prefix, name, hash.as_bytes(), role.as_str(), now_ms, created_by, starts_ms, expires_ms, scope);
    if conn.prepare_cached(sql!("token/create"))?.execute(row)? == 0 {
        return Err(refused(InvalidToken::NameTaken(name.clone())));
    }
    let view = find(conn, prefix)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?.view;
    let mut after =
        json!({ "prefix": prefix, "role": role, "starts_at": view.starts_at, "expires_at": view.expires_at });
    if let Some(scope) = &view.scope {
        after["scope"] = json!(scope);
    }
    note(conn, actor, "token.create", name, json!({ "after": after }))?;
    Ok(view)
}

fn revoke(conn: &Connection, prefix: String, actor: &Actor) -> Result<bool, Failure> {
    let Some(FoundToken { view, .. }) = find(conn, &prefix)? else {
        return Err(refused(InvalidToken::NoSuchToken(prefix)));
    };
    if conn.prepare_cached(sql!("token/revoke"))?.execute((&prefix, now_ms()))? == 0 {
        return Ok(false);
    }
    conn.prepare_cached(sql!("session/end_of_token"))?.execute([&prefix])?;
    let before = json!({ "prefix": prefix, "role": view.role });
    note(conn, actor, "token.revoke", &view.name, json!({ "before": before }))?;
    Ok(true)
}

fn refused(invalid: InvalidToken) -> Failure {
    Failure::Told(StoreError::Token(invalid))
}

fn note(conn: &Connection, actor: &Actor, what: &'static str, name: &str, detail: Value) -> Sql<()> {
    audit::write(conn, actor, &Note { what, subject: Some(name.to_owned()), detail })
}

fn find(conn: &Connection, prefix: &str) -> Sql<Option<FoundToken>> {
    conn.prepare_cached(sql!("token/token"))?.query_row([prefix], found).optional()
}

fn found(row: &Row<'_>) -> Sql<FoundToken> {
    let (view, hash) = token(row)?;
    let at = jiff::Timestamp::from_millisecond(now_ms()).unwrap_or(jiff::Timestamp::MAX);
    Ok(FoundToken { view, hash, at })
}

/// Reads a token and the hash of its secret.
pub(crate) fn token(row: &Row<'_>) -> Sql<(TokenView, Digest)> {
    let hash = digest(row, 2)?;
    let view = TokenView {
        prefix: row.get(0)?,
        name: row.get(1)?,
        role: row::word(row, 3)?,
        created_at: row::time(row, 4)?,
        created_by: row.get(5)?,
        starts_at: row::time(row, 6)?,
        expires_at: row::time_opt(row, 7)?,
        revoked_at: row::time_opt(row, 8)?,
        last_used_at: row::time_opt(row, 9)?,
        scope: read_scope(row, 10)?,
    };
    Ok((view, hash))
}

/// Returns a scope as stored.
fn scope_text(scope: &TokenScope) -> String {
    json!(scope).to_string()
}

fn read_scope(row: &Row<'_>, column: usize) -> Sql<Option<TokenScope>> {
    let text: Option<String> = row.get(column)?;
    let read = |text: String| {
        serde_json::from_str(&text).map_err(|_| row::odd(column, Type::Text, "it is not a scope"))
    };
    text.map(read).transpose()
}

fn digest(row: &Row<'_>, column: usize) -> Sql<Digest> {
    let bytes = row.get_ref(column)?.as_blob()?;
    Digest::from_bytes(bytes).ok_or_else(|| row::odd(column, Type::Blob, "it is not a hash"))
}

#[async_trait]
impl SessionStore for SqliteStore {
    async fn begin_session(&self, session: &NewSession, times: &SessionTimes) -> StoreResult<()> {
        let (session, absolute) = (session.clone(), times.absolute);
        self.write("begin_session", Hint::NONE, move |tx| {
            tx.prepare_cached(sql!("session/forget"))?.execute([ago_ms(absolute)])?;
            let NewSession { id, user, csrf } = session;
            let (token, person) = match user {
                SessionUser::Token(prefix) => (Some(prefix), None),
                SessionUser::Person(person) => (None, Some(person)),
            };
            let name = person.as_ref().map(|person| person.name.as_str());
            let role = person.as_ref().map(|person| person.role.as_str());
            let grant = person.as_ref().map(|person| person.grant.as_bytes());
            let row = (id.as_bytes(), csrf, now_ms(), token, name, role, grant);
            tx.prepare_cached(sql!("session/begin"))?.execute(row)?;
            Ok(())
        })
        .await
    }

    async fn session(
        &self,
        id: &Digest,
        times: &SessionTimes,
        used: bool,
    ) -> StoreResult<Option<FoundSession>> {
        let (id, times) = (*id, *times);
        let found = self.read_access("session", move |conn| Ok(find_session(conn, &id, &times)?)).await?;
        let Some((session, seen_ms)) = found else { return Ok(None) };
        let every_ms = (whole_ms(times.idle) / 4).min(USED_EVERY_MS);
        if used && seen_ms < now_ms() - every_ms {
            let noted = self.write("session", Hint::NONE, move |tx| {
                tx.prepare_cached(sql!("session/touch"))?.execute((id.as_bytes(), now_ms()))?;
                Ok(())
            });
            if let Ok(noted) = timeout(USE_NOTED_WITHIN, noted).await {
                noted?;
            }
        }
        Ok(Some(session))
    }

    async fn rotate_session(&self, id: &Digest, to: &Digest) -> StoreResult<bool> {
        let (id, to) = (*id, *to);
        self.write("rotate_session", Hint::NONE, move |tx| {
            let mut rotate = tx.prepare_cached(sql!("session/rotate"))?;
            Ok(rotate.execute((id.as_bytes(), to.as_bytes(), now_ms()))? == 1)
        })
        .await
    }

    async fn end_session(&self, id: &Digest) -> StoreResult<()> {
        let id = *id;
        self.write("end_session", Hint::NONE, move |tx| {
            tx.prepare_cached(sql!("session/end"))?.execute([id.as_bytes()])?;
            Ok(())
        })
        .await
    }

    async fn begin_sign_in(&self, sign_in: &NewSignIn, limits: &SignInLimits) -> StoreResult<()> {
        let (sign_in, limits) = (sign_in.clone(), *limits);
        self.write("begin_sign_in", Hint::NONE, move |tx| {
            let others_max = limits.in_progress_max.saturating_sub(1);
            tx.prepare_cached(sql!("session/forget_sign_ins"))?
                .execute((ago_ms(limits.lasts), others_max))?;
            let NewSignIn { id, state, nonce, verifier, next } = sign_in;
            let row = (id.as_bytes(), state.as_bytes(), nonce, verifier, next, now_ms());
            tx.prepare_cached(sql!("session/begin_sign_in"))?.execute(row)?;
            Ok(())
        })
        .await
    }

    async fn end_sign_in(
        &self,
        id: &Digest,
        state: &Digest,
        limits: &SignInLimits,
    ) -> StoreResult<Option<ReturnedSignIn>> {
        let (id, state, limits) = (*id, *state, *limits);
        self.write("end_sign_in", Hint::NONE, move |tx| {
            let mut end = tx.prepare_cached(sql!("session/end_sign_in"))?;
            let ended = end.query_row((id.as_bytes(), state.as_bytes()), |row| {
                let at = jiff::Timestamp::from_millisecond(now_ms()).unwrap_or(jiff::Timestamp::MAX);
                let sign_in =
                    ReturnedSignIn { nonce: row.get(0)?, verifier: row.get(1)?, next: row.get(2)?, at };
                Ok((sign_in, row.get::<_, i64>(3)?))
            });
            let ended = ended.optional()?;
            Ok(ended.filter(|(_, began_ms)| *began_ms > ago_ms(limits.lasts)).map(|(sign_in, _)| sign_in))
        })
        .await
    }
}

/// Returns the session, and when it was last used.
fn find_session(conn: &Connection, id: &Digest, times: &SessionTimes) -> Sql<Option<(FoundSession, i64)>> {
    let (idle, absolute) = (ago_ms(times.idle), ago_ms(times.absolute));
    let asked = (id.as_bytes(), idle, absolute, ago_ms(times.rotate), ago_ms(FORMER_ID));
    let mut session = conn.prepare_cached(sql!("session/session"))?;
    let session = session.query_row(asked, |row| {
        let user = match row.get::<_, Option<String>>(15)? {
            Some(name) => {
                FoundUser::Person(Person { name, role: row::word(row, 16)?, grant: digest(row, 17)? })
            }
            None => FoundUser::Token(Box::new(found(row)?)),
        };
        let id = digest(row, 14)?;
        Ok((FoundSession { id, user, csrf: row.get(11)?, rotate: row.get(12)? }, row.get(13)?))
    });
    session.optional()
}

/// Returns the time this long ago.
fn ago_ms(duration: Duration) -> i64 {
    now_ms().saturating_sub(whole_ms(duration))
}

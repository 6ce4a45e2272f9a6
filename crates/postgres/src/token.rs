//! Implementations of the ports of tokens and sessions.

use async_trait::async_trait;
use milepost_core::duration::whole_ms;
use milepost_core::oidc::Person;
use milepost_core::port::{SessionStore, StoreResult, TokenStore};
use milepost_core::session::{
    FORMER_ID, FoundSession, FoundUser, NewSession, NewSignIn, ReturnedSignIn, SessionTimes, SessionUser,
    SignInLimits,
};
use milepost_core::sql;
use milepost_core::token::{Digest, FoundToken, InvalidToken, NewToken, TokenScope, TokenView};
use serde_json::json;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::row::{self, Decoded, named, time};
use crate::store::PostgresStore;

#[async_trait]
impl TokenStore for PostgresStore {
    async fn create_token(&self, token: &NewToken) -> StoreResult<TokenView> {
        token.check()?;
        let query = sqlx::query(sql!("token/create"))
            .bind(token.prefix.clone())
            .bind(token.name.clone())
            .bind(token.stored_hash().as_bytes().to_vec())
            .bind(token.role.as_str())
            .bind(token.created_by.clone())
            .bind(token.starts_at.map(jiff_sqlx::Timestamp::from))
            .bind(token.lasts.map(whole_ms))
            .bind(self.reason())
            .bind(token.scope.as_ref().map(|scope| json!(scope).to_string()));
        let made = self.inner.access.row(query).await.and_then(|row| row.as_ref().map(found).transpose());
        let made = made.map_err(|e| self.fail("create_token", e))?;
        Ok(made.ok_or_else(|| InvalidToken::NameTaken(token.name.clone()))?.view)
    }

    async fn token(&self, prefix: &str) -> StoreResult<Option<FoundToken>> {
        let query = sqlx::query(sql!("token/token")).bind(prefix.to_owned());
        let token = self.inner.access.row(query).await.and_then(|row| row.as_ref().map(found).transpose());
        token.map_err(|e| self.fail("token", e))
    }

    async fn tokens(&self) -> StoreResult<Vec<FoundToken>> {
        self.listed("tokens", self.inner.access.rows(sqlx::query(sql!("token/tokens"))).await, found)
    }

    async fn has_tokens(&self) -> StoreResult<bool> {
        let has = self.inner.access.row(sqlx::query(sql!("token/has"))).await.and_then(row::value);
        has.map_err(|e| self.fail("has_tokens", e))
    }

    async fn revoke_token(&self, prefix: &str, who: &str) -> StoreResult<bool> {
        let query = sqlx::query(sql!("token/revoke"))
            .bind(prefix.to_owned())
            .bind(who.to_owned())
            .bind(self.reason());
        let revoked = self.inner.access.row(query).await.and_then(|row| {
            let row = row.ok_or(sqlx::Error::RowNotFound)?;
            Ok((row.try_get(0)?, row.try_get(1)?))
        });
        match revoked.map_err(|e| self.fail("revoke_token", e))? {
            (_, false) => Err(InvalidToken::NoSuchToken(prefix.to_owned()).into()),
            (true, true) => Ok(true),
            (false, true) => self.confirm_replication().await.map(|()| false),
        }
    }

    async fn touch_token(&self, prefix: &str) -> StoreResult<()> {
        let query = sqlx::query(sql!("token/touch")).bind(prefix.to_owned());
        self.inner.access.execute(query).await.map(drop).map_err(|e| self.fail("touch_token", e))
    }
}

impl PostgresStore {
    /// Returns the reason of the actor, if there is one.
    fn reason(&self) -> Option<String> {
        self.actor.as_ref()?.why().map(str::to_owned)
    }
}

#[async_trait]
impl SessionStore for PostgresStore {
    async fn begin_session(&self, session: &NewSession, times: &SessionTimes) -> StoreResult<()> {
        let (token, person) = match &session.user {
            SessionUser::Token(prefix) => (Some(prefix.clone()), None),
            SessionUser::Person(person) => (None, Some(person.clone())),
        };
        let query = sqlx::query(sql!("session/begin"))
            .bind(session.id.as_bytes().to_vec())
            .bind(session.csrf.clone())
            .bind(whole_ms(times.absolute))
            .bind(token)
            .bind(person.as_ref().map(|person| person.name.clone()))
            .bind(person.as_ref().map(|person| person.role.as_str()))
            .bind(person.as_ref().map(|person| person.grant.as_bytes().to_vec()));
        self.inner.access.execute(query).await.map(drop).map_err(|e| self.fail("begin_session", e))
    }

    async fn session(
        &self,
        id: &Digest,
        times: &SessionTimes,
        used: bool,
    ) -> StoreResult<Option<FoundSession>> {
        let query = sqlx::query(sql!("session/session"))
            .bind(id.as_bytes().to_vec())
            .bind(whole_ms(times.idle))
            .bind(whole_ms(times.absolute))
            .bind(whole_ms(times.rotate))
            .bind(whole_ms(FORMER_ID))
            .bind(used);
        let session =
            self.inner.access.row(query).await.and_then(|row| row.as_ref().map(session).transpose());
        session.map_err(|e| self.fail("session", e))
    }

    async fn rotate_session(&self, id: &Digest, to: &Digest) -> StoreResult<bool> {
        let query =
            sqlx::query(sql!("session/rotate")).bind(id.as_bytes().to_vec()).bind(to.as_bytes().to_vec());
        let rotated = self.inner.access.execute(query).await;
        rotated.map(|rows| rows > 0).map_err(|e| self.fail("rotate_session", e))
    }

    async fn end_session(&self, id: &Digest) -> StoreResult<()> {
        let query = sqlx::query(sql!("session/end")).bind(id.as_bytes().to_vec());
        self.inner.access.execute(query).await.map(drop).map_err(|e| self.fail("end_session", e))
    }

    async fn begin_sign_in(&self, sign_in: &NewSignIn, limits: &SignInLimits) -> StoreResult<()> {
        let query = sqlx::query(sql!("session/begin_sign_in"))
            .bind(sign_in.id.as_bytes().to_vec())
            .bind(sign_in.state.as_bytes().to_vec())
            .bind(sign_in.nonce.clone())
            .bind(sign_in.verifier.clone())
            .bind(sign_in.next.clone())
            .bind(whole_ms(limits.lasts))
            .bind(i64::from(limits.in_progress_max.saturating_sub(1)));
        self.inner.access.execute(query).await.map(drop).map_err(|e| self.fail("begin_sign_in", e))
    }

    async fn end_sign_in(
        &self,
        id: &Digest,
        state: &Digest,
        limits: &SignInLimits,
    ) -> StoreResult<Option<ReturnedSignIn>> {
        let query = sqlx::query(sql!("session/end_sign_in"))
            .bind(id.as_bytes().to_vec())
            .bind(state.as_bytes().to_vec())
            .bind(whole_ms(limits.lasts));
        let ended = self.inner.access.row(query).await.and_then(|row| row.as_ref().map(returned).transpose());
        ended.map_err(|e| self.fail("end_sign_in", e))
    }
}

fn session(row: &PgRow) -> Decoded<FoundSession> {
    let user = match row.try_get::<Option<String>, _>("person")? {
        Some(name) => FoundUser::Person(Person {
            name,
            role: named(row, "person_role")?,
            grant: digest(row, "granted_by")?,
        }),
        None => FoundUser::Token(Box::new(found(row)?)),
    };
    let id = digest(row, "session_id")?;
    Ok(FoundSession { id, user, csrf: row.try_get("csrf")?, rotate: row.try_get("rotate")? })
}

fn returned(row: &PgRow) -> Decoded<ReturnedSignIn> {
    Ok(ReturnedSignIn {
        nonce: row.try_get("nonce")?,
        verifier: row.try_get("verifier")?,
        next: row.try_get("next")?,
        at: when(row, "at")?,
    })
}

fn found(row: &PgRow) -> Decoded<FoundToken> {
    let view = TokenView {
        prefix: row.try_get("prefix")?,
        name: row.try_get("name")?,
        role: named(row, "role")?,
        created_at: when(row, "created_at")?,
        created_by: row.try_get("created_by")?,
        starts_at: when(row, "starts_at")?,
        expires_at: time(row, "expires_at")?,
        revoked_at: time(row, "revoked_at")?,
        last_used_at: time(row, "last_used_at")?,
        scope: scope(row)?,
    };
    Ok(FoundToken { view, hash: digest(row, "hash")?, at: when(row, "at")? })
}

fn scope(row: &PgRow) -> Decoded<Option<TokenScope>> {
    let text: Option<String> = row.try_get("scope")?;
    let read = |text: String| serde_json::from_str(&text).map_err(|error| sqlx::Error::Decode(error.into()));
    text.map(read).transpose()
}

fn digest(row: &PgRow, column: &str) -> Decoded<Digest> {
    let digest = Digest::from_bytes(row.try_get(column)?);
    digest.ok_or_else(|| sqlx::Error::Decode(format!("{column} is not a hash").into()))
}

fn when(row: &PgRow, column: &str) -> Decoded<jiff::Timestamp> {
    Ok(row.try_get::<jiff_sqlx::Timestamp, _>(column)?.to_jiff())
}

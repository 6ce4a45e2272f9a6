//! Store ports for access tokens and console sessions.

use async_trait::async_trait;

use super::StoreResult;
use crate::session::{FoundSession, NewSession, NewSignIn, ReturnedSignIn, SessionTimes, SignInLimits};
use crate::token::{Digest, FoundToken, NewToken, TokenView};

/// Access tokens of servers. Times are those of the store's clock.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Stores a token, and records its creator in the audit. [`Token`](crate::error::StoreError::Token) when it is invalid.
    async fn create_token(&self, token: &NewToken) -> StoreResult<TokenView>;

    /// Returns the token with this prefix, whatever its status.
    async fn token(&self, prefix: &str) -> StoreResult<Option<FoundToken>>;

    /// Lists all tokens ever created, by name, with the time on the store's clock.
    async fn tokens(&self) -> StoreResult<Vec<FoundToken>>;

    /// Returns whether a token exists that is not revoked. An expired token counts, so that expiry alone never leaves a server open.
    async fn has_tokens(&self) -> StoreResult<bool>;

    /// Revokes a token and ends its sessions; `who` is recorded in the audit. Returns whether that changed anything.
    /// [`Token`](crate::error::StoreError::Token) when the token does not exist.
    async fn revoke_token(&self, prefix: &str, who: &str) -> StoreResult<bool>;

    /// Records the use of a token, with a resolution of one minute: further uses within the minute write nothing.
    async fn touch_token(&self, prefix: &str) -> StoreResult<()>;
}

/// Console sessions, shared by all servers of the store.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Creates a session, and deletes those that have reached their maximum age.
    async fn begin_session(&self, session: &NewSession, times: &SessionTimes) -> StoreResult<()>;

    /// Returns the session with this id, unless it has expired. `used`: whether the request is an action of the user rather than a
    /// reload by an open page. Use is recorded with a resolution of one minute, or of a quarter of the idle time.
    async fn session(
        &self,
        id: &Digest,
        times: &SessionTimes,
        used: bool,
    ) -> StoreResult<Option<FoundSession>>;

    /// Rotates the id of a session; the old id stays valid for [`FORMER_ID`](crate::session::FORMER_ID). Returns false when another
    /// request has already rotated it, or the session has expired.
    async fn rotate_session(&self, id: &Digest, to: &Digest) -> StoreResult<bool>;

    /// Ends a session.
    async fn end_session(&self, id: &Digest) -> StoreResult<()>;

    /// Stores a sign-in with a provider. Deletes those that have taken too long, and the oldest beyond the maximum number.
    async fn begin_sign_in(&self, sign_in: &NewSignIn, limits: &SignInLimits) -> StoreResult<()>;

    /// Deletes the sign-in with this id and state, and returns it. `None` when there is none, it has taken too long, or it was returned
    /// before.
    async fn end_sign_in(
        &self,
        id: &Digest,
        state: &Digest,
        limits: &SignInLimits,
    ) -> StoreResult<Option<ReturnedSignIn>>;
}

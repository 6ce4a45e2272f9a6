//! What keeps tokens and sessions.

use async_trait::async_trait;

use super::StoreResult;
use crate::session::{FoundSession, NewSession, SessionTimes};
use crate::token::{Digest, FoundToken, NewToken, TokenView};

/// Tokens by which servers know who asks. Times are those of the store's clock.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Keeps a token, and notes in the audit who made it.
    /// [`Token`](crate::error::StoreError::Token) when it cannot be.
    async fn create_token(&self, token: &NewToken) -> StoreResult<TokenView>;

    /// The token with this prefix, whatever its standing.
    async fn token(&self, prefix: &str) -> StoreResult<Option<FoundToken>>;

    /// All tokens that were ever made, by name, with the time on the store's clock.
    async fn tokens(&self) -> StoreResult<Vec<FoundToken>>;

    /// Whether there is a token that nobody has revoked. One that has expired counts: time alone opens no server.
    async fn has_tokens(&self) -> StoreResult<bool>;

    /// Takes a token back and ends its sessions; `who` is noted in the audit. Answers whether that changed anything.
    /// [`Token`](crate::error::StoreError::Token) when there is no such token.
    async fn revoke_token(&self, prefix: &str, who: &str) -> StoreResult<bool>;

    /// Remembers that a token was used, to the minute: within one nothing is written.
    async fn touch_token(&self, prefix: &str) -> StoreResult<()>;
}

/// Sessions at the console, for all servers on the store.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Begins a session, and forgets those that are as old as they may get.
    async fn begin_session(&self, session: &NewSession, times: &SessionTimes) -> StoreResult<()>;

    /// The session with this id, unless it is over. `used`: whether somebody uses it, which counts to the minute or to a quarter of
    /// the time that it may be idle, or only a page that was left open.
    async fn session(
        &self,
        id: &Digest,
        times: &SessionTimes,
        used: bool,
    ) -> StoreResult<Option<FoundSession>>;

    /// Changes the id of a session; for [a moment](crate::session::FORMER_ID) the old one counts too. Answers false when somebody else has
    /// changed it, or it is over.
    async fn rotate_session(&self, id: &Digest, to: &Digest) -> StoreResult<bool>;

    /// Ends a session.
    async fn end_session(&self, id: &Digest) -> StoreResult<()>;
}

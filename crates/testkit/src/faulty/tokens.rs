//! Token and session operations of the faulty store, which have no faults except delays.

use async_trait::async_trait;
use milepost_core::port::{SessionStore, StoreResult, TokenStore};
use milepost_core::session::{
    FoundSession, NewSession, NewSignIn, ReturnedSignIn, SessionTimes, SignInLimits,
};
use milepost_core::token::{Digest, FoundToken, NewToken, TokenView};

use super::{Faulty, lost, suffers};

impl Faulty {
    /// Holds back, or releases, answers to queries whether there are tokens.
    pub fn hold_access(&self, hold: bool) {
        self.access_held.send_replace(hold);
    }
}

#[async_trait]
impl TokenStore for Faulty {
    async fn create_token(&self, token: &NewToken) -> StoreResult<TokenView> {
        self.pass("create_token", self.inner.create_token(token)).await
    }

    async fn token(&self, prefix: &str) -> StoreResult<Option<FoundToken>> {
        self.pass("token", self.inner.token(prefix)).await
    }

    async fn tokens(&self) -> StoreResult<Vec<FoundToken>> {
        self.pass("tokens", self.inner.tokens()).await
    }

    async fn has_tokens(&self) -> StoreResult<bool> {
        self.access_held.subscribe().wait_for(|held| !held).await.expect("the sender was dropped");
        if suffers(&self.access_lost) {
            return lost();
        }
        self.pass("has_tokens", self.inner.has_tokens()).await
    }

    async fn revoke_token(&self, prefix: &str, who: &str) -> StoreResult<bool> {
        self.pass("revoke_token", self.inner.revoke_token(prefix, who)).await
    }

    async fn touch_token(&self, prefix: &str) -> StoreResult<()> {
        self.pass("touch_token", self.inner.touch_token(prefix)).await
    }
}

#[async_trait]
impl SessionStore for Faulty {
    async fn begin_session(&self, session: &NewSession, times: &SessionTimes) -> StoreResult<()> {
        self.pass("begin_session", self.inner.begin_session(session, times)).await
    }

    async fn session(
        &self,
        id: &Digest,
        times: &SessionTimes,
        used: bool,
    ) -> StoreResult<Option<FoundSession>> {
        self.pass("session", self.inner.session(id, times, used)).await
    }

    async fn rotate_session(&self, id: &Digest, to: &Digest) -> StoreResult<bool> {
        self.pass("rotate_session", self.inner.rotate_session(id, to)).await
    }

    async fn end_session(&self, id: &Digest) -> StoreResult<()> {
        self.pass("end_session", self.inner.end_session(id)).await
    }

    async fn begin_sign_in(&self, sign_in: &NewSignIn, limits: &SignInLimits) -> StoreResult<()> {
        self.pass("begin_sign_in", self.inner.begin_sign_in(sign_in, limits)).await
    }

    async fn end_sign_in(
        &self,
        id: &Digest,
        state: &Digest,
        limits: &SignInLimits,
    ) -> StoreResult<Option<ReturnedSignIn>> {
        self.pass("end_sign_in", self.inner.end_sign_in(id, state, limits)).await
    }
}

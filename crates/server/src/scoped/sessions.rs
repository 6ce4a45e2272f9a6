//! Sessions of the console, which belong to the caller.

use async_trait::async_trait;
use milepost_core::port::{SessionStore, StoreResult};
use milepost_core::session::{
    FoundSession, NewSession, NewSignIn, ReturnedSignIn, SessionTimes, SignInLimits,
};
use milepost_core::token::Digest;

use super::ScopedStore;

#[async_trait]
impl SessionStore for ScopedStore {
    async fn begin_session(&self, session: &NewSession, times: &SessionTimes) -> StoreResult<()> {
        self.inner.begin_session(session, times).await
    }

    async fn session(
        &self,
        id: &Digest,
        times: &SessionTimes,
        used: bool,
    ) -> StoreResult<Option<FoundSession>> {
        self.inner.session(id, times, used).await
    }

    async fn rotate_session(&self, id: &Digest, to: &Digest) -> StoreResult<bool> {
        self.inner.rotate_session(id, to).await
    }

    async fn end_session(&self, id: &Digest) -> StoreResult<()> {
        self.inner.end_session(id).await
    }

    async fn begin_sign_in(&self, sign_in: &NewSignIn, limits: &SignInLimits) -> StoreResult<()> {
        self.inner.begin_sign_in(sign_in, limits).await
    }

    async fn end_sign_in(
        &self,
        id: &Digest,
        state: &Digest,
        limits: &SignInLimits,
    ) -> StoreResult<Option<ReturnedSignIn>> {
        self.inner.end_sign_in(id, state, limits).await
    }
}

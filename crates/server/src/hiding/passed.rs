//! What contains no hidden data: alerts, tokens, sessions, the doctor, state changes and numbers.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::alert::{
    ActiveAlert, AlertKey, AlertTarget, Incident, IncidentFilter, IncidentTimes, NoticeClaim, NoticeOutcome,
    NoticeRules, NoticeTimes, SilenceUntil,
};
use milepost_core::doctor::{Check, Finding, Look};
use milepost_core::feed::{Activity, FeedPage, FeedPosition};
use milepost_core::port::{
    AbandonedRun, AlertStore, DoctorStore, FeedStore, RollupStore, SessionStore, StoreResult, TokenStore,
};
use milepost_core::rollup::{RollupFilter, Rollups};
use milepost_core::session::{
    FoundSession, NewSession, NewSignIn, ReturnedSignIn, SessionTimes, SignInLimits,
};
use milepost_core::token::{Digest, FoundToken, NewToken, TokenView};

use super::HidingStore;

#[async_trait]
impl TokenStore for HidingStore {
    async fn create_token(&self, token: &NewToken) -> StoreResult<TokenView> {
        self.inner.create_token(token).await
    }

    async fn token(&self, prefix: &str) -> StoreResult<Option<FoundToken>> {
        self.inner.token(prefix).await
    }

    async fn tokens(&self) -> StoreResult<Vec<FoundToken>> {
        self.inner.tokens().await
    }

    async fn has_tokens(&self) -> StoreResult<bool> {
        self.inner.has_tokens().await
    }

    async fn revoke_token(&self, prefix: &str, who: &str) -> StoreResult<bool> {
        self.inner.revoke_token(prefix, who).await
    }

    async fn touch_token(&self, prefix: &str) -> StoreResult<()> {
        self.inner.touch_token(prefix).await
    }
}

#[async_trait]
impl SessionStore for HidingStore {
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

#[async_trait]
impl DoctorStore for HidingStore {
    fn checks(&self) -> Vec<Check> {
        self.inner.checks()
    }

    async fn examine(&self, check: Check, look: &Look) -> StoreResult<Option<Finding>> {
        self.inner.examine(check, look).await
    }

    async fn repair_rows(&self, check: Check, limit: u32) -> StoreResult<u64> {
        self.inner.repair_rows(check, limit).await
    }

    async fn abandoned_runs(&self, look: &Look, limit: u32) -> StoreResult<Vec<AbandonedRun>> {
        self.inner.abandoned_runs(look, limit).await
    }

    async fn note_repair(&self, check: Check, mended: u64) -> StoreResult<()> {
        self.inner.note_repair(check, mended).await
    }
}

#[async_trait]
impl FeedStore for HidingStore {
    async fn feed_end(&self) -> StoreResult<FeedPosition> {
        self.inner.feed_end().await
    }

    async fn feed(
        &self,
        after: &FeedPosition,
        upto: Option<&FeedPosition>,
        limit: u32,
    ) -> StoreResult<FeedPage> {
        self.inner.feed(after, upto, limit).await
    }

    async fn activity(&self, after: &FeedPosition, lengths: u32) -> StoreResult<Activity> {
        self.inner.activity(after, lengths).await
    }
}

#[async_trait]
impl RollupStore for HidingStore {
    async fn roll_up(&self, every: Duration) -> StoreResult<bool> {
        self.inner.roll_up(every).await
    }

    async fn rollups(&self, filter: &RollupFilter) -> StoreResult<Rollups> {
        self.inner.rollups(filter).await
    }
}

#[async_trait]
impl AlertStore for HidingStore {
    async fn observe_alerts(&self, alerts: &[ActiveAlert], times: &IncidentTimes) -> StoreResult<()> {
        self.inner.observe_alerts(alerts, times).await
    }

    async fn claim_notices(
        &self,
        rules: &NoticeRules,
        times: &NoticeTimes,
    ) -> StoreResult<Option<NoticeClaim>> {
        self.inner.claim_notices(rules, times).await
    }

    async fn end_notices(&self, claim: &NoticeClaim, outcome: &NoticeOutcome) -> StoreResult<bool> {
        self.inner.end_notices(claim, outcome).await
    }

    async fn incidents(&self, filter: &IncidentFilter) -> StoreResult<Vec<Incident>> {
        self.inner.incidents(filter).await
    }

    async fn alert_targets(&self) -> StoreResult<Vec<AlertTarget>> {
        self.inner.alert_targets().await
    }

    async fn silence_alert(&self, key: &AlertKey, until: SilenceUntil) -> StoreResult<bool> {
        self.inner.silence_alert(key, until).await
    }

    async fn unsilence_alert(&self, key: &AlertKey) -> StoreResult<bool> {
        self.inner.unsilence_alert(key).await
    }
}

//! Operations on alerts of the faulty store, which are passed through unchanged.

use super::Faulty;
use async_trait::async_trait;
use milepost_core::alert::{
    ActiveAlert, AlertKey, AlertTarget, Incident, IncidentFilter, IncidentTimes, NoticeClaim, NoticeOutcome,
    NoticeRules, NoticeTimes, SilenceUntil,
};
use milepost_core::port::{AlertStore, StoreResult};

#[async_trait]
impl AlertStore for Faulty {
    async fn observe_alerts(&self, alerts: &[ActiveAlert], times: &IncidentTimes) -> StoreResult<()> {
        self.pass("observe_alerts", self.inner.observe_alerts(alerts, times)).await
    }

    async fn claim_notices(
        &self,
        rules: &NoticeRules,
        times: &NoticeTimes,
    ) -> StoreResult<Option<NoticeClaim>> {
        self.pass("claim_notices", self.inner.claim_notices(rules, times)).await
    }

    async fn end_notices(&self, claim: &NoticeClaim, outcome: &NoticeOutcome) -> StoreResult<bool> {
        self.pass("end_notices", self.inner.end_notices(claim, outcome)).await
    }

    async fn incidents(&self, filter: &IncidentFilter) -> StoreResult<Vec<Incident>> {
        self.pass("incidents", self.inner.incidents(filter)).await
    }

    async fn alert_targets(&self) -> StoreResult<Vec<AlertTarget>> {
        self.pass("alert_targets", self.inner.alert_targets()).await
    }

    async fn silence_alert(&self, key: &AlertKey, until: SilenceUntil) -> StoreResult<bool> {
        self.pass("silence_alert", self.inner.silence_alert(key, until)).await
    }

    async fn unsilence_alert(&self, key: &AlertKey) -> StoreResult<bool> {
        self.pass("unsilence_alert", self.inner.unsilence_alert(key)).await
    }
}

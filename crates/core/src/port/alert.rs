//! Store port for alerts: incidents, notices to targets, and silences.

use async_trait::async_trait;

use super::StoreResult;
use crate::alert::{
    ActiveAlert, AlertKey, AlertTarget, Incident, IncidentFilter, IncidentTimes, NoticeClaim, NoticeOutcome,
    NoticeRules, NoticeTimes, SilenceUntil,
};

/// Incidents of alerts, shared by all servers of the store. Times are those of the store's clock.
#[async_trait]
pub trait AlertStore: Send + Sync {
    /// Records the alerts that a server observes now: begins, renews and ends incidents, and deletes old ones and expired silences.
    async fn observe_alerts(&self, alerts: &[ActiveAlert], times: &IncidentTimes) -> StoreResult<()>;

    /// Claims the message that a target must be sent now. `None`: nothing is due, another server is sending to the target, or it rests after the
    /// last message. A claim without an outcome ends after the lease, and its notices are claimed again.
    async fn claim_notices(
        &self,
        rules: &NoticeRules,
        times: &NoticeTimes,
    ) -> StoreResult<Option<NoticeClaim>>;

    /// Stores the outcome of a claimed message. Returns false, and changes nothing, if the claim has been replaced.
    async fn end_notices(&self, claim: &NoticeClaim, outcome: &NoticeOutcome) -> StoreResult<bool>;

    /// Lists incidents: open ones first, then the newest. Incidents of rules that only a newer version has are left out.
    async fn incidents(&self, filter: &IncidentFilter) -> StoreResult<Vec<Incident>>;

    /// Lists the targets, by name.
    async fn alert_targets(&self) -> StoreResult<Vec<AlertTarget>>;

    /// Silences an alert. Returns false, and changes nothing, if it has no open incident.
    async fn silence_alert(&self, key: &AlertKey, until: SilenceUntil) -> StoreResult<bool>;

    /// Ends the silence of an alert. Returns whether there was one.
    async fn unsilence_alert(&self, key: &AlertKey) -> StoreResult<bool>;
}

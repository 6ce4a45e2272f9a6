//! Incidents of alerts, notices to targets, and silences.

use async_trait::async_trait;
use jiff::Timestamp;
use milepost_core::alert::{
    ActiveAlert, AlertKey, AlertTarget, CANDIDATES_MAX, Candidate, ENDED_FOR, Incident, IncidentFilter,
    IncidentTimes, NoticeClaim, NoticeOutcome, NoticeRules, NoticeTimes, PRUNED_MAX, Silence, SilenceUntil,
};
use milepost_core::audit::{Actor, AuditedAction};
use milepost_core::duration::whole_ms;
use milepost_core::ident::{IncidentId, JobId};
use milepost_core::port::{AlertStore, StoreResult};
use milepost_core::sql;
use rusqlite::{Connection, Row};

use crate::clock::{later_ms, now_ms};
use crate::command::Hint;
use crate::row;
use crate::store::SqliteStore;

type Sql<T> = rusqlite::Result<T>;

#[async_trait]
impl AlertStore for SqliteStore {
    async fn observe_alerts(&self, alerts: &[ActiveAlert], times: &IncidentTimes) -> StoreResult<()> {
        let (alerts, times) = (alerts.to_vec(), *times);
        let observe = move |tx: &rusqlite::Transaction<'_>| Ok(observe(tx, &alerts, &times)?);
        self.write("observe_alerts", Hint::NONE, observe).await
    }

    async fn claim_notices(
        &self,
        rules: &NoticeRules,
        times: &NoticeTimes,
    ) -> StoreResult<Option<NoticeClaim>> {
        let (rules, times) = (rules.clone(), *times);
        self.write("claim_notices", Hint::NONE, move |tx| Ok(claim(tx, &rules, &times)?)).await
    }

    async fn end_notices(&self, claim: &NoticeClaim, outcome: &NoticeOutcome) -> StoreResult<bool> {
        let (claim, outcome) = (claim.clone(), outcome.clone());
        self.write("end_notices", Hint::NONE, move |tx| Ok(end(tx, &claim, &outcome)?)).await
    }

    async fn incidents(&self, filter: &IncidentFilter) -> StoreResult<Vec<Incident>> {
        let filter = *filter;
        self.read("incidents", move |conn| {
            let mut statement = conn.prepare_cached(sql!("alert/incidents"))?;
            let rows = statement.query_map((filter.ended, filter.limit, now_ms()), incident)?;
            Ok(row::readable("incidents", rows)?.into_iter().flatten().collect())
        })
        .await
    }

    async fn alert_targets(&self) -> StoreResult<Vec<AlertTarget>> {
        self.read("alert_targets", |conn| {
            let mut statement = conn.prepare_cached(sql!("alert/targets"))?;
            Ok(row::readable("alert_targets", statement.query_map((), target)?)?)
        })
        .await
    }

    async fn silence_alert(&self, key: &AlertKey, until: SilenceUntil) -> StoreResult<bool> {
        let actor = self.actor().map_or_else(Actor::nobody, |actor| actor.as_ref().clone());
        let (action, key) = (AuditedAction::silence_alert(key), key.clone());
        let silence = move |tx: &rusqlite::Transaction<'_>| {
            let now_ms = now_ms();
            let until_ms = until.duration().map(|time| later_ms(now_ms, time));
            let row = (key.rule.as_str(), &key.subject, actor.who(), actor.why(), now_ms, until_ms);
            Ok(tx.prepare_cached(sql!("alert/silence"))?.execute(row)? == 1)
        };
        self.act("silence_alert", Hint::NONE, action, silence).await
    }

    async fn unsilence_alert(&self, key: &AlertKey) -> StoreResult<bool> {
        let (action, key) = (AuditedAction::unsilence_alert(key), key.clone());
        let unsilence = move |tx: &rusqlite::Transaction<'_>| {
            let row = (key.rule.as_str(), &key.subject);
            Ok(tx.prepare_cached(sql!("alert/unsilence"))?.execute(row)? == 1)
        };
        self.act("unsilence_alert", Hint::NONE, action, unsilence).await
    }
}

fn observe(conn: &Connection, alerts: &[ActiveAlert], times: &IncidentTimes) -> Sql<()> {
    let now_ms = now_ms();
    let mut observe = conn.prepare_cached(sql!("alert/observe"))?;
    for alert in alerts {
        let (rule, severity) = (alert.key.rule.as_str(), alert.severity.as_str());
        let texts = (&alert.title, &alert.words, &alert.command);
        let id = IncidentId::new().0;
        observe.execute((
            id.as_bytes(),
            rule,
            &alert.key.subject,
            severity,
            texts.0,
            texts.1,
            texts.2,
            now_ms,
        ))?;
    }
    let unseen_since_ms = now_ms.saturating_sub(whole_ms(times.clear_after));
    conn.prepare_cached(sql!("alert/end_incidents"))?.execute((now_ms, unseen_since_ms))?;
    conn.prepare_cached(sql!("alert/end_silences"))?.execute([now_ms])?;
    let before_ms = now_ms.saturating_sub(whole_ms(times.keep));
    conn.prepare_cached(sql!("alert/prune_notices"))?.execute((before_ms, PRUNED_MAX))?;
    conn.prepare_cached(sql!("alert/prune_incidents"))?.execute((before_ms, PRUNED_MAX))?;
    conn.prepare_cached(sql!("alert/prune_targets"))?.execute([before_ms]).map(drop)
}

fn claim(conn: &Connection, rules: &NoticeRules, times: &NoticeTimes) -> Sql<Option<NoticeClaim>> {
    let (name, now_ms) = (&rules.target, now_ms());
    let mut see = conn.prepare_cached(sql!("alert/see_target"))?;
    let (failures, free): (u32, bool) = see
        .query_row((name, now_ms, now_ms.saturating_sub(whole_ms(times.pause))), |row| {
            Ok((row::attempts(row, 0)?, row.get(1)?))
        })?;
    if !free {
        return Ok(None);
    }
    let ended_since_ms = now_ms.saturating_sub(whole_ms(ENDED_FOR));
    let mut candidates = conn.prepare_cached(sql!("alert/candidates"))?;
    let candidates = candidates.query_map((name, ended_since_ms, CANDIDATES_MAX, now_ms), candidate)?;
    let candidates = row::readable("candidates", candidates)?.into_iter().flatten().collect();
    let now = Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::MAX);
    let notices = rules.due(candidates, now);
    if notices.is_empty() {
        return Ok(None);
    }
    let mut claim = conn.prepare_cached(sql!("alert/claim"))?;
    let number = claim.query_row((name, later_ms(now_ms, times.lease)), |row| row.get(0))?;
    Ok(Some(NoticeClaim { target: name.clone(), number, failures, notices }))
}

fn end(conn: &Connection, claim: &NoticeClaim, outcome: &NoticeOutcome) -> Sql<bool> {
    let (name, number, now_ms) = (&claim.target, claim.number, now_ms());
    if let NoticeOutcome::Failed { why, wait } = outcome {
        let failed = (name, number, now_ms, later_ms(now_ms, *wait), why);
        return Ok(conn.prepare_cached(sql!("alert/failed"))?.execute(failed)? == 1);
    }
    let delivered = (name, number, now_ms);
    if conn.prepare_cached(sql!("alert/delivered"))?.execute(delivered)? == 0 {
        return Ok(false);
    }
    let mut tell = conn.prepare_cached(sql!("alert/tell"))?;
    for (stage, incident) in claim.notices.all() {
        tell.execute((incident.id.0.as_bytes(), name, stage.as_str(), now_ms))?;
    }
    Ok(true)
}

/// Decodes an incident; `None` if only a newer version has its rule.
fn incident(row: &Row<'_>) -> Sql<Option<Incident>> {
    let Ok(rule) = row.get_ref(1)?.as_str()?.parse() else { return Ok(None) };
    let silence = match row.get::<_, Option<String>>(10)? {
        Some(by) => Some(Silence {
            by,
            reason: row.get(11)?,
            at: row::time(row, 12)?,
            until: row::time_opt(row, 13)?,
        }),
        None => None,
    };
    let JobId(id) = row::job_id(row, 0)?;
    Ok(Some(Incident {
        id: IncidentId(id),
        rule,
        subject: row.get(2)?,
        severity: row::word(row, 3)?,
        title: row.get(4)?,
        words: row.get(5)?,
        command: row.get(6)?,
        first_seen_at: row::time(row, 7)?,
        last_seen_at: row::time(row, 8)?,
        ended_at: row::time_opt(row, 9)?,
        silence,
    }))
}

fn candidate(row: &Row<'_>) -> Sql<Option<Candidate>> {
    let Some(incident) = incident(row)? else { return Ok(None) };
    let (is_notified, last_begun_at) = (row.get(14)?, row::time_opt(row, 15)?);
    Ok(Some(Candidate { incident, is_notified, last_begun_at }))
}

fn target(row: &Row<'_>) -> Sql<AlertTarget> {
    Ok(AlertTarget {
        name: row.get(0)?,
        seen_at: row::time(row, 1)?,
        sent_at: row::time_opt(row, 2)?,
        failing_since: row::time_opt(row, 3)?,
        failures: row::attempts(row, 4)?,
        last_error: row.get(5)?,
        next_at: row::time_opt(row, 6)?,
    })
}

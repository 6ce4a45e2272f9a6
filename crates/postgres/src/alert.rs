//! Incidents of alerts, notices to targets, and silences.

use async_trait::async_trait;
use jiff::Timestamp;
use milepost_core::alert::{
    ActiveAlert, AlertKey, AlertTarget, CANDIDATES_MAX, Candidate, ENDED_FOR, Incident, IncidentFilter,
    IncidentTimes, NoticeClaim, NoticeOutcome, NoticeRules, NoticeTimes, PRUNED_MAX, Silence, SilenceUntil,
};
use milepost_core::audit::{Actor, AuditedAction};
use milepost_core::duration::whole_ms;
use milepost_core::ident::IncidentId;
use milepost_core::port::{AlertStore, StoreResult};
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::row::{self, Decoded, count, named, time};
use crate::session::{Query, Repeatable, Session};
use crate::store::PostgresStore;

#[async_trait]
impl AlertStore for PostgresStore {
    async fn observe_alerts(&self, alerts: &[ActiveAlert], times: &IncidentTimes) -> StoreResult<()> {
        let observed = self.inner.calm.atomically(async |tx| {
            tx.execute(observe(alerts)).await?;
            tx.execute(sqlx::query(sql!("alert/end_incidents")).bind(whole_ms(times.clear_after))).await?;
            tx.execute(sqlx::query(sql!("alert/end_silences"))).await?;
            let prune = sqlx::query(sql!("alert/prune")).bind(whole_ms(times.keep)).bind(PRUNED_MAX);
            tx.execute(prune).await.map(drop)
        });
        observed.await.map_err(|e| self.fail("observe_alerts", e))
    }

    async fn claim_notices(
        &self,
        rules: &NoticeRules,
        times: &NoticeTimes,
    ) -> StoreResult<Option<NoticeClaim>> {
        let claimed = self.inner.calm.atomically(async |tx| claim(tx, rules, times).await);
        claimed.await.map_err(|e| self.fail("claim_notices", e))
    }

    async fn end_notices(&self, claim: &NoticeClaim, outcome: &NoticeOutcome) -> StoreResult<bool> {
        let ended = self.inner.calm.atomically(async |tx| end(tx, claim, outcome).await);
        ended.await.map_err(|e| self.fail("end_notices", e))
    }

    async fn incidents(&self, filter: &IncidentFilter) -> StoreResult<Vec<Incident>> {
        let query = sqlx::query(sql!("alert/incidents")).bind(filter.ended).bind(i64::from(filter.limit));
        let incidents = self.listed("incidents", self.inner.calm.rows(query).await, incident)?;
        Ok(incidents.into_iter().flatten().collect())
    }

    async fn alert_targets(&self) -> StoreResult<Vec<AlertTarget>> {
        self.listed("alert_targets", self.inner.calm.rows(sqlx::query(sql!("alert/targets"))).await, target)
    }

    async fn silence_alert(&self, key: &AlertKey, until: SilenceUntil) -> StoreResult<bool> {
        let query = sqlx::query(sql!("alert/silence"))
            .bind(key.rule.as_str())
            .bind(key.subject.clone())
            .bind(
                self.actor
                    .as_ref()
                    .map_or_else(|| Actor::nobody().who().to_owned(), |it| it.who().to_owned()),
            )
            .bind(self.actor.as_ref().and_then(|actor| actor.why().map(str::to_owned)))
            .bind(until.duration().map(whole_ms));
        let (query, action) = (Repeatable::of(query), AuditedAction::silence_alert(key));
        let silenced = self.act(&self.inner.hot, &action, async |session| session.row(query).await).await;
        silenced.map(|row| row.is_some()).map_err(|e| self.fail("silence_alert", e))
    }

    async fn unsilence_alert(&self, key: &AlertKey) -> StoreResult<bool> {
        let query = sqlx::query(sql!("alert/unsilence")).bind(key.rule.as_str()).bind(key.subject.clone());
        let (query, action) = (Repeatable::of(query), AuditedAction::unsilence_alert(key));
        let ended = self.act(&self.inner.hot, &action, async |session| session.row(query).await).await;
        ended.map(|row| row.is_some()).map_err(|e| self.fail("unsilence_alert", e))
    }
}

fn observe(alerts: &[ActiveAlert]) -> Query {
    let texts = |text: fn(&ActiveAlert) -> &str| -> Vec<String> {
        alerts.iter().map(|alert| text(alert).to_owned()).collect()
    };
    let ids: Vec<uuid::Uuid> = alerts.iter().map(|_| IncidentId::new().0).collect();
    sqlx::query(sql!("alert/observe"))
        .bind(ids)
        .bind(texts(|alert| alert.key.rule.as_str()))
        .bind(texts(|alert| &alert.key.subject))
        .bind(texts(|alert| alert.severity.as_str()))
        .bind(texts(|alert| &alert.title))
        .bind(texts(|alert| &alert.words))
        .bind(texts(|alert| &alert.command))
}

/// Claims what is due while the row of the target is locked, so that two servers do not claim the same.
async fn claim(
    tx: &mut Session<'_>,
    rules: &NoticeRules,
    times: &NoticeTimes,
) -> Decoded<Option<NoticeClaim>> {
    let name = &rules.target;
    let locked =
        tx.row(sqlx::query(sql!("alert/lock_target")).bind(name.clone()).bind(whole_ms(times.pause))).await?;
    let locked = locked.ok_or(sqlx::Error::RowNotFound)?;
    if !locked.try_get::<bool, _>("free")? {
        return Ok(None);
    }
    let candidates = sqlx::query(sql!("alert/candidates"))
        .bind(name.clone())
        .bind(whole_ms(ENDED_FOR))
        .bind(i64::from(CANDIDATES_MAX));
    let candidates = row::readable("candidates", &tx.rows(candidates).await?, candidate);
    let notices = rules.due(candidates.into_iter().flatten().collect(), when(&locked, "at")?);
    if notices.is_empty() {
        return Ok(None);
    }
    let claim = sqlx::query(sql!("alert/claim")).bind(name.clone()).bind(whole_ms(times.lease));
    let number = row::value(tx.row(claim).await?)?;
    Ok(Some(NoticeClaim { target: name.clone(), number, failures: count(&locked, "failures")?, notices }))
}

async fn end(tx: &mut Session<'_>, claim: &NoticeClaim, outcome: &NoticeOutcome) -> Decoded<bool> {
    let of_claim = |sql: &'static str| sqlx::query(sql).bind(claim.target.clone()).bind(claim.number);
    match outcome {
        NoticeOutcome::Failed { why, wait } => {
            let failed = of_claim(sql!("alert/failed")).bind(whole_ms(*wait)).bind(why.clone());
            Ok(tx.execute(failed).await? == 1)
        }
        NoticeOutcome::Delivered => {
            if tx.execute(of_claim(sql!("alert/delivered"))).await? == 0 {
                return Ok(false);
            }
            let told = claim.notices.all().map(|(stage, its)| (its.id.0, stage.as_str().to_owned()));
            let (ids, stages): (Vec<uuid::Uuid>, Vec<String>) = told.unzip();
            tx.execute(sqlx::query(sql!("alert/tell")).bind(claim.target.clone()).bind(ids).bind(stages))
                .await?;
            Ok(true)
        }
    }
}

/// Decodes an incident; `None` if only a newer version has its rule.
fn incident(row: &PgRow) -> Decoded<Option<Incident>> {
    let Ok(rule) = row.try_get::<&str, _>("rule")?.parse() else { return Ok(None) };
    let silence = match row.try_get::<Option<String>, _>("who")? {
        Some(by) => Some(Silence {
            by,
            reason: row.try_get("why")?,
            at: when(row, "made_at")?,
            until: time(row, "until_at")?,
        }),
        None => None,
    };
    Ok(Some(Incident {
        id: IncidentId(row.try_get("id")?),
        rule,
        subject: row.try_get("subject")?,
        severity: named(row, "severity")?,
        title: row.try_get("title")?,
        words: row.try_get("words")?,
        command: row.try_get("command")?,
        first_seen_at: when(row, "first_seen_at")?,
        last_seen_at: when(row, "last_seen_at")?,
        ended_at: time(row, "ended_at")?,
        silence,
    }))
}

fn candidate(row: &PgRow) -> Decoded<Option<Candidate>> {
    let Some(incident) = incident(row)? else { return Ok(None) };
    let (is_notified, last_begun_at) = (row.try_get("is_notified")?, time(row, "last_begun_at")?);
    Ok(Some(Candidate { incident, is_notified, last_begun_at }))
}

fn target(row: &PgRow) -> Decoded<AlertTarget> {
    Ok(AlertTarget {
        name: row.try_get("name")?,
        seen_at: when(row, "seen_at")?,
        sent_at: time(row, "sent_at")?,
        failing_since: time(row, "failing_since")?,
        failures: count(row, "failures")?,
        last_error: row.try_get("last_error")?,
        next_at: time(row, "next_at")?,
    })
}

fn when(row: &PgRow, column: &str) -> Decoded<Timestamp> {
    Ok(row.try_get::<jiff_sqlx::Timestamp, _>(column)?.to_jiff())
}

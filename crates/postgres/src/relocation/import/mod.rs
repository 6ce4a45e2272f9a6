//! Insertion of another store's rows, with each column as an array.

mod batch;
mod bulk;
mod event;
mod inbox;
mod relay;

use jiff::Timestamp as Time;
use jiff_sqlx::Timestamp;
use milepost_core::history::HistoryEntry;
use milepost_core::relocation::Rows;
use milepost_core::relocation::rows::{
    AccessToken, Ended, GroupBucket, GroupLimit, Job, Key, KindLimit, Live, Note, Progress, Queue,
    RetentionSetting, Schedule, Slot, Worker,
};
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::text::without_nul;
use milepost_core::transition::Verb;

use crate::session::Query;

/// Returns the statement that inserts the rows.
pub(super) fn import(rows: &Rows) -> Query {
    match rows {
        Rows::Workers(rows) => workers(rows),
        Rows::Queues(rows) => queues(rows),
        Rows::KindLimits(rows) => kind_limits(rows),
        Rows::GroupLimits(rows) => group_limits(rows),
        Rows::GroupBuckets(rows) => group_buckets(rows),
        Rows::RetentionSettings(rows) => retention_settings(rows),
        Rows::Schedules(rows) => schedules(rows),
        Rows::BulkDefinitions(rows) => bulk::definitions(rows),
        Rows::DagVersions(rows) => batch::versions(rows),
        Rows::Dags(rows) => batch::dags(rows),
        Rows::DagTasks(rows) => batch::dag_tasks(rows),
        Rows::Audit(rows) => audit(rows),
        Rows::AccessTokens(rows) => access_tokens(rows),
        Rows::Jobs(rows) => jobs(rows),
        Rows::Keys(rows) => keys(rows),
        Rows::Progress(rows) => progress(rows),
        Rows::Bulks(rows) => bulk::bulks(rows),
        Rows::BulkSettings(rows) => bulk::settings(rows),
        Rows::BulkFailures(rows) => bulk::failures(rows),
        Rows::BulkFiles(rows) => bulk::files(rows),
        Rows::BulkTargets(rows) => bulk::targets(rows),
        Rows::Batches(rows) => batch::batches(rows),
        Rows::BatchInputs(rows) => batch::inputs(rows),
        Rows::BatchTasks(rows) => batch::tasks(rows),
        Rows::BatchSpreads(rows) => batch::spreads(rows),
        Rows::BatchWaits(rows) => batch::waits(rows),
        Rows::BatchSignals(rows) => batch::signals(rows),
        Rows::BatchHistory(rows) => batch::notes(rows),
        Rows::Aggregates(rows) => event::heads(rows),
        Rows::Events(rows) => event::events(rows),
        Rows::Consumers(rows) => inbox::consumers(rows),
        Rows::ProcessedEvents(rows) => inbox::processed_events(rows),
        Rows::Checkpoints(rows) => inbox::checkpoints(rows),
        Rows::ParkedEvents(rows) => inbox::parked_events(rows),
        Rows::InboxLetters(rows) => inbox::letters(rows),
        Rows::InboxTallies(rows) => inbox::tallies(rows),
        Rows::Subscriptions(rows) => relay::subscriptions(rows),
        Rows::ParkedAggregates(rows) => relay::parked_aggregates(rows),
        Rows::HeldEvents(rows) => relay::held_events(rows),
        Rows::DeadEvents(rows) => relay::dead_events(rows),
        Rows::EventWorks(rows) => relay::event_works(rows),
        Rows::ChangeSources(rows) => relay::change_sources(rows),
        Rows::History(rows) => history(rows),
        Rows::Slots(rows) => slots(rows),
        Rows::Ended(rows) => ended(rows),
        Rows::Live(rows) => live(rows),
    }
}

/// Collects one column of the rows.
fn each<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

fn time(at: Time) -> Timestamp {
    Timestamp::from(at)
}

/// Returns a list of names as JSON.
fn names(names: &[String]) -> String {
    serde_json::Value::from(names).to_string()
}

/// Replaces NUL characters, which PostgreSQL's text cannot contain.
fn text(text: &Option<String>) -> Option<String> {
    text.as_deref().map(without_nul)
}

fn workers(rows: &[Worker]) -> Query {
    sqlx::query(sql!("move/worker"))
        .bind(each(rows, |r| r.id.0))
        .bind(each(rows, |r| without_nul(&r.name)))
        .bind(each(rows, |r| names(&r.queues)))
        .bind(each(rows, |r| names(&r.kinds)))
        .bind(each(rows, |r| r.lease_ms))
        .bind(each(rows, |r| time(r.started_at)))
        .bind(each(rows, |r| time(r.heartbeat_at)))
        .bind(each(rows, |r| time(r.lease_expires_at)))
        .bind(each(rows, |r| r.ended_at.map(time)))
        .bind(each(rows, |r| r.died))
        .bind(each(rows, |r| r.holds))
}

fn queues(rows: &[Queue]) -> Query {
    sqlx::query(sql!("move/queue"))
        .bind(each(rows, |r| r.name.as_str()))
        .bind(each(rows, |r| r.paused_at.map(time)))
}

fn kind_limits(rows: &[KindLimit]) -> Query {
    sqlx::query(sql!("move/kind_limit"))
        .bind(each(rows, |r| r.kind.as_str()))
        .bind(each(rows, |r| r.rate.per_second))
        .bind(each(rows, |r| r.rate.burst.cast_signed()))
        .bind(each(rows, |r| r.rate.portion().cast_signed()))
        .bind(each(rows, |r| time(r.full_at)))
        .bind(each(rows, |r| r.source.as_str()))
}

fn retention_settings(rows: &[RetentionSetting]) -> Query {
    sqlx::query(sql!("move/retention_setting"))
        .bind(each(rows, |r| r.name.as_str()))
        .bind(each(rows, |r| r.keep_ms))
}

fn group_limits(rows: &[GroupLimit]) -> Query {
    sqlx::query(sql!("move/group_limit"))
        .bind(each(rows, |r| r.name.as_str()))
        .bind(each(rows, |r| r.slots.map(u32::cast_signed)))
        .bind(each(rows, |r| r.rate.map(|rate| rate.per_second)))
        .bind(each(rows, |r| r.rate.map(|rate| rate.burst.cast_signed())))
        .bind(each(rows, |r| r.rate.map(|rate| rate.portion().cast_signed())))
        .bind(each(rows, |r| r.source.as_str()))
}

fn group_buckets(rows: &[GroupBucket]) -> Query {
    sqlx::query(sql!("move/group_bucket"))
        .bind(each(rows, |r| r.group.as_str()))
        .bind(each(rows, |r| time(r.full_at)))
        .bind(each(rows, |r| r.look_at.map(time)))
        .bind(each(rows, |r| r.reserved.cast_signed()))
}

fn schedules(rows: &[Schedule]) -> Query {
    sqlx::query(sql!("move/schedule"))
        .bind(each(rows, |r| r.name.as_str()))
        .bind(each(rows, |r| r.spec.as_str()))
        .bind(each(rows, |r| r.time_zone.as_str()))
        .bind(each(rows, |r| r.kind.as_str()))
        .bind(each(rows, |r| r.queue.as_str()))
        .bind(each(rows, |r| r.payload.as_str()))
        .bind(each(rows, |r| i16::from(r.priority)))
        .bind(each(rows, |r| r.max_attempts.cast_signed()))
        .bind(each(rows, |r| r.group.as_deref()))
        .bind(each(rows, |r| r.timeout_ms))
        .bind(each(rows, |r| r.misfire.as_str()))
        .bind(each(rows, |r| r.misfire_max.map(u32::cast_signed)))
        .bind(each(rows, |r| r.misfire_grace_ms))
        .bind(each(rows, |r| r.source.as_str()))
        .bind(each(rows, |r| r.version))
        .bind(each(rows, |r| r.paused_at.map(time)))
        .bind(each(rows, |r| r.next_at.map(time)))
        .bind(each(rows, |r| r.last_at.map(time)))
        .bind(each(rows, |r| r.fired))
        .bind(each(rows, |r| r.dropped))
        .bind(each(rows, |r| r.dag.as_deref()))
        .bind(each(rows, |r| r.refused_at.map(time)))
        .bind(each(rows, |r| r.refusal.as_deref().map(without_nul)))
}

fn audit(rows: &[Note]) -> Query {
    sqlx::query(sql!("move/audit"))
        .bind(each(rows, |r| r.pos))
        .bind(each(rows, |r| time(r.at)))
        .bind(each(rows, |r| without_nul(&r.who)))
        .bind(each(rows, |r| without_nul(&r.what)))
        .bind(each(rows, |r| r.subject.as_deref().map(without_nul)))
        .bind(each(rows, |r| r.why.as_deref().map(without_nul)))
        .bind(each(rows, |r| r.detail.as_str()))
}

fn access_tokens(rows: &[AccessToken]) -> Query {
    sqlx::query(sql!("move/access_token"))
        .bind(each(rows, |r| r.view.prefix.as_str()))
        .bind(each(rows, |r| without_nul(&r.view.name)))
        .bind(each(rows, |r| r.hash.as_bytes().as_slice()))
        .bind(each(rows, |r| r.view.role.as_str()))
        .bind(each(rows, |r| time(r.view.created_at)))
        .bind(each(rows, |r| without_nul(&r.view.created_by)))
        .bind(each(rows, |r| time(r.view.starts_at)))
        .bind(each(rows, |r| r.view.expires_at.map(time)))
        .bind(each(rows, |r| r.view.revoked_at.map(time)))
        .bind(each(rows, |r| r.view.last_used_at.map(time)))
        .bind(each(rows, |r| r.view.scope.as_ref().map(|scope| serde_json::json!(scope).to_string())))
}

fn jobs(rows: &[Job]) -> Query {
    sqlx::query(sql!("move/job"))
        .bind(each(rows, |r| r.id.0))
        .bind(each(rows, |r| r.kind.as_str()))
        .bind(each(rows, |r| r.queue.as_str()))
        .bind(each(rows, |r| r.payload.as_str()))
        .bind(each(rows, |r| r.key.as_deref()))
        .bind(each(rows, |r| r.group.as_deref()))
        .bind(each(rows, |r| i16::from(r.priority)))
        .bind(each(rows, |r| r.max_attempts.cast_signed()))
        .bind(each(rows, |r| r.timeout_ms))
        .bind(each(rows, |r| time(r.created_at)))
        .bind(each(rows, |r| r.nominal_at.map(time)))
        .bind(each(rows, |r| r.batch.map(|batch| batch.0)))
        .bind(each(rows, |r| r.task.map(u32::cast_signed)))
        .bind(each(rows, |r| r.traceparent.map(|it| it.to_string())))
        .bind(each(rows, |r| r.key_released))
}

fn keys(rows: &[Key]) -> Query {
    sqlx::query(sql!("move/job_key"))
        .bind(each(rows, |r| r.key.as_str()))
        .bind(each(rows, |r| r.kind.as_str()))
        .bind(each(rows, |r| r.job.0))
        .bind(each(rows, |r| r.job_ended_at.map(time)))
}

fn progress(rows: &[Progress]) -> Query {
    sqlx::query(sql!("move/progress"))
        .bind(each(rows, |r| r.job.0))
        .bind(each(rows, |r| r.done))
        .bind(each(rows, |r| r.total))
        .bind(each(rows, |r| text(&r.message)))
        .bind(each(rows, |r| r.checkpoint.as_deref()))
        .bind(each(rows, |r| time(r.updated_at)))
}

fn history(rows: &[HistoryEntry]) -> Query {
    sqlx::query(sql!("move/history"))
        .bind(each(rows, |r| r.pos))
        .bind(each(rows, |r| r.job.0))
        .bind(each(rows, |r| time(r.at)))
        .bind(each(rows, |r| r.verb.as_str()))
        .bind(each(rows, |r| r.from.map(JobState::as_str)))
        .bind(each(rows, |r| r.to.as_str()))
        .bind(each(rows, |r| r.attempt.cast_signed()))
        .bind(each(rows, |r| r.token.0))
        .bind(each(rows, |r| r.worker.map(|worker| worker.0)))
        .bind(each(rows, |r| r.ready_at.map(time)))
        .bind(each(rows, |r| text(&r.error_code)))
        .bind(each(rows, |r| text(&r.error_message)))
        .bind(each(rows, |r| text(&r.note)))
}

fn slots(rows: &[Slot]) -> Query {
    sqlx::query(sql!("move/group_slot"))
        .bind(each(rows, |r| r.group.as_str()))
        .bind(each(rows, |r| r.slot))
        .bind(each(rows, |r| r.job.0))
}

fn ended(rows: &[Ended]) -> Query {
    sqlx::query(sql!("move/ended"))
        .bind(each(rows, |r| r.id.0))
        .bind(each(rows, |r| r.state.as_str()))
        .bind(each(rows, |r| time(r.ended_at)))
        .bind(each(rows, |r| r.started_at.map(time)))
        .bind(each(rows, |r| r.token.0))
        .bind(each(rows, |r| r.attempt.cast_signed()))
        .bind(each(rows, |r| r.max_attempts.cast_signed()))
        .bind(each(rows, |r| r.result.as_deref()))
}

fn live(rows: &[Live]) -> Query {
    sqlx::query(sql!("move/live"))
        .bind(each(rows, |r| r.id.0))
        .bind(each(rows, |r| r.kind.as_str()))
        .bind(each(rows, |r| r.queue.as_str()))
        .bind(each(rows, |r| i16::from(r.priority)))
        .bind(each(rows, |r| r.state.as_str()))
        .bind(each(rows, |r| r.ready_at.map(time)))
        .bind(each(rows, |r| r.due_at.map(time)))
        .bind(each(rows, |r| r.started_at.map(time)))
        .bind(each(rows, |r| r.failed_at.map(time)))
        .bind(each(rows, |r| r.attempt.cast_signed()))
        .bind(each(rows, |r| r.max_attempts.cast_signed()))
        .bind(each(rows, |r| r.token.0))
        .bind(each(rows, |r| r.worker.map(|worker| worker.0)))
        .bind(each(rows, |r| r.claim_id))
        .bind(each(rows, |r| r.group.as_deref()))
        .bind(each(rows, |r| r.stop_verb.map(Verb::as_str)))
        .bind(each(rows, |r| r.stop_at.map(time)))
        .bind(each(rows, |r| text(&r.stop_note)))
        .bind(each(rows, |r| r.start_reserved.then_some(true)))
}

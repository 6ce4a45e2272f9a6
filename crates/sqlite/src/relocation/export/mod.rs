//! Export of a store that is being moved, page by page in key order.

mod batch;
mod bulk;
mod inbox;
mod job;
mod relay;

use milepost_core::error::StoreError;
use milepost_core::ident::{JobId, WorkerId};
use milepost_core::limit::Rate;
use milepost_core::port::StoreResult;
use milepost_core::relocation::rows::{
    AccessToken, GroupBucket, GroupLimit, KindLimit, Note, Queue, RetentionSetting, Row as Carried, Schedule,
    Worker,
};
use milepost_core::relocation::{
    Marks, MoveError, MoveId, PAGE_BYTES_MAX, Page, Part, Position, Rows, Standing,
};
use milepost_core::sql;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, Row, params_from_iter};
use uuid::Uuid;

use self::job::{ended, head, job, key, live, progress, slot};
use super::departure;
use crate::error::Failure;
use crate::event::read_event;
use crate::inbox::dead_letter;
use crate::store::SqliteStore;
use crate::{listing, row, token};

type Sql<T> = rusqlite::Result<T>;

/// The length to which text in an error message is cut off, in characters.
const TEXT_CHARS_MAX: usize = 100;

impl SqliteStore {
    /// Returns up to `rows_max` rows of a part after a position, fewer if the rows are large.
    ///
    /// # Errors
    /// [`NotUnderWay`](milepost_core::relocation::MoveError::NotUnderWay) if the store is not marked with this move, because then it may
    /// change.
    pub async fn page(&self, id: MoveId, part: Part, after: &Position, rows_max: u32) -> StoreResult<Page> {
        let after = after.clone();
        self.read("page", move |conn| {
            departure::check(conn, id)?;
            page(conn, part, after, rows_max)
        })
        .await
    }

    /// Returns the number of rows of each part.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn count_parts(&self) -> StoreResult<Vec<(Part, u64)>> {
        self.read("count_parts", count_parts).await
    }

    /// Returns the states of up to `limit` jobs after one: those of [`Part::Live`], or the final states of those of [`Part::Ended`].
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn standings(&self, part: Part, after: JobId, limit: u32) -> StoreResult<Vec<Standing>> {
        self.read("standings", move |conn| standings(conn, part, after, limit)).await
    }

    /// Returns the numbers that must not be assigned again.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn marks(&self) -> StoreResult<Marks> {
        self.read("marks", marks).await
    }
}

fn count_parts(conn: &Connection) -> Result<Vec<(Part, u64)>, Failure> {
    let mut statement = conn.prepare(sql!("move/counts"))?;
    let counts =
        statement.query_map((), |row| Ok((row::word(row, 0)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
    Ok(counts.collect::<Sql<_>>()?)
}

fn standings(conn: &Connection, part: Part, after: JobId, limit: u32) -> Result<Vec<Standing>, Failure> {
    let sql = if part == Part::Ended { sql!("move/standings_ended") } else { sql!("move/standings_live") };
    let mut statement = conn.prepare_cached(sql)?;
    let standings = statement.query_map((limit, row::Id(&after)), |row| {
        Ok((row::job_id(row, 0)?, row::word(row, 1)?, row::token(row, 2)?))
    })?;
    Ok(standings.collect::<Sql<_>>()?)
}

fn marks(conn: &Connection) -> Result<Marks, Failure> {
    let worker_last = conn.query_row(sql!("move/worker_last"), (), |row| row.get(0))?;
    Ok(Marks { worker_last })
}

fn page(conn: &Connection, part: Part, after: Position, rows_max: u32) -> Result<Page, Failure> {
    let look = RowRange { conn, part, after, rows_max };
    match part {
        Part::Workers => look.page(sql!("move/worker"), worker, Rows::Workers),
        Part::Queues => look.page(sql!("move/queue"), queue, Rows::Queues),
        Part::KindLimits => look.page(sql!("move/kind_limit"), kind_limit, Rows::KindLimits),
        Part::GroupLimits => look.page(sql!("move/group_limit"), group_limit, Rows::GroupLimits),
        Part::GroupBuckets => look.page(sql!("move/group_bucket"), group_bucket, Rows::GroupBuckets),
        Part::RetentionSettings => {
            look.page(sql!("move/retention_setting"), retention_setting, Rows::RetentionSettings)
        }
        Part::Schedules => look.page(sql!("move/schedule"), schedule, Rows::Schedules),
        Part::BulkDefinitions => {
            look.page(sql!("move/bulk_definition"), bulk::definition, Rows::BulkDefinitions)
        }
        Part::DagVersions => look.page(sql!("move/dag_version"), batch::version, Rows::DagVersions),
        Part::Dags => look.page(sql!("move/dag"), batch::dag, Rows::Dags),
        Part::DagTasks => look.page(sql!("move/dag_task"), batch::dag_task, Rows::DagTasks),
        Part::Audit => look.page(sql!("move/audit"), note, Rows::Audit),
        Part::AccessTokens => look.page(sql!("move/access_token"), access_token, Rows::AccessTokens),
        Part::Jobs => look.page(sql!("move/job"), job, Rows::Jobs),
        Part::Keys => look.page(sql!("move/job_key"), key, Rows::Keys),
        Part::Progress => look.page(sql!("move/progress"), progress, Rows::Progress),
        Part::Bulks => look.page(sql!("move/bulk"), bulk::bulk, Rows::Bulks),
        Part::BulkSettings => look.page(sql!("move/bulk_setting"), bulk::setting, Rows::BulkSettings),
        Part::BulkFailures => look.page(sql!("move/bulk_failure"), bulk::failure, Rows::BulkFailures),
        Part::BulkFiles => look.page(sql!("move/bulk_file"), bulk::file, Rows::BulkFiles),
        Part::BulkTargets => look.page(sql!("move/bulk_target"), bulk::target, Rows::BulkTargets),
        Part::Batches => look.page(sql!("move/batch"), batch::batch, Rows::Batches),
        Part::BatchInputs => look.page(sql!("move/batch_input"), batch::input, Rows::BatchInputs),
        Part::BatchTasks => look.page(sql!("move/batch_task"), batch::task, Rows::BatchTasks),
        Part::BatchSpreads => look.page(sql!("move/batch_spread"), batch::spread, Rows::BatchSpreads),
        Part::BatchWaits => look.page(sql!("move/batch_wait"), batch::wait, Rows::BatchWaits),
        Part::BatchSignals => look.page(sql!("move/batch_signal"), batch::signal, Rows::BatchSignals),
        Part::BatchHistory => look.page(sql!("move/batch_history"), batch::note, Rows::BatchHistory),
        Part::Aggregates => look.page(sql!("move/aggregate"), head, Rows::Aggregates),
        Part::Events => look.page(sql!("move/event"), read_event, Rows::Events),
        Part::Consumers => look.page(sql!("move/inbox_consumer"), inbox::consumer, Rows::Consumers),
        Part::ProcessedEvents => {
            look.page(sql!("move/processed_event"), inbox::processed_event, Rows::ProcessedEvents)
        }
        Part::Checkpoints => {
            look.page(sql!("move/aggregate_checkpoint"), inbox::checkpoint, Rows::Checkpoints)
        }
        Part::ParkedEvents => look.page(sql!("move/inbox_parked"), inbox::parked_event, Rows::ParkedEvents),
        Part::InboxLetters => look.page(sql!("move/inbox_dead"), dead_letter, Rows::InboxLetters),
        Part::InboxTallies => look.page(sql!("move/inbox_tally"), inbox::tally, Rows::InboxTallies),
        Part::Subscriptions => look.page(sql!("move/subscription"), relay::subscription, Rows::Subscriptions),
        Part::ParkedAggregates => {
            look.page(sql!("move/parked_aggregate"), relay::parked_aggregate, Rows::ParkedAggregates)
        }
        Part::HeldEvents => look.page(sql!("move/parked_event"), relay::held_event, Rows::HeldEvents),
        Part::DeadEvents => look.page(sql!("move/dead_event"), relay::dead_event, Rows::DeadEvents),
        Part::EventWorks => look.page(sql!("move/event_work"), relay::event_work, Rows::EventWorks),
        Part::History => look.page(sql!("move/history"), listing::read_entry, Rows::History),
        Part::ChangeSources => {
            look.page(sql!("move/change_source"), relay::change_source, Rows::ChangeSources)
        }
        Part::Slots => look.page(sql!("move/group_slot"), slot, Rows::Slots),
        Part::Ended => look.page(sql!("move/ended"), ended, Rows::Ended),
        Part::Live => look.page(sql!("move/live"), live, Rows::Live),
    }
}

/// Returns the error for a row with a value that Milepost does not write.
fn unreadable(part: Part, row: &Row<'_>, error: &rusqlite::Error) -> StoreError {
    let value_of = |column| {
        let value = row.get_ref(column);
        value.map_or_else(|error| error.to_string(), described)
    };
    let name_of = |column| row.as_ref().column_name(column).unwrap_or("?");
    let why = match error {
        Error::FromSqlConversionFailure(column, ..)
        | Error::IntegralValueOutOfRange(column, _)
        | Error::InvalidColumnType(column, ..) => {
            format!("{} = {}: {error}", name_of(*column), value_of(*column))
        }
        error => error.to_string(),
    };
    MoveError::Unreadable { part, key: format!("{} = {}", name_of(0), value_of(0)), why }.into()
}

/// Returns a value as operators know it: 16 bytes are an id. Long text is cut off.
fn described(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "null".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => {
            let text = String::from_utf8_lossy(text);
            format!("{:?}", text.chars().take(TEXT_CHARS_MAX).collect::<String>())
        }
        ValueRef::Blob(bytes) => {
            Uuid::from_slice(bytes).map_or_else(|_| format!("{} bytes", bytes.len()), |id| id.to_string())
        }
    }
}

/// The rows to read.
struct RowRange<'a> {
    conn: &'a Connection,
    part: Part,
    after: Position,
    rows_max: u32,
}

impl RowRange<'_> {
    fn page<R: Carried>(
        self,
        sql: &str,
        read: fn(&Row<'_>) -> Sql<R>,
        gather: fn(Vec<R>) -> Rows,
    ) -> Result<Page, Failure> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let limit = std::iter::once(Value::from(self.rows_max));
        let mut found = statement.query(params_from_iter(limit.chain(self.key())))?;
        let (mut rows, mut bytes, mut is_last) = (Vec::new(), 0, true);
        while let Some(row) = found.next()? {
            let row = read(row).map_err(|error| unreadable(self.part, row, &error))?;
            bytes += row.bytes();
            rows.push(row);
            if bytes >= PAGE_BYTES_MAX || rows.len() >= self.rows_max as usize {
                is_last = false;
                break;
            }
        }
        let reached = rows.last().map_or_else(|| self.after.clone(), Carried::position);
        Ok(Page { after: self.after, reached, rows: gather(rows), is_last })
    }

    /// Returns the position as statement parameters; the start is a value before every key of the part.
    fn key(&self) -> Vec<Value> {
        match (&self.after, self.part) {
            (Position::Job(id), _) => vec![id.0.as_bytes().to_vec().into()],
            (Position::Number(number), _) => vec![(*number).into()],
            (Position::Name(name), _) => vec![name.clone().into()],
            (Position::Key(key, kind), _) => vec![key.clone().into(), kind.clone().into()],
            (Position::Row(run, n), _) => vec![run.0.as_bytes().to_vec().into(), (*n).into()],
            (Position::Batch(id), _) => vec![id.0.as_bytes().to_vec().into()],
            (Position::Task(batch, task), _) => vec![batch.0.as_bytes().to_vec().into(), (*task).into()],
            (Position::VersionTask(version, task), _) => vec![(*version).into(), (*task).into()],
            (Position::Taken(consumer, event), _) => {
                vec![consumer.clone().into(), event.0.as_bytes().to_vec().into()]
            }
            (Position::Seat(consumer, kind, id), _) => {
                [consumer, kind, id].map(|key| key.clone().into()).into()
            }
            (Position::Held(subscription, kind, id, pos), _) => {
                let names = [subscription, kind, id].map(|key| Value::from(key.clone()));
                names.into_iter().chain([(*pos).into()]).collect()
            }
            (Position::Slot(group, slot), _) => vec![group.clone().into(), (*slot).into()],
            (
                Position::Start,
                Part::Workers
                | Part::DagVersions
                | Part::Audit
                | Part::BulkFailures
                | Part::BatchSpreads
                | Part::BatchSignals
                | Part::BatchHistory
                | Part::Events
                | Part::ParkedEvents
                | Part::InboxLetters
                | Part::History,
            ) => vec![i64::MIN.into()],
            (Position::Start, Part::DagTasks) => vec![i64::MIN.into(), i64::MIN.into()],
            (Position::Start, Part::Keys | Part::Aggregates) => {
                vec![String::new().into(), String::new().into()]
            }
            (Position::Start, Part::BulkTargets | Part::BatchTasks | Part::BatchWaits) => {
                vec![Vec::new().into(), i64::MIN.into()]
            }
            (Position::Start, Part::ProcessedEvents | Part::DeadEvents | Part::EventWorks) => {
                vec![String::new().into(), Vec::new().into()]
            }
            (Position::Start, Part::Checkpoints | Part::ParkedAggregates | Part::ChangeSources) => {
                [(); 3].map(|()| String::new().into()).into()
            }
            (Position::Start, Part::HeldEvents) => {
                let names = [(); 3].map(|()| Value::from(String::new()));
                names.into_iter().chain([i64::MIN.into()]).collect()
            }
            (Position::Start, Part::Slots) => vec![String::new().into(), i64::MIN.into()],
            (
                Position::Start,
                Part::Jobs
                | Part::Progress
                | Part::Bulks
                | Part::BulkSettings
                | Part::BulkFiles
                | Part::Batches
                | Part::BatchInputs
                | Part::Ended
                | Part::Live,
            ) => vec![Vec::new().into()],
            (Position::Start, _) => vec![String::new().into()],
        }
    }
}

fn worker(row: &Row<'_>) -> Sql<Worker> {
    Ok(Worker {
        id: WorkerId(row.get(0)?),
        name: row.get(1)?,
        queues: row::names(row, 2)?,
        kinds: row::names(row, 3)?,
        lease_ms: row.get(4)?,
        started_at: row::time(row, 5)?,
        heartbeat_at: row::time(row, 6)?,
        lease_expires_at: row::time(row, 7)?,
        ended_at: row::time_opt(row, 8)?,
        died: row.get(9)?,
        holds: row.get(10)?,
    })
}

fn queue(row: &Row<'_>) -> Sql<Queue> {
    Ok(Queue { name: row.get(0)?, paused_at: row::time_opt(row, 1)? })
}

fn kind_limit(row: &Row<'_>) -> Sql<KindLimit> {
    Ok(KindLimit {
        kind: row.get(0)?,
        rate: Rate::new(row.get(1)?, row.get(2)?),
        full_at: row::time_us(row, 3)?,
        source: row::word(row, 4)?,
    })
}

fn retention_setting(row: &Row<'_>) -> Sql<RetentionSetting> {
    Ok(RetentionSetting { name: row.get(0)?, keep_ms: row.get(1)? })
}

fn group_limit(row: &Row<'_>) -> Sql<GroupLimit> {
    Ok(GroupLimit {
        name: row.get(0)?,
        slots: row.get(1)?,
        rate: row::rate_opt(row, 2)?,
        source: row::word(row, 4)?,
    })
}

fn group_bucket(row: &Row<'_>) -> Sql<GroupBucket> {
    Ok(GroupBucket {
        group: row.get(0)?,
        full_at: row::time_us(row, 1)?,
        look_at: row::time_us_opt(row, 2)?,
        reserved: row.get(3)?,
    })
}

fn schedule(row: &Row<'_>) -> Sql<Schedule> {
    Ok(Schedule {
        name: row.get(0)?,
        spec: row.get(1)?,
        time_zone: row.get(2)?,
        kind: row.get(3)?,
        queue: row.get(4)?,
        payload: row.get(5)?,
        priority: row.get(6)?,
        max_attempts: row.get(7)?,
        group: row.get(8)?,
        timeout_ms: row.get(9)?,
        misfire: row.get(10)?,
        misfire_max: row.get(11)?,
        misfire_grace_ms: row.get(12)?,
        source: row::word(row, 13)?,
        version: row.get(14)?,
        paused_at: row::time_opt(row, 15)?,
        next_at: row::time_opt(row, 16)?,
        last_at: row::time_opt(row, 17)?,
        fired: row.get(18)?,
        dropped: row.get(19)?,
        dag: row.get(20)?,
        refused_at: row::time_opt(row, 21)?,
        refusal: row.get(22)?,
    })
}

fn note(row: &Row<'_>) -> Sql<Note> {
    Ok(Note {
        pos: row.get(0)?,
        at: row::time(row, 1)?,
        who: row.get(2)?,
        what: row.get(3)?,
        subject: row.get(4)?,
        why: row.get(5)?,
        detail: row.get(6)?,
    })
}

fn access_token(row: &Row<'_>) -> Sql<AccessToken> {
    let (view, hash) = token::token(row)?;
    Ok(AccessToken { view, hash })
}

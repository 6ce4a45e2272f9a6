//! Enqueueing of jobs.

use jiff::Timestamp;
use milepost_core::duration::{WAIT_MAX, whole_ms};
use milepost_core::error::StoreError;
use milepost_core::ident::{BatchId, JobId, RunToken};
use milepost_core::job::error::InvalidJob;
use milepost_core::job::{Enqueued, KeyHolder, NewJob, PAYLOAD_BYTES_MAX};
use milepost_core::port::StoreResult;
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, Transaction};

use crate::change::{Change, Recorder};
use crate::clock::{later_ms, now_ms, start_ms};
use crate::duplicate::settle;
use crate::error::Failure;
use crate::group::{Admission, admit};
use crate::row::{self, Id};

/// The most jobs of one call to [`enqueue_many`](milepost_core::port::IntakeStore::enqueue_many). The call is one write transaction and
/// delays all other writers of the file. A caller's own transaction accepts any number.
pub const CALL_JOBS_MAX: usize = 5000;
/// The most payload bytes of such a call, unless it contains a single job.
pub const CALL_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Enqueues one job in the caller's transaction: it exists exactly if that transaction commits. If a job with the same key or id exists,
/// returns that job and changes nothing.
///
/// # Errors
/// [`StoreError::Invalid`] describes the problem; nothing was written then. After any other error the caller must roll back.
pub fn enqueue(tx: &Transaction<'_>, job: &NewJob) -> StoreResult<Enqueued> {
    let enqueued = enqueue_many(tx, std::slice::from_ref(job))?;
    enqueued.first().copied().ok_or(StoreError::NoSuchJob(job.id))
}

/// Enqueues jobs in the caller's transaction, all or none, like [`enqueue`]. The results are in the order of the jobs.
///
/// # Errors
/// [`StoreError::Invalid`] contains the first job that cannot be accepted; nothing was written then. After any
/// other error the caller must roll back.
pub fn enqueue_many(tx: &Transaction<'_>, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>> {
    check(jobs, PAYLOAD_BYTES_MAX)?;
    insert_asked(tx, jobs).map_err(|failure| failure.at("enqueue", tx.path().unwrap_or_default()))
}

/// Refuses a call that would prevent other processes from writing for too long.
pub(crate) fn check_call(jobs: &[NewJob]) -> StoreResult<()> {
    let too_large = |what, given, max| StoreError::TooLarge { verb: "enqueue", what, given, max };
    if jobs.len() > CALL_JOBS_MAX {
        return Err(too_large("jobs", jobs.len(), CALL_JOBS_MAX));
    }
    let bytes = jobs.iter().map(|job| job.payload.get().len()).sum();
    if bytes > CALL_BYTES_MAX && jobs.len() > 1 {
        return Err(too_large("bytes of payload", bytes, CALL_BYTES_MAX));
    }
    Ok(())
}

/// Checks everything that does not need the database.
pub(crate) fn check(jobs: &[NewJob], payload_bytes_max: usize) -> StoreResult<()> {
    jobs.iter().enumerate().try_for_each(|(index, job)| {
        job.check(payload_bytes_max).map_err(|invalid| StoreError::Invalid { index, invalid })
    })
}

/// Stores one job that has been checked.
pub(crate) fn insert_one(conn: &Connection, job: &NewJob) -> Result<Enqueued, Failure> {
    let made = insert(conn, std::slice::from_ref(job))?;
    Ok(*made.first().ok_or(StoreError::NoSuchJob(job.id))?)
}

/// Stores checked jobs of a caller, which must not be of a kind that is a bulk job.
pub(crate) fn insert_asked(conn: &Connection, jobs: &[NewJob]) -> Result<Vec<Enqueued>, Failure> {
    let mut is_bulk = conn.prepare_cached(sql!("bulk/is_bulk"))?;
    let mut known = "";
    for (index, job) in jobs.iter().enumerate() {
        if job.kind != known && is_bulk.query_row([&job.kind], |row| row.get(0))? {
            let invalid = InvalidJob::BulkJob { kind: job.kind.clone() };
            return Err(StoreError::Invalid { index, invalid }.into());
        }
        known = &job.kind;
    }
    insert(conn, jobs)
}

/// Stores checked jobs of a schedule; those whose kind is a bulk job are runs of it.
pub(crate) fn insert_of_schedule(conn: &Connection, jobs: &[NewJob]) -> Result<Vec<Enqueued>, Failure> {
    let made = insert(conn, jobs)?;
    for (job, made) in jobs.iter().zip(&made) {
        if conn.prepare_cached(sql!("bulk/is_bulk"))?.query_row([&job.kind], |row| row.get(0))? {
            conn.prepare_cached(sql!("bulk/begin_run"))?.execute((Id(&made.job), None::<Id<'_>>))?;
        }
    }
    Ok(made)
}

/// Stores jobs that have been checked.
pub(crate) fn insert(conn: &Connection, jobs: &[NewJob]) -> Result<Vec<Enqueued>, Failure> {
    let mut intake = Intake::new(conn)?;
    let latest_ms = later_ms(intake.now_ms, WAIT_MAX);
    if let Some(index) = jobs.iter().position(|job| start_ms(job.start, intake.now_ms) > latest_ms) {
        let why = "its start must be at most a hundred years from now".to_owned();
        return Err(StoreError::Invalid { index, invalid: InvalidJob::Refused { why } }.into());
    }
    jobs.iter()
        .enumerate()
        .map(|(index, job)| intake.accept(job).map_err(|failure| at_index(failure, index)))
        .collect()
}

/// Names the job of the call that was refused.
fn at_index(failure: Failure, index: usize) -> Failure {
    match failure {
        Failure::Told(StoreError::Invalid { invalid, .. }) => {
            Failure::Told(StoreError::Invalid { index, invalid })
        }
        other => other,
    }
}

/// Returns the jobs that own the keys of these jobs.
pub(crate) fn key_holders(conn: &Connection, jobs: &[NewJob]) -> Result<Vec<Option<KeyHolder>>, Failure> {
    let mut statement = conn.prepare_cached(sql!("key_holder_content"))?;
    let holder = |asked: &NewJob| {
        let params = (&asked.kind, &asked.key);
        statement.query_row(params, |row| read_holder(row, asked)).optional()
    };
    Ok(jobs.iter().map(holder).collect::<rusqlite::Result<_>>()?)
}

fn read_holder(row: &Row<'_>, asked: &NewJob) -> rusqlite::Result<KeyHolder> {
    let queue: Option<String> = row.get(1)?;
    let is_same = match queue {
        None => None,
        Some(queue) => {
            let group: Option<String> = row.get(2)?;
            let payload: String = row.get(3)?;
            Some(asked.is_same(&queue, group.as_deref(), &payload))
        }
    };
    Ok(KeyHolder { job: row::job_id(row, 0)?, is_same })
}

pub(crate) struct Intake<'conn> {
    conn: &'conn Connection,
    now_ms: i64,
    job: CachedStatement<'conn>,
    live: CachedStatement<'conn>,
    recorder: Recorder<'conn>,
}

impl<'conn> Intake<'conn> {
    pub(crate) fn new(conn: &'conn Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            conn,
            now_ms: now_ms(),
            job: conn.prepare_cached(sql!("enqueue_job"))?,
            live: conn.prepare_cached(sql!("enqueue_live"))?,
            recorder: Recorder::new(conn)?,
        })
    }

    fn accept(&mut self, job: &NewJob) -> Result<Enqueued, Failure> {
        if let Some(key) = &job.key {
            let settled = match &job.on_duplicate {
                None => self.take_key(job, key)?.map(Enqueued::kept),
                Some(rule) => settle(self.conn, job, key, rule, self.now_ms)?,
            };
            if let Some(settled) = settled {
                return Ok(settled);
            }
        }
        if !self.insert_job(job, None)? {
            if let Some(key) = &job.key {
                self.conn.prepare_cached(sql!("give_key_back"))?.execute((&job.kind, key))?;
            }
            return Ok(Enqueued::kept(job.id));
        }
        self.let_wait(job)?;
        Ok(Enqueued::created(job.id))
    }

    /// Stores a job that is a task of a batch. Its id is new, and it has no key.
    pub(crate) fn accept_task(&mut self, job: &NewJob, batch: BatchId, task: u32) -> Result<(), Failure> {
        self.insert_job(job, Some((batch, task)))?;
        Ok(self.let_wait(job)?)
    }

    /// Takes the key for the job, or returns the job that owns it.
    fn take_key(&self, job: &NewJob, key: &str) -> rusqlite::Result<Option<JobId>> {
        let taken = self.conn.prepare_cached(sql!("take_key"))?.execute((&job.kind, key, Id(&job.id)))?;
        if taken == 1 {
            return Ok(None);
        }
        self.conn
            .prepare_cached(sql!("key_holder"))?
            .query_row((&job.kind, key), |row| row::job_id(row, 0))
            .map(Some)
    }

    fn insert_job(&mut self, job: &NewJob, task: Option<(BatchId, u32)>) -> rusqlite::Result<bool> {
        let inserted = self.job.execute((
            Id(&job.id),
            &job.kind,
            &job.queue,
            job.payload.get(),
            &job.key,
            &job.group,
            job.priority.get(),
            job.max_attempts,
            job.timeout.map(whole_ms),
            self.now_ms,
            job.nominal_at.map(Timestamp::as_millisecond),
            task.map(|(batch, _)| batch.0.into_bytes()),
            task.map(|(_, task)| task),
            job.traceparent.map(|it| it.to_string()),
        ))?;
        Ok(inserted == 1)
    }

    fn let_wait(&mut self, job: &NewJob) -> rusqlite::Result<()> {
        let debounced = job.on_duplicate.and_then(|rule| rule.debounced_start_ms(self.now_ms, self.now_ms));
        let start_ms = debounced.unwrap_or_else(|| start_ms(job.start, self.now_ms));
        let admission = match &job.group {
            Some(group) => admit(self.conn, group, &job.id, start_ms, self.now_ms)?,
            None => Admission::Free,
        };
        let free = admission != Admission::Waits;
        let state = if free { JobState::Pending } else { JobState::Blocked };
        self.live.execute((
            Id(&job.id),
            &job.kind,
            &job.queue,
            job.priority.get(),
            state.as_str(),
            free.then_some(start_ms),
            (!free).then_some(start_ms),
            job.max_attempts,
            &job.group,
            self.now_ms,
            (admission == Admission::Reserved).then_some(1),
        ))?;
        self.recorder.record(&Change {
            job: &job.id,
            at_ms: self.now_ms,
            verb: Verb::Create,
            from: None,
            to: state,
            attempt: 0,
            token: RunToken(0),
            worker: None,
            ready_at_ms: Some(start_ms),
            failure: None,
            note: None,
        })
    }
}

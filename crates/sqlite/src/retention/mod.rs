//! Retention of finished jobs, in short transactions.
//!
//! History is in time order, and the last entry of a job contains its final state and end time. So each type of retention reads history
//! once, starting at its mark, and needs no index that every end of a job would have to update.

mod prunable;

use std::time::{Duration, Instant};

use milepost_core::duration::whole_ms;
use milepost_core::ident::JobId;
use milepost_core::retention::{Keep, Pace, Pruned, RetentionPolicy};
use milepost_core::sql;
use milepost_core::state::JobState;
use rusqlite::{CachedStatement, Connection, OptionalExtension};

use self::prunable::count_of;
pub(crate) use self::prunable::prunable;
use crate::clock::now_ms;
use crate::error::Failure;
use crate::inbox;
use crate::row::{self, Id};

/// The longest duration of a call, so that its transaction stays short.
const CALL_MAX: Duration = Duration::from_millis(15);
/// The number of history entries in one read.
const LOOK: u32 = 1000;

/// The types of retention that read history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Succeeded,
    Canceled,
    Failed,
    History,
}

impl Sort {
    const ALL: [Self; 4] = [Self::Succeeded, Self::Canceled, Self::Failed, Self::History];

    /// Returns its key in the table of marks.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
            Self::History => "history",
        }
    }

    const fn keep(self, policy: &RetentionPolicy) -> Keep {
        match self {
            Self::Succeeded => policy.succeeded,
            Self::Canceled => policy.canceled,
            Self::Failed => policy.failed,
            Self::History => policy.history,
        }
    }

    const fn covers(self, state: JobState) -> bool {
        match self {
            Self::Succeeded => matches!(state, JobState::Succeeded),
            Self::Canceled => matches!(state, JobState::Canceled | JobState::Skipped),
            Self::Failed => matches!(state, JobState::Failed),
            Self::History => state.is_ended(),
        }
    }
}

/// Returns the time before which entries with this retention period are due.
fn due_before_ms(keep: Keep, now_ms: i64) -> Option<i64> {
    keep.period().map(|period| now_ms.saturating_sub(whole_ms(period)))
}

/// Returns whether a call of prune would find anything to do, without writing.
pub(crate) fn is_due(conn: &Connection, policy: &RetentionPolicy, pace: Pace) -> Result<bool, Failure> {
    let now_ms = now_ms();
    if pace.rest > 0 && !conn.prepare_cached(sql!("turn_free"))?.exists([now_ms])? {
        return Ok(false);
    }
    for sort in Sort::ALL {
        let Some(cut_ms) = due_before_ms(sort.keep(policy), now_ms) else { continue };
        let next = conn
            .prepare_cached(sql!("history_after"))?
            .query_row((mark(conn, sort)?, 1), read_entry)
            .optional()?;
        if next.is_some_and(|entry| entry.at_ms < cut_ms) {
            return Ok(true);
        }
    }
    if conn.prepare_cached(sql!("dead_file"))?.exists([now_ms])? {
        return Ok(true);
    }
    let due = |sql, keep| -> Result<bool, Failure> {
        let Some(cut_ms) = due_before_ms(keep, now_ms) else { return Ok(false) };
        Ok(conn.prepare_cached(sql)?.query_row([cut_ms], |row| row.get::<_, i64>(0))? > 0)
    };
    Ok(due(sql!("keys_due"), policy.keys)?
        || due(sql!("workers_due"), policy.workers)?
        || due(sql!("audit/is_due"), policy.audit)?
        || due(sql!("inbox/is_processed_due"), policy.inbox)?
        || due(sql!("inbox/is_dead_due"), policy.failed)?)
}

/// Deletes one page of each type, within the time limit of a call.
pub(crate) fn prune(conn: &Connection, policy: &RetentionPolicy, pace: Pace) -> Result<Pruned, Failure> {
    let now_ms = now_ms();
    if pace.rest > 0 && !conn.prepare_cached(sql!("turn_free"))?.exists([now_ms])? {
        return Ok(Pruned::default());
    }
    let mut pruner = Pruner::new(conn, policy, now_ms, pace.limit)?;
    for sort in Sort::ALL {
        pruner.read_on(sort)?;
    }
    pruner.prune_by_age()?;
    pruner.prune_inbox()?;
    pruner.prune_files()?;
    let Pruner { pruned, began, .. } = pruner;
    if pace.rest > 0 && pruned.rows > 0 {
        let rest_ms = whole_ms(began.elapsed() * pace.rest);
        conn.prepare_cached(sql!("pass_turn"))?.execute([now_ms.saturating_add(rest_ms)])?;
    }
    Ok(pruned)
}

/// A history entry, with the columns that retention needs.
struct Entry {
    pos: i64,
    job: JobId,
    at_ms: i64,
    to: JobState,
}

fn read_entry(row: &rusqlite::Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry { pos: row.get(0)?, job: row::job_id(row, 1)?, at_ms: row.get(2)?, to: row::word(row, 3)? })
}

fn mark(conn: &Connection, sort: Sort) -> rusqlite::Result<i64> {
    conn.prepare_cached(sql!("retention_mark"))?.query_row([sort.as_str()], |row| row.get(0))
}

/// Returns whether a batch still needs a job. Retention then skips the job, which is deleted with the batch.
fn keeps_job(conn: &Connection, job: &JobId) -> rusqlite::Result<bool> {
    conn.prepare_cached(sql!("batch/keeps_job"))?.exists([Id(job)])
}

/// Returns the position of a job's last entry.
fn last_of(statement: &mut CachedStatement<'_>, job: &JobId) -> rusqlite::Result<i64> {
    statement.query_row([Id(job)], |row| row.get::<_, Option<i64>>(0)).map(Option::unwrap_or_default)
}

/// Whether the time limit of a call was sufficient for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    OutOfTime,
}

/// One call of prune.
pub(crate) struct Pruner<'a> {
    conn: &'a Connection,
    policy: &'a RetentionPolicy,
    now_ms: i64,
    limit: u32,
    began: Instant,
    last: CachedStatement<'a>,
    pruned: Pruned,
}

impl<'a> Pruner<'a> {
    pub(crate) fn new(
        conn: &'a Connection,
        policy: &'a RetentionPolicy,
        now_ms: i64,
        limit: u32,
    ) -> rusqlite::Result<Self> {
        let last = conn.prepare_cached(sql!("last_entry"))?;
        Ok(Self { conn, policy, now_ms, limit, began: Instant::now(), last, pruned: Pruned::default() })
    }

    pub(crate) fn is_out_of_time(&self) -> bool {
        self.began.elapsed() >= CALL_MAX
    }

    /// Reads history from the mark of a type on, and deletes the due jobs or histories, up to the limit of jobs or the time limit.
    fn read_on(&mut self, sort: Sort) -> Result<(), Failure> {
        let Some(cut_ms) = due_before_ms(sort.keep(self.policy), self.now_ms) else { return Ok(()) };
        let from = mark(self.conn, sort)?;
        let (mut at, mut left) = (from, self.limit);
        'looks: while left > 0 && !self.is_out_of_time() {
            let look = self.look(at)?;
            let whole = look.len() < LOOK as usize;
            for entry in look {
                if entry.at_ms >= cut_ms || left == 0 {
                    break 'looks;
                }
                // An entry that is not a job's last one is skipped; the last one comes later.
                if sort.covers(entry.to)
                    && entry.pos == last_of(&mut self.last, &entry.job)?
                    && !(sort != Sort::History && keeps_job(self.conn, &entry.job)?)
                {
                    if self.forget(sort, &entry)? == Step::OutOfTime {
                        break 'looks;
                    }
                    *count_of(&mut self.pruned.what, sort) += 1;
                    left -= 1;
                }
                at = entry.pos;
                if self.is_out_of_time() {
                    break 'looks;
                }
            }
            if whole {
                break;
            }
        }
        self.pruned.more |= left == 0 || self.is_out_of_time();
        if at > from {
            self.conn.prepare_cached(sql!("move_retention_mark"))?.execute((sort.as_str(), at))?;
        }
        Ok(())
    }

    /// Deletes a job whose batch was deleted, if the mark has passed the job; returns whether the time was sufficient.
    pub(crate) fn forget_passed(&mut self, job: &JobId) -> Result<bool, Failure> {
        let pos = last_of(&mut self.last, job)?;
        let last = self.conn.prepare_cached(sql!("entry"))?.query_row([pos], read_entry).optional()?;
        let Some(last) = last else { return Ok(true) };
        for sort in [Sort::Succeeded, Sort::Canceled, Sort::Failed] {
            if sort.covers(last.to) && pos <= mark(self.conn, sort)? {
                return Ok(self.forget(sort, &last)? == Step::Done);
            }
        }
        Ok(true)
    }

    /// Returns the number of deleted rows.
    pub(crate) const fn rows(&self) -> u64 {
        self.pruned.rows
    }

    fn look(&self, after: i64) -> rusqlite::Result<Vec<Entry>> {
        self.conn.prepare_cached(sql!("history_after"))?.query_map((after, LOOK), read_entry)?.collect()
    }

    fn forget(&mut self, sort: Sort, last: &Entry) -> Result<Step, Failure> {
        if self.forget_history(last)? == Step::OutOfTime {
            return Ok(Step::OutOfTime);
        }
        if sort == Sort::History {
            return Ok(Step::Done);
        }
        for sql in [sql!("forget_own_failures"), sql!("forget_taken_failures")] {
            let mut forget = self.conn.prepare_cached(sql)?;
            if self.in_portions(|limit| forget.execute((Id(&last.job), limit)))? == Step::OutOfTime {
                return Ok(Step::OutOfTime);
            }
        }
        let job = Id(&last.job);
        // The rows of its file are deleted in portions once no run needs them.
        self.conn.prepare_cached(sql!("touch_bulk_file"))?.execute((&job, self.now_ms))?;
        let home = if sort == Sort::Failed { sql!("forget_failed") } else { sql!("delete_ended") };
        let mut rows = self.conn.prepare_cached(home)?.execute([&job])?;
        rows += self.forget_key(last)?;
        rows +=
            self.conn.prepare_cached(sql!("event/forget_job_head"))?.execute((&job, last.job.to_string()))?;
        let rest =
            [sql!("forget_progress"), sql!("forget_bulk"), sql!("forget_bulk_setting"), sql!("forget_job")];
        for sql in rest {
            rows += self.conn.prepare_cached(sql)?.execute([&job])?;
        }
        rows += self.conn.prepare_cached(sql!("forget_history"))?.execute((&job, i64::MAX, 1))?;
        self.pruned.rows += rows as u64;
        Ok(Step::Done)
    }

    /// Deletes a job's history except its last entry, in portions. A later call continues if the time limit is reached.
    fn forget_history(&mut self, last: &Entry) -> Result<Step, Failure> {
        let mut forget = self.conn.prepare_cached(sql!("forget_history"))?;
        self.in_portions(|limit| forget.execute((Id(&last.job), last.pos, limit)))
    }

    /// Deletes rows in portions, until none are left or the time limit is reached.
    fn in_portions(
        &mut self,
        mut forget: impl FnMut(u32) -> rusqlite::Result<usize>,
    ) -> Result<Step, Failure> {
        loop {
            let rows = forget(self.limit)?;
            self.pruned.rows += rows as u64;
            if rows < self.limit as usize {
                return Ok(Step::Done);
            }
            if self.is_out_of_time() {
                return Ok(Step::OutOfTime);
            }
        }
    }

    fn forget_key(&self, last: &Entry) -> rusqlite::Result<usize> {
        let job = Id(&last.job);
        let key = self
            .conn
            .prepare_cached(sql!("key_of_job"))?
            .query_row([&job], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((kind, key)): Option<(String, String)> = key else { return Ok(0) };
        if due_before_ms(self.policy.keys, self.now_ms).is_some_and(|cut_ms| last.at_ms < cut_ms) {
            return self.conn.prepare_cached(sql!("forget_key"))?.execute((kind, key, job));
        }
        self.conn.prepare_cached(sql!("keep_key"))?.execute((kind, key, job, last.at_ms))?;
        Ok(0)
    }

    /// Deletes rows of files that no run needs any more.
    fn prune_files(&mut self) -> Result<(), Failure> {
        let mut dead = self.conn.prepare_cached(sql!("dead_file"))?;
        let mut forget = self.conn.prepare_cached(sql!("forget_bulk_targets"))?;
        while !self.is_out_of_time() {
            let file = dead.query_row([self.now_ms], |row| row::job_id(row, 0)).optional()?;
            let Some(run) = file else { return Ok(()) };
            if self.in_portions(|limit| forget.execute((Id(&run), limit)))? == Step::Done {
                self.pruned.rows +=
                    self.conn.prepare_cached(sql!("forget_bulk_file"))?.execute([Id(&run)])? as u64;
            }
        }
        self.pruned.more = true;
        Ok(())
    }

    /// Deletes the rows of inboxes that are due.
    fn prune_inbox(&mut self) -> rusqlite::Result<()> {
        if let Some(cut_ms) = due_before_ms(self.policy.inbox, self.now_ms)
            && !self.is_out_of_time()
        {
            let mut prune = self.conn.prepare_cached(sql!("inbox/prune_processed"))?;
            self.pruned.what.inbox = prune.execute((cut_ms, self.limit))? as u64;
        }
        if let Some(cut_ms) = due_before_ms(self.policy.failed, self.now_ms)
            && !self.is_out_of_time()
        {
            self.pruned.what.inbox_dead = inbox::forget_old(self.conn, cut_ms, self.limit)?;
        }
        let (ids, letters) = (self.pruned.what.inbox, self.pruned.what.inbox_dead);
        self.pruned.rows += ids + letters;
        self.pruned.more |= ids.max(letters) == u64::from(self.limit) || self.is_out_of_time();
        Ok(())
    }

    /// Deletes keys kept after their jobs, workers, and audit entries by age.
    fn prune_by_age(&mut self) -> rusqlite::Result<()> {
        let prune = |sql, keep| -> rusqlite::Result<u64> {
            match due_before_ms(keep, self.now_ms) {
                Some(cut_ms) if !self.is_out_of_time() => {
                    Ok(self.conn.prepare_cached(sql)?.execute((cut_ms, self.limit))? as u64)
                }
                _ => Ok(0),
            }
        };
        let keys = prune(sql!("prune_keys"), self.policy.keys)?;
        let workers = prune(sql!("prune_workers"), self.policy.workers)?;
        let audit = prune(sql!("audit/prune"), self.policy.audit)?;
        self.pruned.what.keys = keys;
        self.pruned.what.workers = workers;
        self.pruned.what.audit = audit;
        self.pruned.rows += keys + workers + audit;
        self.pruned.more |= keys.max(workers).max(audit) == u64::from(self.limit) || self.is_out_of_time();
        Ok(())
    }
}

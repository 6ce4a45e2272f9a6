//! Ends of runs: plain successes in one statement, all others in a transaction.

use std::collections::{HashMap, HashSet};

use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finish, Finished, check_result};
use milepost_core::ident::{JobId, Run, RunToken, WorkerId};
use milepost_core::port::StoreResult;
use milepost_core::sql;
use milepost_core::text::without_nul;
use uuid::Uuid;

use self::beside_held::end_others;
use crate::audit::confirm_replication;
use crate::batch;
use crate::error::is_lock_timeout;
use crate::row::{self, Decoded};
use crate::session::{Query, Session, Sessions};
use crate::store::{Inner, PostgresStore};

mod beside_held;

impl PostgresStore {
    pub(crate) async fn finish_runs(
        &self,
        worker: WorkerId,
        finishes: &[Finish],
    ) -> StoreResult<Vec<Finished>> {
        check_results(finishes)?;
        let Inner { hot, held, .. } = self.inner.as_ref();
        let fail = |e| self.fail("finish_many", e);
        if !held.has_any_of(finishes) {
            match end_all(&hot.once(), worker, finishes).await {
                Err(error) if is_lock_timeout(&error) => {}
                told => return told.map_err(fail),
            }
        }
        end_others(held, hot, worker, finishes).await.map_err(fail)
    }
}

/// Ends all runs in one transaction.
async fn end_all(sessions: &Sessions, worker: WorkerId, finishes: &[Finish]) -> Decoded<Vec<Finished>> {
    let sorted = in_order(finishes);
    let ends = Ends::of(&sorted);
    if ends.is_one_statement() {
        sessions.run(async |session| ends.store(session, worker, finishes).await).await
    } else {
        sessions.atomically(async |tx| ends.store(tx, worker, finishes).await).await
    }
}

/// All statements lock rows in the order of their IDs, so that ends and rescues cannot deadlock.
fn in_order(finishes: &[Finish]) -> Vec<&Finish> {
    let mut sorted: Vec<&Finish> = finishes.iter().collect();
    sorted.sort_unstable_by_key(|finish| finish.run.job);
    sorted
}

/// Returns the result of each end. Of those that were not accepted, some were stored by an earlier call whose response was
/// lost.
async fn tell_apart(
    session: &mut Session<'_>,
    finishes: &[Finish],
    accepted: &[Uuid],
) -> Decoded<Vec<Finished>> {
    if accepted.len() == finishes.len() {
        return Ok(vec![Finished::Accepted; finishes.len()]);
    }
    let accepted: HashSet<&Uuid> = accepted.iter().collect();
    // Only the newest run of a job can end it.
    let mut newest: HashMap<JobId, RunToken> = HashMap::new();
    for Run { job, token } in finishes.iter().map(|finish| finish.run) {
        newest.entry(job).and_modify(|newest| *newest = token.max(*newest)).or_insert(token);
    }
    let is_accepted = |run: Run| {
        accepted.contains(&run.job.0) && newest.get(&run.job).is_some_and(|newest| *newest == run.token)
    };
    let open: Vec<&Finish> = finishes.iter().filter(|finish| !is_accepted(finish.run)).collect();
    let (jobs, tokens) = runs(&open);
    let codes: Vec<Option<String>> = open.iter().map(|finish| finish.end.failure_code()).collect();
    // Neither a repeated nor a fenced end is reported from a commit that a failover undoes.
    confirm_replication(session).await?;
    let query = sqlx::query(sql!("ended_runs")).bind(jobs).bind(tokens).bind(verbs(&open)).bind(codes);
    let rows = session.rows(query).await?;
    let repeated: HashSet<Run> = rows.iter().map(row::claimed_run).collect::<Decoded<_>>()?;
    Ok(finishes
        .iter()
        .map(|finish| match finish.run {
            run if is_accepted(run) => Finished::Accepted,
            run if repeated.contains(&run) => Finished::Repeated,
            _ => Finished::Fenced,
        })
        .collect())
}

/// Ends, grouped by the statement that stores them.
struct Ends<'a> {
    all: &'a [&'a Finish],
    succeeded: Vec<&'a Finish>,
    unfinished: Vec<&'a Finish>,
    stopped: Vec<&'a Finish>,
    grouped: bool,
    tasks: bool,
}

impl<'a> Ends<'a> {
    fn of(all: &'a [&'a Finish]) -> Self {
        let (mut succeeded, mut unfinished, mut stopped) = (Vec::new(), Vec::new(), Vec::new());
        for finish in all {
            match finish.end {
                End::Succeed { .. } => succeeded.push(*finish),
                End::Retry { .. } | End::Fail { .. } | End::Yield { .. } => unfinished.push(*finish),
                End::Cancel | End::Abort => stopped.push(*finish),
            }
        }
        let grouped = all.iter().any(|finish| finish.grouped);
        let tasks = all.iter().any(|finish| finish.task);
        Self { all, succeeded, unfinished, stopped, grouped, tasks }
    }

    fn are_plain_successes(&self) -> bool {
        !self.grouped && self.unfinished.is_empty() && self.stopped.is_empty()
    }

    /// Returns whether one statement stores them, so that no transaction is needed.
    fn is_one_statement(&self) -> bool {
        self.are_plain_successes() && !self.tasks
    }

    /// Stores the ends, and returns the result of each of `finishes`, which are the same in the caller's order.
    async fn store(
        &self,
        session: &mut Session<'_>,
        worker: WorkerId,
        finishes: &[Finish],
    ) -> Decoded<Vec<Finished>> {
        let accepted = match () {
            () if !self.are_plain_successes() => self.write(session, worker).await?,
            () if self.tasks => succeed_tasks(session, &self.succeeded, worker).await?,
            () => succeed(session, &self.succeeded, worker).await?,
        };
        tell_apart(session, finishes, &accepted).await
    }

    async fn write(&self, tx: &mut Session<'_>, worker: WorkerId) -> Decoded<Vec<Uuid>> {
        let (jobs, _) = runs(self.all);
        if self.tasks {
            tx.execute(sqlx::query(sql!("batch/join")).bind(jobs.clone())).await?;
        }
        tx.execute(sqlx::query(sql!("lock_runs")).bind(jobs)).await?;
        let mut accepted = Vec::new();
        if !self.succeeded.is_empty() {
            accepted.append(&mut succeed(tx, &self.succeeded, worker).await?);
        }
        if !self.stopped.is_empty() {
            accepted.append(&mut stop(tx, &self.stopped, Some(worker)).await?);
        }
        let mut waiting = HashSet::new();
        if !self.unfinished.is_empty() {
            let back = take_back(tx, &self.unfinished, worker).await?;
            accepted.append(&mut self.stop_instead(tx, &back, worker).await?);
            let waits = |f: &&&Finish| matches!(f.end, End::Retry { .. } | End::Yield { .. });
            waiting = self.unfinished.iter().filter(waits).map(|f| f.run.job.0).collect();
            waiting.retain(|job| back.contains(job));
            accepted.extend(back);
        }
        if self.tasks {
            settle_tasks(tx, self.all.iter().copied()).await?;
        }
        if self.grouped {
            self.free_groups(tx, &accepted, &waiting).await?;
        }
        Ok(accepted)
    }

    /// Cancels or aborts, as requested, the runs whose end was not stored because an operator wants them stopped.
    async fn stop_instead(
        &self,
        tx: &mut Session<'_>,
        back: &HashSet<Uuid>,
        worker: WorkerId,
    ) -> Decoded<Vec<Uuid>> {
        let rest: Vec<&Finish> =
            self.unfinished.iter().copied().filter(|f| !back.contains(&f.run.job.0)).collect();
        if rest.is_empty() { Ok(Vec::new()) } else { stop(tx, &rest, Some(worker)).await }
    }

    /// Releases the group slots of the jobs that do not wait for another run.
    async fn free_groups(
        &self,
        tx: &mut Session<'_>,
        accepted: &[Uuid],
        waiting: &HashSet<Uuid>,
    ) -> Decoded<()> {
        let grouped: HashSet<Uuid> = self.all.iter().filter(|f| f.grouped).map(|f| f.run.job.0).collect();
        let freed: Vec<Uuid> =
            accepted.iter().copied().filter(|job| grouped.contains(job) && !waiting.contains(job)).collect();
        if !freed.is_empty() {
            tx.execute(sqlx::query(sql!("free_groups")).bind(freed)).await?;
        }
        Ok(())
    }
}

/// Refuses results that cannot be read back.
fn check_results(finishes: &[Finish]) -> StoreResult<()> {
    for finish in finishes {
        if let End::Succeed { result: Some(result) } = &finish.end {
            check_result(result, finish.task).map_err(|failure| {
                let why = format!("job {}: {}", finish.run.job, failure.message);
                StoreError::Refused { verb: "finish_many", cause: why.into() }
            })?;
        }
    }
    Ok(())
}

/// Reports the states of those jobs that are tasks to their batches.
pub(crate) async fn settle_tasks<'a>(
    session: &mut Session<'_>,
    finishes: impl Iterator<Item = &'a Finish>,
) -> Decoded<()> {
    let tasks: Vec<Uuid> = finishes.filter(|finish| finish.task).map(|finish| finish.run.job.0).collect();
    if tasks.is_empty() { Ok(()) } else { batch::settle_ended(session, tasks).await }
}

async fn succeed(session: &mut Session<'_>, finishes: &[&Finish], worker: WorkerId) -> Decoded<Vec<Uuid>> {
    session.rows(successes(sql!("finish_succeeded"), finishes, worker)).await.and_then(row::values)
}

/// Ends tasks that succeeded, and continues their batches.
async fn succeed_tasks(
    session: &mut Session<'_>,
    finishes: &[&Finish],
    worker: WorkerId,
) -> Decoded<Vec<Uuid>> {
    let rows = session.rows(successes(sql!("batch/finish_succeeded"), finishes, worker)).await?;
    batch::go_on(session, rows.first()).await?;
    row::values(rows)
}

fn successes(sql: &'static str, finishes: &[&Finish], worker: WorkerId) -> Query {
    let results: Vec<Option<&str>> = finishes
        .iter()
        .map(|finish| match &finish.end {
            End::Succeed { result } => result.as_deref(),
            _ => None,
        })
        .collect();
    let (jobs, tokens) = runs(finishes);
    sqlx::query(sql).bind(jobs).bind(tokens).bind(results).bind(worker.0)
}

/// Stores ends after which the job stays live: retries, failures, yields.
pub(crate) async fn take_back(
    session: &mut Session<'_>,
    finishes: &[&Finish],
    worker: WorkerId,
) -> Decoded<HashSet<Uuid>> {
    let mut delays_ms = Vec::with_capacity(finishes.len());
    let mut codes = Vec::with_capacity(finishes.len());
    let mut messages = Vec::with_capacity(finishes.len());
    let mut notes = Vec::with_capacity(finishes.len());
    for finish in finishes {
        let (delay, failure, note) = match &finish.end {
            End::Retry { delay, failure } => (*delay, Some(failure), None),
            End::Fail { failure } => (std::time::Duration::ZERO, Some(failure), None),
            End::Yield { delay, note } => (*delay, None, Some(without_nul(note))),
            End::Succeed { .. } | End::Cancel | End::Abort => (std::time::Duration::ZERO, None, None),
        };
        delays_ms.push(whole_ms(delay));
        codes.push(failure.map(|failure| without_nul(&failure.code)));
        messages.push(failure.map(|failure| without_nul(&failure.message)));
        notes.push(note);
    }
    let (jobs, tokens) = runs(finishes);
    let query = sqlx::query(sql!("finish_unfinished"))
        .bind(jobs)
        .bind(tokens)
        .bind(verbs(finishes))
        .bind(delays_ms)
        .bind(codes)
        .bind(messages)
        .bind(notes)
        .bind(worker.0);
    session.rows(query).await.and_then(row::values)
}

/// Stores ends of runs that were asked to stop, of this worker or of any. A run that ended in another way in the meantime is canceled or aborted as
/// requested.
pub(crate) async fn stop(
    session: &mut Session<'_>,
    finishes: &[&Finish],
    worker: Option<WorkerId>,
) -> Decoded<Vec<Uuid>> {
    let (jobs, tokens) = runs(finishes);
    let verb = |end: &End| matches!(end, End::Cancel | End::Abort).then(|| end.verb().as_str());
    let failure = |end: &End| match end {
        End::Retry { failure, .. } | End::Fail { failure } => {
            Some((without_nul(&failure.code), without_nul(&failure.message)))
        }
        _ => None,
    };
    let (codes, messages): (Vec<_>, Vec<_>) =
        finishes.iter().map(|finish| failure(&finish.end).unzip()).unzip();
    let query = sqlx::query(sql!("finish_stopped"))
        .bind(jobs)
        .bind(tokens)
        .bind(finishes.iter().map(|finish| verb(&finish.end)).collect::<Vec<_>>())
        .bind(codes)
        .bind(messages)
        .bind(worker.map(|worker| worker.0));
    session.rows(query).await.and_then(row::values)
}

fn runs(finishes: &[&Finish]) -> (Vec<Uuid>, Vec<i32>) {
    finishes.iter().map(|finish| (finish.run.job.0, finish.run.token.0)).unzip()
}

fn verbs(finishes: &[&Finish]) -> Vec<&'static str> {
    finishes.iter().map(|finish| finish.end.verb().as_str()).collect()
}

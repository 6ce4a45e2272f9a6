//! Changes of the payload and the options of existing jobs, by operators and by enqueues with the same key.

use std::slice;

use milepost_core::duration::{WAIT_MAX, whole_ms};
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::job::error::InvalidJob;
use milepost_core::job::{NewJob, Priority};
use milepost_core::port::JobEdit;
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb, transition};
use rusqlite::Connection;

use crate::clock::{later_ms, now_ms, start_ms};
use crate::error::Failure;
use crate::group::fill_all;
use crate::operate::{find, illegal};
use crate::row::Id;
use crate::transitions::{Standing, Step, Transitions};

/// New options of a job; `None`: as before.
#[derive(Default)]
struct Options {
    start_ms: Option<i64>,
    priority: Option<u8>,
    max_attempts: Option<u32>,
}

/// Edits a job that waits, has failed or was aborted, and returns its state.
pub(crate) fn edit(conn: &Connection, job: JobId, edit: &JobEdit) -> Result<JobState, Failure> {
    let now_ms = now_ms();
    let standing = find(conn, &job)?.standing;
    let state = standing.state;
    if transition(Some(state), Verb::Edit, Readiness::Ready).is_err() {
        return Err(illegal(&standing, Verb::Edit));
    }
    if edit.start.is_some() && matches!(state, JobState::Failed | JobState::Aborted) {
        return Err(invalid(InvalidJob::NoStart { state }));
    }
    if edit.payload.is_some() && conn.prepare_cached(sql!("is_bulk_run"))?.exists([Id(&job)])? {
        return Err(invalid(InvalidJob::EditsBulkRun));
    }
    let options = Options {
        start_ms: edit.start.map(|start| start_ms(start, now_ms)),
        priority: edit.priority.map(Priority::get),
        max_attempts: edit.max_attempts,
    };
    if options.start_ms.is_some_and(|start_ms| start_ms > later_ms(now_ms, WAIT_MAX)) {
        let why = "its start must be at most a hundred years from now".to_owned();
        return Err(invalid(InvalidJob::Refused { why }));
    }
    conn.prepare_cached(sql!("edit_job"))?.execute((
        Id(&job),
        edit.payload.as_ref().map(|payload| payload.get()),
        options.priority,
        options.max_attempts,
    ))?;
    apply(conn, &standing, &options, edit.reason(), now_ms)
}

/// Gives a job that has not started the payload and the options of a new one, and a start time.
pub(crate) fn replace(
    conn: &Connection,
    job: JobId,
    by: &NewJob,
    start_ms: i64,
    note: &'static str,
    now_ms: i64,
) -> Result<(), Failure> {
    let standing = find(conn, &job)?.standing;
    conn.prepare_cached(sql!("replace_job"))?.execute((
        Id(&job),
        by.payload.get(),
        by.priority.get(),
        by.max_attempts,
        by.timeout.map(whole_ms),
        by.traceparent.map(|it| it.to_string()),
    ))?;
    let options = Options {
        start_ms: Some(start_ms),
        priority: Some(by.priority.get()),
        max_attempts: Some(by.max_attempts),
    };
    apply(conn, &standing, &options, Some(note), now_ms).map(drop)
}

/// Applies new options to a job that does not run, with an entry in its history, and returns its state afterwards: a job that waits in a group may
/// now be the next one.
fn apply(
    conn: &Connection,
    standing: &Standing,
    options: &Options,
    note: Option<&str>,
    now_ms: i64,
) -> Result<JobState, Failure> {
    let state = standing.state;
    let waits = matches!(state, JobState::Blocked | JobState::Pending | JobState::RetryWait);
    conn.prepare_cached(sql!("edit_live"))?.execute((
        Id(&standing.job),
        options.priority,
        options.max_attempts,
        u8::from(waits),
        options.start_ms,
        now_ms,
    ))?;
    let mut transitions = Transitions::new(conn, now_ms)?;
    let ready_at_ms = options.start_ms.filter(|&start_ms| start_ms > now_ms);
    transitions.record(standing, &Step { ready_at_ms, note, ..Step::new(Verb::Edit, state) })?;
    match &standing.group {
        Some(group)
            if options.start_ms.is_some() && matches!(state, JobState::Blocked | JobState::Pending) =>
        {
            // Others of the group do not wait for its start any more.
            fill_all(conn, slice::from_ref(group), now_ms)?;
            Ok(find(conn, &standing.job)?.standing.state)
        }
        _ => Ok(state),
    }
}

fn invalid(invalid: InvalidJob) -> Failure {
    Failure::Told(StoreError::Invalid { index: 0, invalid })
}

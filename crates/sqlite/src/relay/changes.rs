//! State changes that are recorded as events, as requested by subscriptions. The triggers are created with the first request and dropped
//! with the last, so that a store without requests has no overhead.

use milepost_core::event::{Changes, RelayError};
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension};

use crate::error::Failure;

/// The sources of changes, with the statements that create and drop their triggers.
const RECORDED: [(&str, &str, &str); 2] = [
    (KIND, sql!("event/record_job_changes"), sql!("event/leave_job_changes")),
    (DAG, sql!("event/record_batch_changes"), sql!("event/leave_batch_changes")),
];
const KIND: &str = "kind";
const DAG: &str = "dag";

/// Replaces a subscription's requests by these changes.
pub(super) fn want(conn: &Connection, subscription: &str, changes: &Changes) -> Result<(), Failure> {
    let mut find = conn.prepare_cached(sql!("relay/subscription"))?;
    if find.query_row([subscription], |_| Ok(())).optional()?.is_none() {
        return Err(Failure::Told(RelayError::NoSuchSubscription(subscription.to_owned()).into()));
    }
    conn.prepare_cached(sql!("event/want_no_changes"))?.execute([subscription])?;
    let mut want = conn.prepare_cached(sql!("event/want_changes"))?;
    for (what, names) in [(KIND, &changes.kinds), (DAG, &changes.dags)] {
        for name in names {
            want.execute((subscription, what, name))?;
        }
    }
    Ok(record_wanted(conn)?)
}

/// Creates the triggers that any subscription needs, and drops the others.
pub(super) fn record_wanted(conn: &Connection) -> rusqlite::Result<()> {
    for (what, record, leave) in RECORDED {
        let is_wanted = conn.prepare_cached(sql!("event/is_change_wanted"))?.exists([what])?;
        conn.execute_batch(if is_wanted { record } else { leave })?;
    }
    Ok(())
}

//! Promise 12: a move from one store to another. That nothing is lost or doubled is what the other promises say about the new store.

use super::verdict::Findings;
use crate::record::{Outcome, Record, What};

/// Nothing that begins after the move has closed the old store is accepted there, and nothing that ends before it in the new store.
pub(super) fn old_store_is_closed(record: &Record, findings: &mut Findings) {
    let moved = record.operations.iter().find(|operation| matches!(operation.what, What::Move));
    let Some((moved, closed_ms)) = moved.and_then(|moved| Some((moved, moved.ended_ms?))) else { return };
    for operation in record.operations.iter().filter(|operation| operation.outcome == Outcome::Ok) {
        match operation.store.as_deref() {
            Some("old") => findings.check(operation.began_ms <= closed_ms, || {
                format!("the old store accepted a call of {} after it was closed", operation.client)
            }),
            Some("new") => {
                findings.check(operation.ended_ms.is_none_or(|ended| ended >= moved.began_ms), || {
                    format!("the new store accepted a call of {} before the move", operation.client)
                });
            }
            _ => {}
        }
    }
}

//! Promise 21: the audit.

use std::collections::HashMap;

use super::losses::{Losses, Subject};
use super::verdict::Findings;
use crate::record::{Outcome, Record, Row, What};

/// Every acknowledged change has exactly one entry; what failed or changed nothing has none.
pub(super) fn one_entry(record: &Record, findings: &mut Findings) {
    let mut entries: HashMap<&str, u32> = HashMap::new();
    for row in &record.rows {
        if let Row::Audit { mark } = row {
            *entries.entry(mark).or_default() += 1;
        }
    }
    let losses = Losses::of(record);
    for operation in &record.operations {
        let What::Act { mark, changed, .. } = &operation.what else { continue };
        let found = entries.remove(&**mark).unwrap_or_default();
        let holds = match (operation.outcome, changed) {
            (Outcome::Ok, true) => {
                let is_lost = losses.explains(Subject::Mark(mark), operation).is_some();
                found == 1 || found == 0 && is_lost
            }
            (Outcome::Ok, false) | (Outcome::Failed, _) => found == 0,
            (Outcome::Unknown, _) => found <= 1,
        };
        findings
            .check(holds, || format!("{mark}, {:?}, has {found} entries in the audit", operation.outcome));
    }
}

//! The reasons why Milepost's SQL functions refuse a call.

/// The reason why a SQL function refused a call, by SQLSTATE. The message of the error, and its `DETAIL`, describe the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// `MP001`: a job cannot be accepted as it is, a parameter of a bulk job is missing, or a reason or a wait is too long.
    InvalidJob,
    /// `MP002`: there is no such job.
    NoSuchJob,
    /// `MP003`: the state of the job, which is in `DETAIL`, does not allow it.
    IllegalState,
    /// `MP004`: the store is being filled by `milepost move`.
    StoreMoves,
    /// `MP007`: there is no bulk job of that name.
    NoSuchBulk,
    /// `MP008`: the bulk job takes its targets from a file.
    BulkFromFile,
    /// `MP010`: there is no such DAG, version, batch or task.
    NoSuchBatch,
    /// `MP011`: the input of a batch, or the result of a job, cannot be accepted, or the DAG has a schema for inputs, which SQL cannot check.
    InvalidInput,
    /// `MP012`: the state of the batch or the task, which is in `DETAIL`, does not allow it.
    IllegalBatchState,
    /// `MP013`: the batch was rerun in between.
    OtherGeneration,
    /// `MP014`: nothing would be rerun.
    NothingToRerun,
    /// `MP015`: an event cannot be accepted as it is.
    InvalidEvent,
    /// `MP016`: the sequence of an event does not follow the last one, which is in `DETAIL`.
    OutOfSequence,
    /// `MP017`: the id belongs to an event with other content.
    EventIdTaken,
    /// `MP018`: a call of the inbox cannot be accepted as it is.
    InvalidInbox,
    /// `MP019`: there is no such dead letter, or it cannot wait again.
    NoSuchDeadLetter,
}

impl Refusal {
    /// All reasons with their SQLSTATEs.
    pub const ALL: [(&'static str, Self); 16] = [
        ("MP001", Self::InvalidJob),
        ("MP002", Self::NoSuchJob),
        ("MP003", Self::IllegalState),
        ("MP004", Self::StoreMoves),
        ("MP007", Self::NoSuchBulk),
        ("MP008", Self::BulkFromFile),
        ("MP010", Self::NoSuchBatch),
        ("MP011", Self::InvalidInput),
        ("MP012", Self::IllegalBatchState),
        ("MP013", Self::OtherGeneration),
        ("MP014", Self::NothingToRerun),
        ("MP015", Self::InvalidEvent),
        ("MP016", Self::OutOfSequence),
        ("MP017", Self::EventIdTaken),
        ("MP018", Self::InvalidInbox),
        ("MP019", Self::NoSuchDeadLetter),
    ];

    /// Returns the reason for this SQLSTATE; `None` for errors of PostgreSQL itself.
    #[must_use]
    pub fn of(sqlstate: &str) -> Option<Self> {
        Self::ALL.iter().find(|(its, _)| *its == sqlstate).map(|(_, refusal)| *refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_sqlstate_has_a_reason() {
        let page = include_str!("../../../../docs/SQL.md");
        let listed: Vec<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `MP")?.split_once('`').map(|(code, _)| code))
            .collect();
        assert_eq!(listed.len(), Refusal::ALL.len(), "{listed:?}");
        for code in listed {
            assert!(Refusal::of(&format!("MP{code}")).is_some(), "MP{code}");
        }
        assert_eq!(Refusal::of("40001"), None);
    }
}

//! What happened in a run: one JSON object on a line for each operation, effect and row.

mod effect;
mod loss;
mod operation;
mod row;

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

pub use effect::Effect;
pub use loss::{Loss, LostRow};
pub use operation::{AskedJob, EndAnswer, Operation, Outcome, What};
pub use row::{Change, Job, Row, Task};

/// One line of a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// What somebody asked for.
    Operation(Operation),
    /// What the witness saw.
    Effect(Effect),
    /// A row of the store at the end.
    Row(Row),
}

/// The record of a run.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// What clients, workers and operators asked for.
    pub operations: Vec<Operation>,
    /// What the witness saw, in the order in which it saw it. No fault touches the witness.
    pub effects: Vec<Effect>,
    /// The rows of the store after all faults have stopped and all work was done.
    pub rows: Vec<Row>,
}

impl Record {
    /// Reads a record. Empty lines are skipped.
    ///
    /// # Errors
    /// When reading fails, or for the first line that is not part of a record, with its number.
    pub fn read(from: impl BufRead) -> io::Result<Self> {
        let mut record = Self::default();
        for (number, line) in from.lines().enumerate() {
            let line = line?;
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str(&line) {
                Ok(Line::Operation(operation)) => record.operations.push(operation),
                Ok(Line::Effect(effect)) => record.effects.push(effect),
                Ok(Line::Row(row)) => record.rows.push(row),
                Err(error) => return Err(io::Error::other(format!("line {}: {error}", number + 1))),
            }
        }
        Ok(record)
    }

    /// Writes the record, one object on a line.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let operations = self.operations.iter().cloned().map(Line::Operation);
        let effects = self.effects.iter().cloned().map(Line::Effect);
        let rows = self.rows.iter().cloned().map(Line::Row);
        for line in operations.chain(effects).chain(rows) {
            serde_json::to_writer(&mut to, &line)?;
            to.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Returns the jobs of the store.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.rows.iter().filter_map(|row| if let Row::Job(job) = row { Some(job) } else { None })
    }

    /// Returns the state changes of jobs, in the order of the store's log.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.rows.iter().filter_map(|row| if let Row::Change(change) = row { Some(change) } else { None })
    }

    /// Returns whether ended jobs may be missing.
    #[must_use]
    pub fn has_retention(&self) -> bool {
        self.rows.iter().any(|row| matches!(row, Row::Retention))
    }

    /// Returns how many runs were taken away because their worker had lost its lease.
    #[must_use]
    pub fn rescued(&self) -> usize {
        self.changes().filter(|change| change.error_code.as_deref() == Some("lease_lost")).count()
    }

    /// Returns how many ends were refused because another run owned the job.
    #[must_use]
    pub fn fenced(&self) -> usize {
        let is_fenced =
            |call: &&Operation| matches!(call.what, What::End { answer: Some(EndAnswer::Fenced), .. });
        self.operations.iter().filter(is_fenced).count()
    }

    /// Returns the losses of commits, in their order.
    pub fn losses(&self) -> impl Iterator<Item = &Loss> {
        self.rows.iter().filter_map(|row| if let Row::Loss(loss) = row { Some(loss) } else { None })
    }

    /// Returns the tasks of batches.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.rows.iter().filter_map(|row| if let Row::Task(task) = row { Some(task) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let record = Record {
            operations: vec![Operation {
                client: "a".to_owned(),
                began_ms: 1,
                ended_ms: None,
                outcome: Outcome::Unknown,
                store: None,
                what: What::StartBatch { batch: "b".to_owned(), key: Some("k".to_owned()), version: 1 },
            }],
            effects: vec![Effect::Began { job: "j".to_owned(), token: 1, at_ms: 2 }],
            rows: vec![Row::Schedule { name: "s".to_owned(), due: vec!["10:00".to_owned()] }],
        };
        let mut text = Vec::new();
        record.write(&mut text).unwrap();
        let again = Record::read(&*text).unwrap();
        let mut same = Vec::new();
        again.write(&mut same).unwrap();
        assert_eq!((text, again.rows.len()), (same, 1));
    }

    #[test]
    fn a_line_that_is_not_part_of_a_record_is_named() {
        let error = Record::read("\n{\"line\":\"row\"}\n".as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with("line 2: "), "{error}");
    }
}

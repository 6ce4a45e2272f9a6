//! The witness: files to which every process appends what it does. No fault touches them.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::record::{Effect, Line, Operation, Outcome, Record, What};

/// One entry of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// When it was written, in nanoseconds since 1970. The entries of all files are ordered by it.
    at_ns: u64,
    /// The number of an operation in its file. A later entry with the same number replaces an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(flatten)]
    line: Line,
}

/// A file of the witness. Each entry is one write to a file that is only appended to, so that a killed process loses none.
#[derive(Debug)]
pub struct Witness {
    name: String,
    file: File,
    operations: AtomicU64,
}

/// An operation that has begun.
#[derive(Debug)]
pub struct Begun {
    number: u64,
    began_ms: i64,
}

impl Witness {
    /// Creates the file of the process with this name.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(format!("{name}.jsonl"));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { name: name.to_owned(), file, operations: AtomicU64::new(0) })
    }

    /// Records an effect.
    ///
    /// # Panics
    /// When the file cannot be written: without a witness, nothing can be decided.
    pub fn saw(&self, effect: Effect) {
        self.write(None, Line::Effect(effect));
    }

    /// Records that an operation begins. Until it [ends](Self::ended), its outcome is unknown.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn begins(&self, what: &What) -> Begun {
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        let begun = Begun { number, began_ms: now_ms() };
        self.note(&begun, None, Outcome::Unknown, what.clone());
        begun
    }

    /// Records how an operation ended.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn ended(&self, begun: &Begun, outcome: Outcome, what: What) {
        self.note(begun, Some(now_ms()), outcome, what);
    }

    fn note(&self, begun: &Begun, ended_ms: Option<i64>, outcome: Outcome, what: What) {
        let client = self.name.clone();
        let operation = Operation { client, began_ms: begun.began_ms, ended_ms, outcome, store: None, what };
        self.write(Some(begun.number), Line::Operation(operation));
    }

    fn write(&self, number: Option<u64>, line: Line) {
        let mut text = serde_json::to_vec(&Entry { at_ns: now_ns(), number, line }).expect("JSON");
        text.push(b'\n');
        (&self.file).write_all(&text).expect("the witness cannot write");
    }
}

/// Reads all files of a folder.
///
/// # Errors
/// When a file cannot be read.
pub fn read(folder: &Path) -> io::Result<Record> {
    let mut effects: Vec<(u64, Effect)> = Vec::new();
    let mut operations: HashMap<(usize, u64), (u64, Operation)> = HashMap::new();
    for (file, found) in fs::read_dir(folder)?.enumerate() {
        let text = fs::read_to_string(found?.path())?;
        for line in text.lines() {
            let Entry { at_ns, number, line } = serde_json::from_str(line)?;
            match (line, number) {
                (Line::Effect(effect), _) => effects.push((at_ns, effect)),
                (Line::Operation(operation), Some(number)) => {
                    operations.insert((file, number), (at_ns, operation));
                }
                _ => {}
            }
        }
    }
    effects.sort_by_key(|(at_ns, _)| *at_ns);
    let mut operations: Vec<_> = operations.into_values().collect();
    operations.sort_by_key(|(at_ns, _)| *at_ns);
    Ok(Record {
        operations: operations.into_iter().map(|(_, operation)| operation).collect(),
        effects: effects.into_iter().map(|(_, effect)| effect).collect(),
        rows: Vec::new(),
    })
}

/// Returns the time in milliseconds since 1970.
#[must_use]
pub fn now_ms() -> i64 {
    i64::try_from(now_ns() / 1_000_000).unwrap_or(i64::MAX)
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_without_an_end_is_unknown_and_effects_are_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) =
            (Witness::create(folder.path(), "a").unwrap(), Witness::create(folder.path(), "b").unwrap());
        let resume = |run: &str| What::ResumeBulk { run: run.to_owned() };
        let first = a.begins(&resume("1"));
        b.begins(&resume("2"));
        a.ended(&first, Outcome::Ok, resume("1"));
        for (witness, run) in [(&b, "x"), (&a, "y"), (&b, "z")] {
            witness.saw(Effect::Target { run: run.to_owned(), key: String::new() });
        }
        let record = read(folder.path()).unwrap();
        let outcomes: Vec<Outcome> = record.operations.iter().map(|operation| operation.outcome).collect();
        assert_eq!(outcomes.len(), 2);
        assert!(outcomes.contains(&Outcome::Ok) && outcomes.contains(&Outcome::Unknown));
        let runs: Vec<&str> = record
            .effects
            .iter()
            .map(|effect| if let Effect::Target { run, .. } = effect { run.as_str() } else { "" })
            .collect();
        assert_eq!(runs, ["x", "y", "z"]);
    }
}

//! The witness: what every process records about itself, in a file that no fault touches, or in memory for simulations.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::record::{Effect, Line, Operation, Outcome, Record, What};

/// One entry of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    /// When it was written, in nanoseconds since 1970. The entries of all files are ordered by it.
    at_ns: u64,
    /// The number of an operation of its process. A later entry with the same number replaces an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(flatten)]
    line: Line,
}

/// The entries of several processes, in memory, in the order in which they were written.
#[derive(Clone, Debug)]
pub struct Notes {
    entries: Arc<Mutex<Vec<(String, Entry)>>>,
    /// Returns the time since 1970.
    clock: fn() -> Duration,
}

impl Notes {
    /// Begins notes with the times of this clock, which returns the time since 1970.
    #[must_use]
    pub fn new(clock: fn() -> Duration) -> Self {
        Self { entries: Arc::default(), clock }
    }

    /// Returns what was recorded so far.
    #[must_use]
    pub fn record(&self) -> Record {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        collect(entries.iter().cloned())
    }
}

/// Where a process records.
#[derive(Debug)]
enum Paper {
    /// Each entry is one write to a file that is only appended to, so that a killed process loses none.
    File {
        file: File,
        /// When the machine was started, by its right clock, if the process sees a wrong one.
        boot: Option<Duration>,
    },
    /// For simulations, whose processes are tasks.
    Memory(Notes),
}

/// What a process records.
#[derive(Debug)]
pub struct Witness {
    name: String,
    /// The store that it calls, if there are two.
    store: Option<String>,
    paper: Paper,
    operations: AtomicU64,
    is_dead: AtomicBool,
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
        Ok(Self::new(name, Paper::File { file, boot: None }))
    }

    /// Records the time since the machine was started at this time since 1970, instead of the time that the process sees.
    #[must_use]
    pub fn with_time_since(self, boot: Duration) -> Self {
        let paper = match self.paper {
            Paper::File { file, .. } => Paper::File { file, boot: Some(boot) },
            memory @ Paper::Memory(_) => memory,
        };
        Self { paper, ..self }
    }

    /// Records that all operations call this store.
    #[must_use]
    pub fn of_store(self, store: Option<String>) -> Self {
        Self { store, ..self }
    }

    /// Records for the process with this name in memory.
    #[must_use]
    pub fn in_memory(notes: &Notes, name: &str) -> Self {
        Self::new(name, Paper::Memory(notes.clone()))
    }

    fn new(name: &str, paper: Paper) -> Self {
        let (name, store) = (name.to_owned(), None);
        Self { name, store, paper, operations: AtomicU64::new(0), is_dead: AtomicBool::new(false) }
    }

    /// Returns the name of the process.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ignores everything from now on: the process is dead, even if some of its tasks still run.
    pub fn die(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
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
        let begun = Begun { number, began_ms: self.now_ms() };
        self.note(&begun, None, Outcome::Unknown, what.clone());
        begun
    }

    /// Records how an operation ended.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn ended(&self, begun: &Begun, outcome: Outcome, what: What) {
        self.note(begun, Some(self.now_ms()), outcome, what);
    }

    /// Returns the time in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        i64::try_from(self.now().as_millis()).unwrap_or(i64::MAX)
    }

    fn now(&self) -> Duration {
        match &self.paper {
            Paper::File { boot: Some(boot), .. } => *boot + since_boot(),
            Paper::File { .. } => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            Paper::Memory(notes) => (notes.clock)(),
        }
    }

    fn note(&self, begun: &Begun, ended_ms: Option<i64>, outcome: Outcome, what: What) {
        let (client, store) = (self.name.clone(), self.store.clone());
        let operation = Operation { client, began_ms: begun.began_ms, ended_ms, outcome, store, what };
        self.write(Some(begun.number), Line::Operation(operation));
    }

    fn write(&self, number: Option<u64>, line: Line) {
        if self.is_dead.load(Ordering::Relaxed) {
            return;
        }
        let at_ns = u64::try_from(self.now().as_nanos()).unwrap_or(u64::MAX);
        let entry = Entry { at_ns, number, line };
        match &self.paper {
            Paper::File { file, .. } => {
                let mut text = serde_json::to_vec(&entry).expect("JSON");
                text.push(b'\n');
                (&*file).write_all(&text).expect("the witness cannot write");
            }
            Paper::Memory(notes) => {
                let mut entries = notes.entries.lock().unwrap_or_else(PoisonError::into_inner);
                entries.push((self.name.clone(), entry));
            }
        }
    }
}

/// Returns the time since the machine was started, by a clock that cannot be set.
fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

/// Reads all files of a folder.
///
/// # Errors
/// When a file cannot be read.
pub fn read(folder: &Path) -> io::Result<Record> {
    let mut entries = Vec::new();
    for found in fs::read_dir(folder)? {
        let path = found?.path();
        for line in fs::read_to_string(&path)?.lines() {
            entries.push((path.display().to_string(), serde_json::from_str(line)?));
        }
    }
    Ok(collect(entries.into_iter()))
}

/// Makes a record of the entries of several processes, each with the name of its process.
fn collect(entries: impl Iterator<Item = (String, Entry)>) -> Record {
    let mut effects: Vec<(u64, Effect)> = Vec::new();
    let mut operations: BTreeMap<(String, u64), (u64, Operation)> = BTreeMap::new();
    for (process, Entry { at_ns, number, line }) in entries {
        match (line, number) {
            (Line::Effect(effect), _) => effects.push((at_ns, effect)),
            (Line::Operation(operation), Some(number)) => {
                operations.insert((process, number), (at_ns, operation));
            }
            _ => {}
        }
    }
    effects.sort_by_key(|(at_ns, _)| *at_ns);
    let mut operations: Vec<_> = operations.into_values().collect();
    operations.sort_by_key(|(at_ns, _)| *at_ns);
    Record {
        operations: operations.into_iter().map(|(_, operation)| operation).collect(),
        effects: effects.into_iter().map(|(_, effect)| effect).collect(),
        rows: Vec::new(),
    }
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

//! The trace of a run: two runs with the same trace were the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use milepost_chaos::record::Record;
use sha2::{Digest, Sha256};

use crate::machine;

/// The length of an id as text.
const ID_CHARS: usize = 36;

/// A hash of every call of a store, with its process and its virtual time, and of the record.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<(Sha256, u64)>>);

impl Trace {
    /// Adds a call.
    pub fn note(&self, process: usize, call: &str) {
        let mut trace = self.lock();
        trace.0.update(process.to_le_bytes());
        trace.0.update(call.as_bytes());
        trace.0.update(machine::elapsed().as_nanos().to_le_bytes());
        trace.1 += 1;
    }

    /// Returns the number of calls.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.lock().1
    }

    /// Adds a record, and returns the hash. Ids are random and are replaced by the order of their first appearance.
    ///
    /// # Panics
    /// When the record cannot be written as JSON.
    #[must_use]
    pub fn hash(&self, record: &Record) -> String {
        let mut text = Vec::new();
        record.write(&mut text).expect("JSON");
        let mut trace = self.lock();
        trace.0.update(without_ids(&String::from_utf8_lossy(&text)));
        trace.0.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn lock(&self) -> MutexGuard<'_, (Sha256, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces each id by the number of its first appearance.
fn without_ids(text: &str) -> String {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dash) = rest.find('-') {
        let id = dash.checked_sub(8).and_then(|at| Some((at, rest.get(at..at + ID_CHARS)?)));
        match id.filter(|(_, id)| is_id(id)) {
            Some((at, id)) => {
                let next = numbers.len();
                let number = *numbers.entry(id).or_insert(next);
                out.push_str(&rest[..at]);
                out.push_str(&number.to_string());
                rest = &rest[at + ID_CHARS..];
            }
            None => {
                out.push_str(&rest[..=dash]);
                rest = &rest[dash + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn is_id(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_id_gets_the_same_number() {
        let (a, b) = ("01a31893-3e80-7736-b6d1-beb1fe3da833", "01a31893-3e80-7736-b6d1-beb1fe3da834");
        assert_eq!(without_ids(&format!("x-{a} {b} {a}-y {}", &a[1..])), format!("x-0 1 0-y {}", &a[1..]));
    }
}

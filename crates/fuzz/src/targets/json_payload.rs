//! JSON of callers, as payloads of jobs, and the decoders that read it afterwards.

use std::cell::RefCell;

use milepost_core::job::error::InvalidJob;
use milepost_core::job::{NewJob, PAYLOAD_DEPTH_MAX};
use milepost_core::json::{Exact, is_same_json};
use rusqlite::Connection;
use serde_json::Value;

use crate::check;

/// The size limit of payloads in this target.
const BYTES_MAX: usize = 4096;

thread_local! {
    static SQLITE: RefCell<Connection> = RefCell::new(Connection::open_in_memory().expect("memory is available"));
}

/// Checks a text as a payload. Every decoder reads an accepted payload, and a value is the same after it was read and written.
///
/// # Panics
/// A property does not hold.
pub fn target(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let exact = Exact::read(text);
    let checked =
        NewJob::from_json("mail", text.to_owned()).and_then(|job| job.check(BYTES_MAX).map(|()| job));
    let payload = match checked {
        Ok(job) => job.payload,
        Err(invalid) => return check_refused(text, &invalid),
    };
    let payload = payload.get();
    assert!(payload.len() <= BYTES_MAX);
    let value: Value = serde_json::from_str(payload).expect("an accepted payload can be decoded");
    assert!(depth(&value) <= PAYLOAD_DEPTH_MAX);
    assert!(!holds_nul(&value), "an accepted payload has a NUL character");
    let exact = exact.expect("an accepted payload has exact numbers");
    let printed = exact.to_string();
    // Repeated names are one member after a value was read.
    assert!(is_same_json(&printed, payload), "{payload} is written as {printed}");
    assert_eq!(Exact::read(&printed).expect("written JSON can be read"), exact);
    let rounded = exact.rounded();
    assert!(is_same_json(&rounded.to_string(), &value.to_string()), "{payload}: {rounded} and {value}");
    check_sqlite(payload);
}

fn check_refused(text: &str, invalid: &InvalidJob) {
    check::message(&invalid.to_string());
    if let InvalidJob::TooDeep { depth, .. } = invalid {
        assert!(*depth > PAYLOAD_DEPTH_MAX);
    }
    if let InvalidJob::PayloadTooLarge { bytes, .. } = invalid {
        assert!(*bytes > BYTES_MAX && (*bytes == text.trim_ascii().len() || text.contains(['e', 'E'])));
    }
}

/// SQLite reads the same value as the decoder of Rust.
fn check_sqlite(payload: &str) {
    let written: String = SQLITE.with_borrow(|sqlite| {
        let row = sqlite
            .query_row("select json_valid(?1), json(?1)", [payload], |row| Ok((row.get(0)?, row.get(1)?)));
        let (is_valid, written): (bool, String) = row.expect("SQLite reads an accepted payload");
        assert!(is_valid, "SQLite refuses {payload}");
        written
    });
    assert!(is_same_json(&written, payload), "SQLite writes {payload} as {written}");
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(members) => members.iter().any(|(name, value)| name.contains('\0') || holds_nul(value)),
        _ => false,
    }
}

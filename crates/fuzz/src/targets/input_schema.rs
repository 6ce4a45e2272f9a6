//! JSON schemas of inputs of batches.

use allocation_counter::measure;
use milepost_core::dag::schema::InputSchema;
use serde_json::Value;

use crate::check;

/// The most bytes that may be in use, and the most allocations, for a schema and an input of a few kilobytes.
const BYTES_MAX: u64 = 128 * 1024 * 1024;
const ALLOCATIONS_MAX: u64 = 20_000_000;

/// Compiles a schema, and checks an input, which precedes it on its first line. The work is bounded.
///
/// # Panics
/// A property does not hold.
pub fn target(input: &[u8]) {
    let Some([value, schema]) = check::lines::<2>(input) else { return };
    let (Ok(value), Ok(schema)) =
        (serde_json::from_str::<Value>(value), serde_json::from_str::<Value>(schema))
    else {
        return;
    };
    let mut messages = Vec::new();
    let used = measure(|| match InputSchema::compile(&schema) {
        Ok(compiled) => messages.extend(compiled.check(&value).err().map(|invalid| invalid.to_string())),
        Err(invalid) => messages.push(invalid.to_string()),
    });
    messages.iter().for_each(|why| check::message(why));
    assert!(used.bytes_max <= BYTES_MAX, "{} bytes for {schema}", used.bytes_max);
    assert!(used.count_total <= ALLOCATIONS_MAX, "{} allocations for {schema}", used.count_total);
}

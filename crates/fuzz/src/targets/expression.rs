//! CEL expressions of conditions and lists.

use allocation_counter::measure;
use milepost_core::dag::expression::{
    Expression, LINKS_MAX, LITTLE_STEPS_MAX, NESTING_MAX, Scope, TEXT_BYTES_MAX, TaskValue, Values,
};
use milepost_core::dag::rule::Outcome;
use milepost_core::json::Exact;

use crate::check;

/// The most bytes that may be in use for each step of an evaluation. A step pays for up to 64 bytes of text, which are copied at most a few
/// times.
const BYTES_PER_STEP: u64 = 2_000;
/// The most allocations for each step.
const ALLOCATIONS_PER_STEP: u64 = 40;
/// What an evaluation may need in addition: conversions of the variables.
const BYTES_BASE: u64 = 4 * 1024 * 1024;
const ALLOCATIONS_BASE: u64 = 100_000;

/// Compiles an expression and evaluates it with an input, which follows it on the next line. An accepted text keeps its limits, and the work
/// of an evaluation is bounded by its steps.
///
/// # Panics
/// A property does not hold.
pub fn target(input: &[u8]) {
    let Some([text, values]) = check::lines::<2>(input) else { return };
    let expression = match Expression::compile(text) {
        Ok(expression) => expression,
        Err(invalid) => return check::message(&invalid.to_string()),
    };
    assert!(text.len() <= TEXT_BYTES_MAX, "an accepted expression has {} bytes", text.len());
    let links = text.bytes().filter(|byte| b"+-*/%<>=!?.[({".contains(byte)).count();
    assert!(links <= LINKS_MAX && NESTING_MAX < LINKS_MAX);
    assert_eq!(expression.text(), text);
    let values = Exact::read(values).unwrap_or_default();
    let some = with_steps(&expression, &values, LITTLE_STEPS_MAX);
    let more = with_steps(&expression, &values, LITTLE_STEPS_MAX * 2);
    if let Ok(some) = some {
        assert_eq!(more.as_ref(), Ok(&some), "more steps give another value");
    }
}

/// Evaluates an expression with this number of steps; returns its value as JSON text.
fn with_steps(expression: &Expression, input: &Exact, steps: u64) -> Result<String, String> {
    let mut result = None;
    let used = measure(|| {
        let output = Exact::from(serde_json::json!({"rows": [{"id": 7}, {"id": 8}], "text": "done"}));
        let tasks = [TaskValue { key: "extract", state: Outcome::Succeeded, output: &output }];
        let tick = Exact::from(serde_json::json!({"date": "2026-11-22"}));
        let scope = Scope::new(&Values { input, tick: &tick, tasks: &tasks, item: None, event: None }, steps);
        let value = expression.value(&scope);
        let _ = expression.list(&scope);
        let _ = expression.holds(&scope);
        result = Some(value);
    });
    assert!(
        used.bytes_max <= BYTES_BASE + steps * BYTES_PER_STEP,
        "{} bytes for {expression:?}",
        used.bytes_max
    );
    assert!(
        used.count_total <= ALLOCATIONS_BASE + steps * ALLOCATIONS_PER_STEP,
        "{} allocations for {expression:?}",
        used.count_total
    );
    let value = result.expect("the expression was evaluated").map_err(|error| error.to_string());
    let printed = value.as_ref().map(Exact::to_string);
    match (&value, &printed) {
        (Ok(value), Ok(printed)) => {
            // Escapes take up to six bytes for one.
            assert!(printed.len() as u64 <= steps * 64 * 6, "a value of {} bytes", printed.len());
            let again = Exact::read(printed).expect("a value is JSON");
            assert!(again == *value || printed.contains("\\u0000"), "{printed} is read as {again}");
        }
        (Err(why), _) => check::message(why),
        _ => {}
    }
    printed.map_err(Clone::clone)
}

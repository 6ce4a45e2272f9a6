//! Templates: payloads with embedded expressions.

use milepost_core::dag::expression::{LITTLE_STEPS_MAX, Scope, Values};
use milepost_core::dag::template::{RenderError, Template};
use milepost_core::json::Exact;
use serde_json::Value;

use crate::check;

/// The size limit of all values that are inserted.
const BYTES_MAX: usize = 2_000;

/// Compiles a template, and renders it with an input, which precedes it on its first line. The payload has a bounded size, and a template
/// without expressions is its own payload.
///
/// # Panics
/// A property does not hold.
pub fn target(input: &[u8]) {
    let Some([values, text]) = check::lines::<2>(input) else { return };
    let Ok(root) = serde_json::from_str::<Value>(text) else { return };
    let template = match Template::compile(&root) {
        Ok(template) => template,
        Err(invalid) => return check::message(&invalid.to_string()),
    };
    let (values, empty) = (Exact::read(values).unwrap_or_default(), Exact::default());
    let scope = Scope::new(
        &Values { input: &values, tick: &empty, tasks: &[], item: None, event: None },
        LITTLE_STEPS_MAX,
    );
    match template.render(&scope, BYTES_MAX) {
        Ok(payload) => {
            let payload = payload.to_string();
            assert!(payload.len() <= root.to_string().len() + 6 * BYTES_MAX, "{} bytes", payload.len());
            if template.is_plain() {
                assert_eq!(payload, root.to_string(), "a template without expressions was changed");
            }
            serde_json::from_str::<Value>(&payload).expect("a payload is JSON");
        }
        Err(error) => {
            assert!(!template.is_plain(), "{root} cannot be rendered: {error}");
            check::message(&error.to_string());
            if let RenderError::TooLarge { bytes_max } = error {
                assert_eq!(bytes_max, BYTES_MAX);
            }
        }
    }
}

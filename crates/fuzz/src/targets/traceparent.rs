//! The trace header `traceparent`.

use milepost_core::trace::Traceparent;

use crate::check;

/// Parses a `traceparent`. Its printed form is version 00, with the same trace and span, and is parsed to the same value.
///
/// # Panics
/// A property does not hold.
pub fn target(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let as_json = serde_json::to_string(text).expect("a text can be written");
    let decoded: Option<Traceparent> = serde_json::from_str(&as_json).ok();
    let parsed = match text.parse::<Traceparent>() {
        Ok(parsed) => parsed,
        Err(invalid) => {
            assert_eq!(decoded, None);
            return check::message(&invalid.to_string());
        }
    };
    assert_eq!(decoded, Some(parsed));
    let printed = parsed.to_string();
    check::round_trip(&parsed, &printed, str::parse);
    assert!(printed.len() == 55 && printed.starts_with("00-") && printed[3..52] == text[3..52], "{printed}");
    assert!(printed.ends_with("-00") || printed.ends_with("-01"), "{printed}");
}

//! Properties that several targets check.

use milepost_cli_support::output::printable;
use milepost_core::text::is_unprintable;

/// The most bytes of an error message. Messages repeat a part of the input, which must be bounded.
pub const MESSAGE_BYTES_MAX: usize = 2_000;

/// Checks that an error message is one bounded line, and has no control characters after the replacement that the output makes.
///
/// # Panics
/// It is not.
pub fn message(text: &str) {
    assert!(!text.trim().is_empty(), "an error message is empty");
    assert!(text.len() <= MESSAGE_BYTES_MAX, "an error message has {} bytes: {text:.300}", text.len());
    let shown = printable(text);
    assert!(!shown.contains(is_unprintable), "an error message has a line break or a tab: {text:?}");
}

/// Splits an input into this number of parts at its first line ends; the last part can have further lines. `None` if it has fewer parts or
/// is not UTF-8.
#[must_use]
pub fn lines<const PARTS: usize>(input: &[u8]) -> Option<[&str; PARTS]> {
    let text = std::str::from_utf8(input).ok()?;
    text.splitn(PARTS, '\n').collect::<Vec<_>>().try_into().ok()
}

/// Checks that a value, printed and parsed again, is the same.
///
/// # Panics
/// It is not.
pub fn round_trip<T: std::fmt::Debug + PartialEq, E: std::fmt::Debug>(
    value: &T,
    printed: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) {
    let again = parse(printed);
    assert!(
        again.as_ref().is_ok_and(|again| again == value),
        "{value:?} is printed as {printed:?}, which is parsed as {again:?}"
    );
}

//! Checks of JSON text from callers. They scan the text and rarely parse it, because every job, event and batch is checked.

mod exact;
mod plain;
mod same;
mod table;

pub use self::exact::Exact;
pub(crate) use self::exact::{digits, large_number, mark};
pub use self::plain::{plain_members, plain_option, plain_value};
pub use self::same::is_same_json;
pub use self::table::Table;
use crate::job::error::InvalidJob;

/// The maximum nesting depth of a payload: JSON readers commonly stop at 128 levels, and the message around a payload adds some levels.
pub const PAYLOAD_DEPTH_MAX: usize = 120;

/// The beginning of the member names with which `serde_json` passes numbers and unparsed text between its own types. An object that begins with
/// such a member would be read as a number, or as the JSON that the member contains.
const RESERVED_MEMBERS: &str = "$serde_json::private::";

/// Rejects JSON text that a store cannot keep or that some JSON readers cannot read. Payloads of jobs and events, inputs, results and
/// checkpoints are all checked here. `bytes_max` limits both the size of the text as given and the size as a database writes it, with
/// all digits of each number.
pub(crate) fn check_payload(payload: &str, bytes_max: usize) -> Result<(), InvalidJob> {
    if payload.len() > bytes_max {
        return Err(InvalidJob::PayloadTooLarge { bytes: payload.len(), bytes_max });
    }
    let depth = depth(payload);
    if depth > PAYLOAD_DEPTH_MAX {
        return Err(InvalidJob::TooDeep { depth, depth_max: PAYLOAD_DEPTH_MAX });
    }
    if holds_nul(payload) {
        return Err(InvalidJob::Nul);
    }
    if has_reserved_member(payload) {
        return Err(InvalidJob::ReservedMember { prefix: RESERVED_MEMBERS });
    }
    check_values(payload, bytes_max)
}

/// Checks text that may not be JSON, and then checks it with [`check_payload`].
pub(crate) fn check_text(text: &str, bytes_max: usize) -> Result<(), InvalidJob> {
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map_err(|error| InvalidJob::NotJson { why: error.to_string() })?;
    check_payload(text, bytes_max)
}

/// Rejects unpaired surrogates and numbers that no double can represent. Parses the text only if it may contain one.
fn check_values(payload: &str, bytes_max: usize) -> Result<(), InvalidJob> {
    let has_large_number = has_large_number(payload);
    if !payload.contains("\\u") && !has_large_number {
        return Ok(());
    }
    let parsed = serde_json::from_str::<serde_json::Value>(payload);
    parsed.map_err(|error| InvalidJob::NotJson { why: error.to_string() })?;
    if has_large_number {
        let bytes = payload.len().saturating_add(digits_added(payload)?);
        if bytes > bytes_max {
            return Err(InvalidJob::PayloadTooLarge { bytes, bytes_max });
        }
    }
    Ok(())
}

/// The most digits after the decimal point of a number that is written without an exponent: those of PostgreSQL's `numeric`.
const FRACTION_DIGITS_MAX: i64 = 16_383;
/// The most digits before it. Floats have fewer, so only a zero with an exponent has more.
const WHOLE_DIGITS_MAX: i64 = 131_072;

/// Returns the number of digits that a database adds when it writes numbers with exponents in full.
fn digits_added(json: &str) -> Result<usize, InvalidJob> {
    let mut added = 0_usize;
    for (from, to) in exact::numbers(json) {
        let (mantissa, exponent) = json[from..to].split_once(['e', 'E']).unwrap_or((&json[from..to], "0"));
        let is_small = exponent.starts_with('-');
        let exponent: i64 =
            exponent.trim_start_matches('+').parse().unwrap_or(if is_small { i64::MIN } else { i64::MAX });
        let whole = mantissa.split('.').next().unwrap_or_default().trim_start_matches('-').len();
        let whole = i64::try_from(whole).unwrap_or(i64::MAX).saturating_add(exponent);
        if whole > WHOLE_DIGITS_MAX {
            let why = format!(
                "a number has {whole} digits before the decimal point; the most is {WHOLE_DIGITS_MAX}"
            );
            return Err(InvalidJob::NotJson { why });
        }
        let digits = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits = i64::try_from(digits).unwrap_or(i64::MAX).saturating_sub(exponent);
        if digits > FRACTION_DIGITS_MAX {
            let why = format!(
                "a number has {digits} digits after the decimal point; the most is {FRACTION_DIGITS_MAX}"
            );
            return Err(InvalidJob::NotJson { why });
        }
        added = added.saturating_add(usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX));
    }
    Ok(added)
}

/// Returns the bytes of JSON text with their offsets, and whether each belongs to a string (including its quotes).
fn bytes(json: &str) -> impl Iterator<Item = (usize, u8, bool)> {
    let (mut quoted, mut escaped) = (false, false);
    json.bytes().enumerate().map(move |(at, byte)| {
        let in_text = quoted || byte == b'"';
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ => {}
        }
        (at, byte, in_text)
    })
}

/// Returns whether an object has a member with a reserved name, also if characters of the name are escaped.
fn has_reserved_member(json: &str) -> bool {
    if !json.contains(RESERVED_MEMBERS) && !json.contains("\\u00") {
        return false;
    }
    strings(json).any(|(text, rest)| {
        rest.trim_start().starts_with(':')
            && (text.contains(RESERVED_MEMBERS) || text.contains("\\u00"))
            && serde_json::from_str::<String>(text).is_ok_and(|name| name.starts_with(RESERVED_MEMBERS))
    })
}

/// Returns the strings of JSON text with their quotes, each with the text that follows it.
fn strings(json: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = json;
    std::iter::from_fn(move || {
        let start = rest.find('"')?;
        let mut escaped = false;
        let end = rest.as_bytes()[start + 1..].iter().position(|byte| {
            let closes = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            closes
        })?;
        let (text, after) = rest[start..].split_at(end + 2);
        rest = after;
        Some((text, after))
    })
}

/// Returns JSON text without whitespace between its tokens.
pub(crate) fn without_blanks(json: &str) -> String {
    let kept = bytes(json).filter(|(_, byte, in_text)| *in_text || !byte.is_ascii_whitespace());
    // Only complete ASCII characters were removed.
    String::from_utf8(kept.map(|(_, byte, _)| byte).collect()).unwrap_or_else(|_| json.to_owned())
}

/// Returns whether there may be a number with an exponent, or with more digits than a float can hold.
fn has_large_number(json: &str) -> bool {
    const DIGITS_MAX: usize = 300;
    let mut digits = 0;
    json.bytes().any(|byte| {
        let is_exponent = matches!(byte, b'e' | b'E') && digits > 0;
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        is_exponent || digits > DIGITS_MAX
    })
}

/// Returns the number of nested levels of arrays and objects.
pub(crate) fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for (_, byte, in_text) in bytes(json) {
        match byte {
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns whether JSON text contains an escaped NUL: `\u0000` whose backslash is not itself escaped.
pub(crate) fn holds_nul(json: &str) -> bool {
    escaped_nuls(json).next().is_some()
}

/// Returns JSON text with every escaped NUL replaced by U+FFFD, for a database that cannot keep it.
#[must_use]
pub fn without_escaped_nul(json: &str) -> String {
    let mut replaced = String::with_capacity(json.len());
    let mut from = 0;
    for at in escaped_nuls(json) {
        replaced.push_str(&json[from..at]);
        replaced.push_str("\\ufffd");
        from = at + "\\u0000".len();
    }
    replaced + &json[from..]
}

/// Returns the positions of escaped NULs.
fn escaped_nuls(json: &str) -> impl Iterator<Item = usize> {
    json.match_indices("\\u0000").map(|(at, _)| at).filter(|&at| {
        let backslashes_before = json.as_bytes()[..at].iter().rev().take_while(|&&b| b == b'\\').count();
        backslashes_before % 2 == 0
    })
}

#[cfg(test)]
mod tests {
    use crate::job::error::InvalidJob;
    use crate::job::{NewJob, PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX};

    #[test]
    fn nul_characters_are_refused_but_escaped_backslashes_are_not() {
        let check = |text: &str| NewJob::from_json("mail", text.to_owned()).unwrap().check(PAYLOAD_BYTES_MAX);
        assert_eq!(check(r#"{"a":"x\u0000"}"#), Err(InvalidJob::Nul));
        assert_eq!(check(r#"{"a":"\\u0000"}"#), Ok(()));
        assert_eq!(check(r#"{"a":"\\\u0000"}"#), Err(InvalidJob::Nul));
        assert_eq!(
            super::without_escaped_nul(r#"["\u0000a\\u0000","\\\u0000"]"#),
            r#"["\ufffda\\u0000","\\\ufffd"]"#
        );
    }

    #[test]
    fn members_that_a_json_library_reads_as_other_values_are_refused() {
        let check = |text: &str| NewJob::from_json("mail", text.to_owned()).unwrap().check(PAYLOAD_BYTES_MAX);
        for bad in [
            r#"{"$serde_json::private::RawValue":"[1e400]"}"#,
            r#"[{"a":{"$serde_json::private::Number" : "7"}}]"#,
            r#"{"b\\":"\"","\u0024serde_json::private::\u0052awValue":"{}"}"#,
        ] {
            assert!(matches!(check(bad), Err(InvalidJob::ReservedMember { .. })), "{bad}");
        }
        for good in [
            r#"["$serde_json::private::RawValue"]"#,
            r#"{"a":"{\"$serde_json::private::RawValue\":1}"}"#,
            r#"{"a $serde_json::private::RawValue":"\u0024"}"#,
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn nesting_is_bounded_to_what_readers_can_read() {
        let nested = |levels: usize| {
            let text = format!("{}\"[[\\\"[\"{}", "[".repeat(levels), "]".repeat(levels));
            let job = NewJob::from_json("mail", text.clone()).unwrap();
            (job.check(PAYLOAD_BYTES_MAX), serde_json::from_str::<serde_json::Value>(&text).is_ok())
        };
        assert_eq!(nested(PAYLOAD_DEPTH_MAX), (Ok(()), true));
        let too_deep = InvalidJob::TooDeep { depth: 121, depth_max: 120 };
        assert_eq!(nested(121).0, Err(too_deep));
        assert!(!nested(128).1, "deeper payloads cannot be read");
        let flat = format!("[{}{{}}]", "[],".repeat(500));
        assert_eq!(NewJob::from_json("mail", flat).unwrap().check(PAYLOAD_BYTES_MAX), Ok(()));
    }

    #[test]
    fn numbers_count_with_all_their_digits() {
        let check =
            |text: &str, bytes_max| NewJob::from_json("mail", text.to_owned()).unwrap().check(bytes_max);
        let many = format!("[{}1]", "1e-300,".repeat(1000));
        assert!(
            matches!(check(&many, 100_000), Err(InvalidJob::PayloadTooLarge { bytes, .. }) if bytes > 300_000)
        );
        assert_eq!(check(&many, 400_000), Ok(()));
        assert_eq!(check("[\"1e-300\",\"\\\"1e9999\"]", 100), Ok(()), "strings are not numbers");
        assert_eq!(check("[1e-16383]", 100_000), Ok(()));
        let long = format!("0.{}1", "0".repeat(16_383));
        for bad in ["1e-16384", "[1.5E-16383]", "0e-99999999999999999999", "0e999999999999", &long] {
            assert!(matches!(check(bad, 100_000), Err(InvalidJob::NotJson { .. })), "{bad}");
        }
    }

    #[test]
    fn values_that_no_database_keeps_are_refused_and_others_are_not() {
        let check = |text: &str| NewJob::from_json("mail", text.to_owned()).unwrap().check(PAYLOAD_BYTES_MAX);
        let long = "7".repeat(400);
        for bad in [r#"{"a":"\ud800"}"#, r#""\udc00\ud800""#, "1e400", "[-1E999999]", &long] {
            assert!(matches!(check(bad), Err(InvalidJob::NotJson { .. })), "{bad}");
        }
        let long = format!("\"{long}\"");
        for good in [r#""\ud83d\ude00""#, r#""\\ud800""#, r#""a3e9999""#, "1e300", "0.5e-20", &long] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }
}

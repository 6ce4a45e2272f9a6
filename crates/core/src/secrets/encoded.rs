//! Recognition of a value in a text that is escaped as in JSON, HTML or URLs, also several times and with a mixture of escapes.

/// Returns the length of a value at the start of a text, in bytes.
pub(super) fn length_at(text: &str, value: &str) -> Option<usize> {
    let Some(wanted) = value.chars().next() else { return Some(0) };
    let rest = &value[wanted.len_utf8()..];
    let literal = text.chars().next().filter(|&c| c == wanted).map(char::len_utf8);
    let escaped = escaped(text).filter(|(c, _)| *c == wanted).map(|(_, length)| length);
    [literal, escaped]
        .into_iter()
        .flatten()
        .find_map(|length| Some(length + length_at(&text[length..], rest)?))
}

/// Returns the character of an escape at the start of a text, and the length of the escape in bytes.
fn escaped(text: &str) -> Option<(char, usize)> {
    match text.as_bytes().first()? {
        b'\\' => in_json(text),
        b'%' => in_url(text),
        b'&' => in_html(text),
        b'+' => Some((' ', 1)),
        _ => None,
    }
}

/// An escape of JSON, with more backslashes if the JSON is itself in a JSON string.
fn in_json(text: &str) -> Option<(char, usize)> {
    let begin = text.bytes().take_while(|byte| *byte == b'\\').count();
    let rest = &text[begin..];
    if let Some(digits) = rest.strip_prefix('u') {
        let unit = hex(digits.get(..4)?)?;
        if let Some(c) = char::from_u32(unit) {
            return Some((c, begin + 5));
        }
        let low = digits[4..].trim_start_matches('\\').strip_prefix('u')?;
        let low_unit = hex(low.get(..4)?)?;
        let c = char::decode_utf16([unit as u16, low_unit as u16]).next()?.ok()?;
        return Some((c, text.len() - low.len() + 4));
    }
    let c = match rest.chars().next() {
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some(c @ ('"' | '/' | '\'')) => c,
        // Two backslashes mean one.
        _ => return (begin >= 2).then_some(('\\', 2)),
    };
    Some((c, begin + 1))
}

/// The percent-encoded bytes of a character, where `%` may be encoded again.
fn in_url(text: &str) -> Option<(char, usize)> {
    let mut bytes = [0; 4];
    let mut rest = text;
    for n in 0..bytes.len() {
        rest = rest.strip_prefix('%')?;
        while rest.starts_with("25") && rest.get(2..4).is_some_and(|digits| hex(digits).is_some()) {
            rest = &rest[2..];
        }
        bytes[n] = u8::try_from(hex(rest.get(..2)?)?).ok()?;
        rest = &rest[2..];
        if let Ok(whole) = std::str::from_utf8(&bytes[..=n]) {
            return whole.chars().next().map(|c| (c, text.len() - rest.len()));
        }
    }
    None
}

/// A character reference of HTML.
fn in_html(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(12).position(|byte| byte == b';')?;
    let name = text.get(1..end)?;
    let c = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => hex(digits)?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((c, end + 1))
}

fn hex(digits: &str) -> Option<u32> {
    u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

//! Recognition of a value in a text that is escaped as in JSON, HTML or URLs. JSON and percent-encoding are also recognized if they were applied several
//! times, and each character may be escaped in another way.

/// The maximum number of backslashes of an escape: JSON in four levels of JSON strings.
const BACKSLASHES_MAX: usize = 16;

/// Returns whether a text that begins with this byte can begin with a value that begins with `first`.
pub(super) fn can_begin(byte: u8, first: u8) -> bool {
    byte == first || matches!(byte, b'\\' | b'%' | b'&' | b'+')
}

/// Returns the length of a value at the start of a text, in bytes.
pub(super) fn length_at(text: &str, value: &str) -> Option<usize> {
    // Where each reading of the text has ended so far: nearly always there is one.
    let (mut ends, mut next) = (vec![0], Vec::new());
    for wanted in value.chars() {
        next.clear();
        for &end in &ends {
            for length in lengths_of(&text[end..], wanted).into_iter().flatten() {
                next.push(end + length);
            }
        }
        if next.is_empty() {
            return None;
        }
        next.sort_unstable();
        next.dedup();
        std::mem::swap(&mut ends, &mut next);
    }
    ends.into_iter().max()
}

/// Returns the lengths of the readings of a text that begin with this character.
fn lengths_of(text: &str, wanted: char) -> [Option<usize>; 6] {
    let Some(first) = text.chars().next() else { return [None; 6] };
    let read =
        |escaped: Option<(char, usize)>| escaped.filter(|(c, _)| *c == wanted).map(|(_, length)| length);
    let literal = (first == wanted).then(|| first.len_utf8());
    let escaped = match first {
        '\\' => read(in_json(text)),
        '%' => read(in_url(text)),
        '&' => read(in_html(text)),
        '+' => read(Some((' ', 1))),
        _ => None,
    };
    // A backslash of JSON in one, two and three levels, and an encoded `%` that is followed by digits.
    let backslash = |count: usize| {
        let begins =
            wanted == '\\' && text.len() >= count && text.bytes().take(count).all(|byte| byte == b'\\');
        begins.then_some(count)
    };
    let percent = (wanted == '%' && text.starts_with("%25")).then_some(3);
    [literal, escaped, backslash(2), backslash(4), backslash(8), percent]
}

/// An escape of JSON, with more backslashes if the JSON is itself in a JSON string.
fn in_json(text: &str) -> Option<(char, usize)> {
    let begin = text.bytes().take(BACKSLASHES_MAX).take_while(|byte| *byte == b'\\').count();
    let rest = &text[begin..];
    if let Some(digits) = rest.strip_prefix('u') {
        let unit = hex(digits.get(..4)?)?;
        if let Some(c) = char::from_u32(unit) {
            return Some((c, begin + 5));
        }
        let low = digits[4..].trim_start_matches('\\').strip_prefix('u')?;
        let low_unit = hex(low.get(..4)?)?;
        let c =
            char::decode_utf16([u16::try_from(unit).ok()?, u16::try_from(low_unit).ok()?]).next()?.ok()?;
        return Some((c, text.len() - low.len() + 4));
    }
    let c = match rest.chars().next()? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' => '\u{8}',
        'f' => '\u{c}',
        c @ ('"' | '/' | '\'') => c,
        _ => return None,
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

//! Characters that can change how the text around them is displayed.

/// Returns whether `c` is a bidirectional formatting character, or a line or paragraph separator. With U+202E, for example, a terminal or
/// a browser displays a name that ends with `exe.jpg` as `gpj.exe`.
///
/// The characters are those of the Unicode property `Bidi_Control`, and U+2028 and U+2029. They and control characters are not allowed in
/// names, but allowed in keys and ids, which are application data. The SQL function `milepost.is_deceptive` recognizes the same characters.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether `c` is replaced when stored text is shown: a control character, or a deceptive one.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    c.is_control() || is_deceptive(c)
}

/// Returns whether a name is a relative segment of a path: programs remove these from URLs, so that no URL could name its object.
#[must_use]
pub fn is_relative_segment(name: &str) -> bool {
    matches!(name, "." | "..")
}

/// Replaces NUL characters by U+FFFD in text that is stored for users, such as an error message. PostgreSQL's `text` cannot hold them, and
/// SQLite's functions end a text at them.
#[must_use]
pub fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Shortens a text to this many bytes, and marks the cut by `…`: error messages can have any size, and history stores their beginning.
#[must_use]
pub fn shorten(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reverses_text_or_breaks_lines_is_deceptive() {
        for c in ['\u{61c}', '\u{200f}', '\u{2028}', '\u{202e}', '\u{2069}'] {
            assert!(is_deceptive(c), "{c:?}");
        }
        for c in ['a', ' ', 'é', 'ש', '\u{200d}', '\u{2027}', '\u{202f}', '😀'] {
            assert!(!is_unprintable(c), "{c:?}");
        }
        assert!(is_unprintable('\n') && !is_deceptive('\n'));
    }
}

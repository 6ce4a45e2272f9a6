//! Indented JSON that is otherwise exactly as stored. Parsing and serializing it again would round numbers and reorder keys.

/// Maximum depth of indentation. Deeper values stay on one line: with indentation at every level, `[[[[…` would grow
/// quadratically.
const DEPTH_MAX: usize = 16;

/// Formats JSON with one member per line, up to a maximum depth.
#[must_use]
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth: usize = 0;
    let mut rest = json.char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            '"' => {
                let end = string_end(json, at);
                out.push_str(&json[at..end]);
                while rest.as_str().len() > json.len() - end {
                    rest.next();
                }
            }
            '{' | '[' => {
                out.push(c);
                if json[at + 1..].trim_start().starts_with(['}', ']']) {
                    continue;
                }
                depth += 1;
                break_line(&mut out, depth);
            }
            '}' | ']' if out.ends_with(['{', '[']) => out.push(c),
            '}' | ']' => {
                // Invalid JSON may close more than it has opened.
                depth = depth.saturating_sub(1);
                if depth < DEPTH_MAX {
                    break_line(&mut out, depth);
                }
                out.push(c);
            }
            ',' => {
                out.push(c);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            ' ' | '\n' | '\r' | '\t' => {}
            _ => out.push(c),
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Returns the end of the string that starts at `start`.
fn string_end(json: &str, start: usize) -> usize {
    let mut escaped = false;
    for (at, c) in json[start + 1..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return start + 1 + at + 1,
            _ => {}
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn json_is_laid_out_and_nothing_else_is_changed() {
        let text = r#"{"b":{ },"a":[1.10,12345678901234567890123,[]],"s":"x\"{,:}\\","é":null}"#;
        let expected = "{\n  \"b\": {},\n  \"a\": [\n    1.10,\n    12345678901234567890123,\n    []\n  ],\n  \
            \"s\": \"x\\\"{,:}\\\\\",\n  \"é\": null\n}";
        assert_eq!(pretty(text), expected);
        assert_eq!(pretty(expected), expected);
        assert_eq!(pretty("\"a: b\""), "\"a: b\"");
    }

    #[test]
    fn what_is_nested_deeply_stays_short_and_whole() {
        let deep = format!("{}1,{{\"a\":2}}{}", "[".repeat(8000), "]".repeat(8000));
        let laid_out = pretty(&deep);
        assert!(laid_out.len() < 2 * deep.len(), "{}", laid_out.len());
        assert!(laid_out.starts_with("[\n  [\n    [\n") && laid_out.ends_with("\n  ]\n]"));
        assert_eq!(laid_out.replace([' ', '\n'], ""), deep);
        assert_eq!(pretty("]]}").replace([' ', '\n'], ""), "]]}");
    }
}

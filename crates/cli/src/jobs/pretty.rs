//! JSON text laid out for reading, otherwise exactly as it is stored: no number is rounded and no key is
//! moved, which reading it into values and writing it again would do.

/// The text with one member a line.
pub(crate) fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0;
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
                depth -= 1;
                break_line(&mut out, depth);
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
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Where the string that opens at `start` has ended.
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
}

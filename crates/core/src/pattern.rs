//! Patterns of names: a name, or the beginning of names and a `*`.

use crate::job::error::InvalidJob;
use crate::job::{NAME_BYTES_MAX, check_name};

/// Returns why a text is not a pattern.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), String> {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    if name.contains('*') {
        return Err("a `*` can only be its last character".to_owned());
    }
    // A pattern of all names has no other character than the `*`.
    if name.is_empty() && !pattern.is_empty() {
        return Ok(());
    }
    check_name("name", name, NAME_BYTES_MAX).map_err(|invalid| match invalid {
        InvalidJob::Name { why, .. } => why,
        other => other.to_string(),
    })
}

/// Returns whether one of the patterns matches the name; true without patterns.
pub(crate) fn matches_any(patterns: &[String], name: &str) -> bool {
    let matches = |pattern: &String| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    patterns.is_empty() || patterns.iter().any(matches)
}

/// Returns patterns for `LIKE` of PostgreSQL; `None` without patterns, which match every name.
#[must_use]
pub fn like_patterns(patterns: &[String]) -> Option<Vec<String>> {
    in_sql(patterns, "%", |c| matches!(c, '%' | '_' | '\\').then(|| format!("\\{c}")))
}

/// Returns patterns for `GLOB` of SQLite; `None` without patterns, which match every name.
#[must_use]
pub fn glob_patterns(patterns: &[String]) -> Option<Vec<String>> {
    in_sql(patterns, "*", |c| matches!(c, '*' | '?' | '[').then(|| format!("[{c}]")))
}

/// Returns patterns with another text for any end, and characters of names in another form.
fn in_sql(patterns: &[String], any: &str, quoted: impl Fn(char) -> Option<String>) -> Option<Vec<String>> {
    let in_sql = |pattern: &String| {
        let (name, end) = pattern.strip_suffix('*').map_or((pattern.as_str(), ""), |name| (name, any));
        let name: String = name.chars().map(|c| quoted(c).unwrap_or_else(|| c.to_string())).collect();
        name + end
    };
    (!patterns.is_empty()).then(|| patterns.iter().map(in_sql).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_written_for_databases() {
        let patterns = ["a_b%*".to_owned(), "c[?".to_owned()];
        assert_eq!(like_patterns(&patterns), Some(vec![r"a\_b\%%".to_owned(), "c[?".to_owned()]));
        assert_eq!(glob_patterns(&patterns), Some(vec!["a_b%*".to_owned(), "c[[][?]".to_owned()]));
        assert_eq!((like_patterns(&[]), glob_patterns(&[])), (None, None));
    }
}

//! Size limits of JSON Schemas, checked before compilation.
//!
//! The validator compiles everything it is given: 200 patterns of ten characters can take seconds and a gigabyte, each time the schema is
//! used. Therefore the values of a schema are counted, and the size of its patterns is computed from their syntax.

use std::collections::HashMap;

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{
    Ast, ClassSet, ClassSetItem, Repetition, RepetitionKind, RepetitionOp, RepetitionRange,
};
use serde_json::Value;

/// The maximum number of values in a schema: objects, arrays and their contents.
pub(super) const VALUES_MAX: usize = 5_000;
/// The maximum total size of a schema's patterns, in characters after all repetitions are expanded. A character class counts
/// as [`CLASS_SIZE`], a Unicode class as [`UNICODE_CLASS_SIZE`], and each escape once as [`ESCAPE_SIZE`].
pub(super) const PATTERNS_SIZE_MAX: usize = 50_000;
const CLASS_SIZE: usize = 10;
const UNICODE_CLASS_SIZE: usize = 500;
/// The validator translates each escape such as `\S` in the whole pattern again: 1,000 of them take seconds.
const ESCAPE_SIZE: usize = 90;

/// Keywords whose values are not schemas.
pub(super) const NO_SCHEMAS: [&str; 4] = ["enum", "const", "default", "examples"];

/// The size of each pattern, by its text.
pub(super) type PatternSizes = HashMap<String, usize>;

/// Measures a schema; returns the sizes of its patterns.
///
/// # Errors
/// A message with the exceeded limit, or with the location of an invalid pattern.
pub(super) fn measure(schema: &Value) -> Result<PatternSizes, String> {
    let (mut values, mut patterns) = (0, PatternSizes::new());
    walk(schema, &mut values, Some(&mut patterns))?;
    let size = patterns.iter().fold(0_usize, |sum, (pattern, size)| {
        let escapes = pattern.matches('\\').count().saturating_mul(ESCAPE_SIZE);
        sum.saturating_add(*size).saturating_add(escapes)
    });
    if size > PATTERNS_SIZE_MAX {
        return Err(format!(
            "its patterns have a size of {size}; at most {PATTERNS_SIZE_MAX} is allowed. Repetitions such as {{1000}} and classes such as \\p{{L}} make them large"
        ));
    }
    Ok(patterns)
}

/// Counts values, and measures patterns where patterns are possible.
fn walk(value: &Value, values: &mut usize, mut patterns: Option<&mut PatternSizes>) -> Result<(), String> {
    *values += 1;
    if *values > VALUES_MAX {
        return Err(format!("it has more than {VALUES_MAX} values; split it, or check the rest in a task"));
    }
    match value {
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            let Some(patterns) = patterns.as_deref_mut() else { return walk(member, values, None) };
            match (name.as_str(), member) {
                (name, member) if NO_SCHEMAS.contains(&name) => return walk(member, values, None),
                ("pattern", Value::String(pattern)) => add(pattern, patterns)?,
                ("patternProperties", Value::Object(parts)) => {
                    parts.keys().try_for_each(|pattern| add(pattern, patterns))?;
                }
                _ => {}
            }
            walk(member, values, Some(patterns))
        }),
        Value::Array(items) => items.iter().try_for_each(|item| walk(item, values, patterns.as_deref_mut())),
        _ => Ok(()),
    }
}

fn add(pattern: &str, patterns: &mut PatternSizes) -> Result<(), String> {
    let tree = Parser::new().parse(pattern).map_err(|error| {
        format!("the pattern {pattern:?} is not a supported regular expression: {}", error.kind())
    })?;
    patterns.insert(pattern.to_owned(), size(&tree));
    Ok(())
}

/// Returns the number of characters after all repetitions are expanded.
fn size(tree: &Ast) -> usize {
    let all = |trees: &[Ast]| trees.iter().map(size).fold(0, usize::saturating_add);
    match tree {
        Ast::Empty(_) | Ast::Flags(_) | Ast::Literal(_) | Ast::Assertion(_) => 1,
        Ast::Dot(_) | Ast::ClassPerl(_) => CLASS_SIZE,
        Ast::ClassUnicode(_) => UNICODE_CLASS_SIZE,
        Ast::ClassBracketed(class) => CLASS_SIZE + size_of_set(&class.kind),
        Ast::Repetition(repetition) => size_of_repetition(repetition),
        Ast::Group(group) => size(&group.ast),
        Ast::Alternation(either) => all(&either.asts),
        Ast::Concat(each) => all(&each.asts),
    }
}

fn size_of_repetition(Repetition { op: RepetitionOp { kind, .. }, ast, .. }: &Repetition) -> usize {
    let times = match kind {
        RepetitionKind::Range(
            RepetitionRange::Exactly(most)
            | RepetitionRange::AtLeast(most)
            | RepetitionRange::Bounded(_, most),
        ) => *most as usize,
        _ => 1,
    };
    size(ast).saturating_mul(times.saturating_add(1))
}

fn size_of_set(set: &ClassSet) -> usize {
    match set {
        ClassSet::Item(item) => size_of_item(item),
        ClassSet::BinaryOp(both) => size_of_set(&both.lhs).saturating_add(size_of_set(&both.rhs)),
    }
}

fn size_of_item(item: &ClassSetItem) -> usize {
    match item {
        ClassSetItem::Unicode(_) => UNICODE_CLASS_SIZE,
        ClassSetItem::Bracketed(class) => size_of_set(&class.kind),
        ClassSetItem::Union(union) => union.items.iter().map(size_of_item).fold(0, usize::saturating_add),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn size_of(pattern: &str) -> usize {
        measure(&json!({ "pattern": pattern })).unwrap()[pattern]
    }

    #[test]
    fn the_size_of_a_pattern_is_that_of_its_repetitions_written_out() {
        assert_eq!(size_of("^abc$"), 5);
        assert_eq!(size_of("(a|bc){3}"), 12);
        assert_eq!(size_of("((a{9}){9}){9}"), 1000);
        assert!(size_of(r"^\d{4}-\d{2}-\d{2}$") < 200);
        assert!(measure(&json!({ "pattern": r"\S".repeat(1000) })).is_err());
        assert!(size_of(r"[\p{L}\p{N}]{4}") > 4000);
    }

    #[test]
    fn a_schema_that_takes_long_to_compile_is_too_large() {
        let letters: Vec<Value> =
            (0..200).map(|at| json!({"pattern": format!("\\p{{L}}{{100}}x{at}")})).collect();
        assert!(measure(&json!({"anyOf": letters})).unwrap_err().starts_with("its patterns have a size of"));
        let names: serde_json::Map<String, Value> =
            (0..2_000).map(|at| (format!("^{}{at}$", "x".repeat(40)), json!(true))).collect();
        assert!(measure(&json!({"patternProperties": names})).unwrap_err().starts_with("its patterns"));
        let properties: serde_json::Map<String, Value> =
            (0..2_000).map(|at| (format!("a{at}"), json!(true))).collect();
        let many =
            json!({"unevaluatedProperties": false, "allOf": vec![json!({"properties": properties}); 20]});
        assert!(measure(&many).unwrap_err().starts_with("it has more than 5000 values"));
        assert!(measure(&json!({"pattern": "("})).unwrap_err().contains("unclosed group"));
    }
}

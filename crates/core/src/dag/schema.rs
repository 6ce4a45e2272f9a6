//! JSON Schema of a batch's input. A schema must be self-contained.

use std::error::Error;
use std::fmt::{self, Write as _};

use boon::{CompileError, Compiler, SchemaIndex, Schemas, UrlLoader};
use serde_json::Value;
use thiserror::Error;

use super::schema_cost::{self, CHECKS_MAX};
use super::schema_size::{self, PatternSizes};
use super::stack;

/// The URL under which the schema refers to itself.
const PLACE: &str = "milepost:input";
/// The maximum length of a message about an input, in characters.
const WHY_CHARS_MAX: usize = 1000;
/// The number of bytes of the validator's message that are read: enough for that length, after lines are removed.
const BEGINNING_BYTES_MAX: usize = 16 * 1024;

/// A text that is not a JSON Schema, or that refers to another document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the input schema is invalid: {why}")]
pub struct InvalidSchema {
    /// The reason and the location.
    pub why: String,
}

/// An input that does not match the schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the input does not match the schema of its DAG: {why}")]
pub struct InvalidInput {
    /// The reason and the location.
    pub why: String,
}

/// A compiled schema.
pub struct InputSchema {
    schemas: Schemas,
    root: SchemaIndex,
    source: Value,
    patterns: PatternSizes,
}

impl InputSchema {
    /// Compiles a schema. No other document is loaded.
    ///
    /// # Errors
    /// [`InvalidSchema`] with the reason.
    pub fn compile(schema: &Value) -> Result<Self, InvalidSchema> {
        let invalid = |error: CompileError| InvalidSchema {
            why: match error {
                // The compiler parses a pattern twice, and reports an error of only the second parser as its own bug.
                CompileError::Bug(error) => shorten(&format!("a pattern is invalid: {error}")),
                error => shorten(&format!("{error:#}")),
            },
        };
        if let Some(place) = schema_cost::embedded_id(schema) {
            return Err(InvalidSchema {
                why: format!("{place}: only the root of the schema can have an $id; use $anchor or $defs"),
            });
        }
        let patterns = schema_size::measure(schema).map_err(|why| InvalidSchema { why: shorten(&why) })?;
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.use_loader(Box::new(Nothing));
        compiler.add_resource(PLACE, schema.clone()).map_err(invalid)?;
        let root = stack::large(|| compiler.compile(PLACE, &mut schemas).map_err(invalid))?;
        Ok(Self { schemas, root, source: schema.clone(), patterns })
    }

    /// Validates an input.
    ///
    /// # Errors
    /// [`InvalidInput`] with the reason and the location.
    pub fn check(&self, input: &Value) -> Result<(), InvalidInput> {
        if schema_cost::count(&self.source, &self.patterns, input).is_err() {
            let why = format!(
                "the check takes more than {CHECKS_MAX} steps; simplify the schema, or split the input"
            );
            return Err(InvalidInput { why });
        }
        stack::large(|| {
            let checked = self.schemas.validate(input, self.root);
            checked.map_err(|error| {
                let mut words = Beginning::default();
                // Writing stops with an error at the limit: the validator repeats everything for each of its checks,
                // which can be gigabytes.
                let _ = write!(words, "{error:#}");
                InvalidInput { why: shorten(&words.0) }
            })
        })
    }
}

impl fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InputSchema")
    }
}

/// A writer that keeps the beginning of a text; writing more is an error.
#[derive(Default)]
struct Beginning(String);

impl fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = BEGINNING_BYTES_MAX - self.0.len();
        self.0.push_str(&text[..text.floor_char_boundary(left)]);
        if text.len() > left { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Returns the validator's message without the line that contains the schema's URL.
fn shorten(words: &str) -> String {
    let lines = words.lines().filter(|line| !line.contains("jsonschema validation failed"));
    let text = lines.map(|line| line.trim().trim_start_matches("- ")).collect::<Vec<_>>().join("; ");
    text.chars().take(WHY_CHARS_MAX).collect()
}

/// A loader that refuses every document.
struct Nothing;

impl UrlLoader for Nothing {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("it refers to {url}, which is outside the schema").into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_without_end_are_read_up_to_a_bound() {
        /// Writes until an error is returned.
        struct Endless;

        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("wörd ")?;
                }
            }
        }

        let mut words = Beginning::default();
        write!(words, "{Endless}").unwrap_err();
        assert!((BEGINNING_BYTES_MAX - 4..=BEGINNING_BYTES_MAX).contains(&words.0.len()));
    }

    #[test]
    fn what_is_wrong_with_an_input_is_told_shortly_however_often_it_is_wrong() {
        let every = vec![json!({"additionalProperties": false}); 2_000];
        let schema = InputSchema::compile(&json!({"allOf": every})).unwrap();
        let names = (0..10).map(|n| (format!("{n}{}", "x".repeat(20_000)), json!(1)));
        let why = schema.check(&Value::Object(names.collect())).unwrap_err().why;
        assert!(why.chars().count() <= WHY_CHARS_MAX, "{}", why.len());
    }

    #[test]
    fn an_input_that_does_not_fit_says_where() {
        let schema = InputSchema::compile(&json!({
            "type": "object",
            "required": ["day"],
            "properties": { "day": { "type": "string" }, "n": { "$ref": "#/$defs/count" } },
            "$defs": { "count": { "type": "integer", "minimum": 1 } },
        }))
        .unwrap();
        assert_eq!(schema.check(&json!({"day": "2026-11-01", "n": 2})), Ok(()));
        let why = schema.check(&json!({"n": 0})).unwrap_err().why;
        assert!(why.contains("missing properties 'day'") && why.contains("/n"), "{why}");
        assert!(!why.contains("milepost:"), "{why}");
    }

    #[test]
    fn a_schema_reads_nothing_outside() {
        let outside = InputSchema::compile(&json!({"$ref": "file:///etc/hostname"})).unwrap_err();
        assert!(outside.why.contains("/etc/hostname"), "{outside}");
        let wrong = InputSchema::compile(&json!({"type": "sometimes"})).unwrap_err();
        assert!(wrong.why.contains("type"), "{wrong}");
    }

    #[test]
    fn a_schema_in_many_levels_leaves_the_stack_alone() {
        let deep = (0..120).fold(json!(true), |inner, _| json!({ "not": inner }));
        assert_eq!(InputSchema::compile(&deep).unwrap().check(&json!(1)), Ok(()));
        let next = |at: usize| (at.to_string(), json!({"$ref": format!("#/$defs/{}", at + 1)}));
        let mut levels: serde_json::Map<String, Value> = (0..900).map(next).collect();
        levels.insert("900".to_owned(), json!({"type": "string"}));
        let chain = InputSchema::compile(&json!({"$ref": "#/$defs/0", "$defs": levels})).unwrap();
        assert_eq!(chain.check(&json!("text")), Ok(()));
        assert!(chain.check(&json!(1)).unwrap_err().why.contains("want string"));
    }

    #[test]
    fn a_pattern_that_is_none_is_the_fault_of_the_schema() {
        for (pattern, fault) in [("(", "unclosed group"), ("(?=a)b", "look-around")] {
            let why = InputSchema::compile(&json!({ "pattern": pattern })).unwrap_err().why;
            assert!(why.contains(fault) && !why.contains("bug"), "{why}");
        }
    }
}

//! Cost of validating an input against a JSON Schema.
//!
//! Two references in each of n levels of `allOf` lead to 2^n checks. The validator has no limit, so the checks are counted in advance: the
//! same traversal of schema and input, without validation and with a limit.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::json::weight_of_json;
use super::schema_size::{NO_SCHEMAS, PatternSizes};

/// The maximum number of checks of a value against a part of a schema.
pub(super) const CHECKS_MAX: u64 = 1_000_000;
/// The number of comparisons of a text's character with a pattern's character that count as one check.
const MATCHES_A_CHECK: usize = 100;
/// The number of bytes of a text that are counted, or read by a format, as one check.
const BYTES_A_CHECK: usize = 100;
/// The number of checks that a pattern costs as a text with `format: regex`, which is compiled: this many, and for each of its bytes this many.
const REGEX_CHECKS: usize = 50;
const REGEX_CHECKS_A_BYTE: usize = 4;
/// The maximum depth of nested schemas in the traversal. A reference that leads back to itself without descending into the input
/// never ends, and a recursive validator needs stack space for each level.
const DEPTH_MAX: usize = 1000;

/// The error for a schema and an input that need too many checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMuch;

/// Returns the location of an `$id` inside the schema, which would make references relative to it.
pub(super) fn embedded_id(schema: &Value) -> Option<String> {
    fn find(value: &Value, pointer: &str) -> Option<String> {
        match value {
            Value::Object(members)
                if !pointer.is_empty() && members.get("$id").is_some_and(Value::is_string) =>
            {
                Some(pointer.to_owned())
            }
            Value::Object(members) => members
                .iter()
                .filter(|(name, _)| !NO_SCHEMAS.contains(&name.as_str()))
                .find_map(|(name, member)| find(member, &format!("{pointer}/{name}"))),
            Value::Array(items) => {
                items.iter().enumerate().find_map(|(at, item)| find(item, &format!("{pointer}/{at}")))
            }
            _ => None,
        }
    }
    find(schema, "")
}

/// Counts the checks of `input` against `schema`.
///
/// # Errors
/// [`TooMuch`] if there are more than [`CHECKS_MAX`], or if the traversal does not end.
pub(super) fn count(schema: &Value, patterns: &PatternSizes, input: &Value) -> Result<(), TooMuch> {
    let mut anchors = HashMap::new();
    collect_anchors(schema, &mut anchors);
    let is_followed = follows_evaluation(schema);
    Walk { root: schema, anchors, patterns, is_followed, left: CHECKS_MAX }.visit(schema, input, 0)
}

/// Returns whether validation has to track the members and items that were already evaluated.
fn follows_evaluation(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.iter().any(|(name, member)| name.starts_with("unevaluated") || follows_evaluation(member))
        }
        Value::Array(items) => items.iter().any(follows_evaluation),
        _ => false,
    }
}

/// Returns the work to compare a value with another one.
fn weight(value: &Value) -> usize {
    usize::try_from(weight_of_json(value, CHECKS_MAX)).unwrap_or(usize::MAX)
}

fn length(input: &Value) -> usize {
    match input {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    }
}

fn collect_anchors<'s>(schema: &'s Value, anchors: &mut HashMap<&'s str, &'s Value>) {
    match schema {
        Value::Object(members) => {
            for keyword in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = members.get(keyword).and_then(Value::as_str) {
                    anchors.insert(name, schema);
                }
            }
            members.values().for_each(|member| collect_anchors(member, anchors));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_anchors(item, anchors)),
        _ => {}
    }
}

struct Walk<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
    patterns: &'s PatternSizes,
    /// Whether each check tracks all members and items.
    is_followed: bool,
    left: u64,
}

impl<'s> Walk<'s> {
    fn spend(&mut self, checks: usize) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(checks as u64).ok_or(TooMuch)?;
        Ok(())
    }

    fn visit(&mut self, schema: &'s Value, input: &Value, depth: usize) -> Result<(), TooMuch> {
        self.spend(if self.is_followed { 1 + length(input) } else { 1 })?;
        if depth > DEPTH_MAX {
            return Err(TooMuch);
        }
        let Some(keywords) = schema.as_object() else { return Ok(()) };
        for (keyword, value) in keywords {
            self.keyword(keyword, value, input, depth + 1)?;
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &'s Value,
        input: &Value,
        depth: usize,
    ) -> Result<(), TooMuch> {
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => match self.referred(value) {
                Some(schema) => self.visit(schema, input, depth),
                None => Ok(()),
            },
            "allOf" | "anyOf" | "oneOf" => {
                value.as_array().into_iter().flatten().try_for_each(|part| self.visit(part, input, depth))
            }
            "not" | "if" | "then" | "else" => self.visit(value, input, depth),
            "dependentSchemas" => self.each_of(value, input, depth),
            "enum" | "const" => self.spend(weight(value)),
            "format" if value == "regex" => {
                let bytes = input.as_str().map_or(0, str::len);
                self.spend(REGEX_CHECKS + REGEX_CHECKS_A_BYTE * bytes)
            }
            // These read the whole text.
            "minLength" | "maxLength" | "format" | "contentEncoding" | "contentMediaType" => {
                self.spend(input.as_str().map_or(0, str::len) / BYTES_A_CHECK)
            }
            // Each name that is missing becomes an entry of the error.
            "required" if input.is_object() => self.spend(length(value)),
            "dependentRequired" | "dependencies" if input.is_object() => {
                self.dependent_names(value, input)?;
                self.each_of(value, input, depth)
            }
            "pattern" => self.matches(value.as_str().unwrap_or_default(), input.as_str().unwrap_or_default()),
            "properties" => self.properties(value, input, depth),
            "patternProperties" => value.as_object().into_iter().flatten().try_for_each(|(pattern, part)| {
                let mut names = input.as_object().into_iter().flat_map(|members| members.keys());
                names.try_for_each(|name| self.matches(pattern, name))?;
                self.children(part, input, depth)
            }),
            "additionalProperties" | "unevaluatedProperties" if input.is_object() => {
                self.children(value, input, depth)
            }
            "propertyNames" => {
                let names = input.as_object().into_iter().flat_map(|members| members.keys());
                names
                    .map(|name| Value::from(name.as_str()))
                    .try_for_each(|name| self.visit(value, &name, depth))
            }
            "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains"
                if input.is_array() =>
            {
                self.items(value, input, depth)
            }
            // Up to 20 items are compared with each other; more are hashed.
            "uniqueItems" if input.is_array() => {
                self.spend(weight(input).saturating_mul(if length(input) <= 20 { 20 } else { 2 }))
            }
            _ => Ok(()),
        }
    }

    /// Charges for matching a text with a pattern: in the worst case every character of one with every character of the other.
    fn matches(&mut self, pattern: &str, text: &str) -> Result<(), TooMuch> {
        let size = self.patterns.get(pattern).copied().unwrap_or_default();
        self.spend(1 + text.len().saturating_mul(size) / MATCHES_A_CHECK)
    }

    /// Returns the schema that a reference names. The validator has rejected references to other documents.
    fn referred(&self, reference: &Value) -> Option<&'s Value> {
        let (_, fragment) = reference.as_str()?.split_once('#').unwrap_or_default();
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        match fragment.strip_prefix('/') {
            Some(_) => self.root.pointer(&fragment),
            None if fragment.is_empty() => Some(self.root),
            None => self.anchors.get(&*fragment).copied(),
        }
    }

    fn each_of(&mut self, parts: &'s Value, input: &Value, depth: usize) -> Result<(), TooMuch> {
        let parts = parts.as_object().into_iter().flat_map(|parts| parts.values());
        parts.filter(|part| !part.is_array()).try_for_each(|part| self.visit(part, input, depth))
    }

    /// Charges for the names that members of an object require.
    fn dependent_names(&mut self, parts: &Value, input: &Value) -> Result<(), TooMuch> {
        let (Some(parts), Some(members)) = (parts.as_object(), input.as_object()) else { return Ok(()) };
        self.spend(parts.len())?;
        let required = parts.iter().filter(|(name, _)| members.contains_key(*name));
        required
            .map(|(_, names)| names)
            .filter(|names| names.is_array())
            .try_for_each(|names| self.spend(length(names)))
    }

    fn properties(&mut self, parts: &'s Value, input: &Value, depth: usize) -> Result<(), TooMuch> {
        let (Some(parts), Some(members)) = (parts.as_object(), input.as_object()) else { return Ok(()) };
        self.spend(parts.len())?;
        parts
            .iter()
            .filter_map(|(name, part)| Some((part, members.get(name)?)))
            .try_for_each(|(part, member)| self.visit(part, member, depth))
    }

    /// Visits each member of an object, or item of an array, with one schema.
    fn children(&mut self, schema: &'s Value, input: &Value, depth: usize) -> Result<(), TooMuch> {
        match input {
            Value::Object(members) => {
                members.values().try_for_each(|member| self.visit(schema, member, depth))
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(schema, item, depth)),
            _ => Ok(()),
        }
    }

    fn items(&mut self, value: &'s Value, input: &Value, depth: usize) -> Result<(), TooMuch> {
        let Some(parts) = value.as_array() else { return self.children(value, input, depth) };
        let items = input.as_array().into_iter().flatten();
        parts.iter().zip(items).try_for_each(|(part, item)| self.visit(part, item, depth))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::super::schema_size::measure;
    use super::*;

    /// Returns a schema of n levels, each of which refers twice to the next one.
    fn doubling(n: usize, keyword: &str) -> Value {
        let twice = |next: usize| {
            let next = json!({"$ref": format!("#/$defs/{next}")});
            match keyword {
                "anyOf" | "allOf" | "oneOf" => json!({ keyword: [next, next] }),
                _ => json!({ keyword: {"x": next, ".": next}, "not": next }),
            }
        };
        let mut defs: Map<String, Value> = (0..n).map(|at| (at.to_string(), twice(at + 1))).collect();
        defs.insert(n.to_string(), json!({"type": "object"}));
        json!({"$ref": "#/$defs/0", "$defs": defs})
    }

    fn counted(schema: &Value, input: &Value) -> Result<(), TooMuch> {
        count(schema, &measure(schema).unwrap(), input)
    }

    #[test]
    fn a_long_text_against_a_large_pattern_is_too_much() {
        let large = json!({"pattern": "(a?){1000}b"});
        assert_eq!(counted(&large, &json!("a".repeat(100_000))), Err(TooMuch));
        assert_eq!(counted(&large, &json!("a".repeat(100))), Ok(()));
        let names: Map<String, Value> = (0..1000).map(|at| (at.to_string(), json!(1))).collect();
        let day = json!({"patternProperties": {"^\\d{4}-\\d{2}-\\d{2}$": {"type": "integer"}}});
        assert_eq!(counted(&day, &json!(names)), Ok(()));
    }

    #[test]
    fn a_long_text_that_is_read_often_is_too_much() {
        let text = json!("a".repeat(900_000));
        for (keyword, value) in [
            ("minLength", json!(1)),
            ("maxLength", json!(2_000_000)),
            ("format", json!("date")),
            ("contentEncoding", json!("base64")),
            ("contentMediaType", json!("application/json")),
            ("const", text.clone()),
        ] {
            let part = json!({ keyword: value });
            let often = json!({"allOf": vec![part.clone(); 399]});
            assert_eq!(counted(&often, &text), Err(TooMuch), "{keyword}");
            assert_eq!(counted(&part, &text), Ok(()), "{keyword}");
        }
    }

    #[test]
    fn texts_that_are_compiled_as_patterns_are_counted() {
        let regex = json!({"format": "regex"});
        assert_eq!(counted(&regex, &json!("[".repeat(890_000))), Err(TooMuch));
        assert_eq!(
            counted(&json!({"anyOf": vec![regex.clone(); 95]}), &json!("a".repeat(10_000))),
            Err(TooMuch)
        );
        let many = json!(vec!["\\w[^a]{100}"; 10_000]);
        assert_eq!(counted(&json!({"items": {"allOf": vec![regex.clone(); 90]}}), &many), Err(TooMuch));
        assert_eq!(counted(&json!({"items": regex}), &json!(vec!["^a+$"; 10_000])), Ok(()));
    }

    #[test]
    fn names_that_are_required_of_each_item_are_counted() {
        let names: Vec<String> = (0..4_000).map(|at| format!("k{at}")).collect();
        let items = |members: Value, count: usize| json!(vec![members; count]);
        let required = json!({"items": {"required": names}});
        assert_eq!(counted(&required, &items(json!({}), 10_000)), Err(TooMuch));
        assert_eq!(counted(&required, &items(json!({}), 100)), Ok(()));
        for keyword in ["dependentRequired", "dependencies"] {
            let dependent = json!({"items": { keyword: {"a": names} }});
            assert_eq!(counted(&dependent, &items(json!({"a": 1}), 10_000)), Err(TooMuch), "{keyword}");
            assert_eq!(counted(&dependent, &items(json!({"b": 1}), 10_000)), Ok(()), "{keyword}");
        }
    }

    #[test]
    fn what_notes_all_members_at_each_check_pays_for_them() {
        let members: Map<String, Value> = (0..2_000).map(|at| (format!("a{at}"), json!(at))).collect();
        let parts: Vec<Value> = (0..1_000).map(|_| json!({"minProperties": 1})).collect();
        let noting = json!({"unevaluatedProperties": true, "allOf": parts});
        assert_eq!(counted(&noting, &json!(members)), Err(TooMuch));
        assert_eq!(counted(&json!({"allOf": noting["allOf"]}), &json!(members)), Ok(()));
    }

    #[test]
    fn a_schema_that_doubles_per_level_is_too_much() {
        for keyword in ["allOf", "anyOf", "oneOf", "dependentSchemas"] {
            assert_eq!(counted(&doubling(40, keyword), &json!({})), Err(TooMuch), "{keyword}");
            assert_eq!(counted(&doubling(8, keyword), &json!({})), Ok(()), "{keyword}");
        }
        // Each level of the schema corresponds to a level of the input.
        let node = json!({"$ref": "#"});
        let below = json!({"properties": {"a": {"allOf": [node, node]}}});
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
        assert_eq!(counted(&below, &nested(40)), Err(TooMuch));
        assert_eq!(counted(&below, &nested(8)), Ok(()));
        assert_eq!(counted(&json!({"$ref": "#"}), &json!(1)), Err(TooMuch), "without an end");
        let anchored = json!({"$anchor": "a", "allOf": [{"$ref": "#a"}, {"$dynamicRef": "#a"}]});
        assert_eq!(counted(&anchored, &json!(1)), Err(TooMuch));
    }

    #[test]
    fn schemas_in_use_are_far_from_the_limit() {
        let tree = json!({"$defs": {"node": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["id"],
            "additionalProperties": false
        }}, "$ref": "#/$defs/node"});
        let leaves: Vec<Value> = (0..10_000).map(|id| json!({"id": id, "children": []})).collect();
        assert_eq!(counted(&tree, &json!({"id": 0, "children": leaves})), Ok(()));
        let numbers = json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true});
        assert_eq!(counted(&numbers, &json!(vec![1; 40_000])), Ok(()));
        assert_eq!(counted(&json!(true), &json!({"a": 1})), Ok(()));
    }

    #[test]
    fn an_identifier_inside_is_found() {
        assert_eq!(embedded_id(&json!({"$id": "a", "properties": {"$id": {"type": "string"}}})), None);
        assert_eq!(embedded_id(&json!({"$defs": {"a": {"$id": "b"}}})), Some("/$defs/a".to_owned()));
        assert_eq!(embedded_id(&json!({"const": {"$id": "b"}})), None);
    }
}

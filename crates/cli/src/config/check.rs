//! Validation of a file against the schema of its sections: reports every fault at its position.
//!
//! Only the schema keywords that Milepost uses are supported. A test checks that no others are used, and another one compares the results
//! with a complete JSON Schema validator.

use std::path::Path;

use serde_json::{Map, Value as Json};

use super::document::{Node, Value};
use super::fault::Faults;
use super::format::Format;
use crate::nearest::nearest;

/// The state of a validation.
struct Check<'a> {
    folder: &'a Path,
    faults: &'a mut Faults,
}

/// Checks a whole file, which is in `folder`.
pub(super) fn check(root: &Node, schema: &Json, folder: &Path, faults: &mut Faults) {
    Check { folder, faults }.node(root, schema, "");
}

impl Check<'_> {
    fn node(&mut self, node: &Node, schema: &Json, name: &str) {
        // A schema that accepts anything is `true`: the value is part of a payload or an input.
        let Some(schema) = schema.as_object() else { return node.check_numbers(self.faults) };
        if let Some(wanted) = schema.get("type").and_then(Json::as_str)
            && !is(node, wanted)
        {
            let what = format!("{name} is {}", kind_of(node));
            self.faults.add(node.span.start, what, remedy(schema));
            return;
        }
        match &node.value {
            Value::Table(_) => self.table(node, schema, name),
            Value::List(nodes) => self.list(node, nodes, schema, name),
            Value::Integer(number) => self.number(node, *number as f64, schema, name),
            Value::Rounded { .. } if !schema.contains_key("type") => node.check_numbers(self.faults),
            Value::Float(number) | Value::Rounded { number, .. } => self.number(node, *number, schema, name),
            Value::Text { text, from_environment } => self.text(node, text, *from_environment, schema, name),
            Value::Bool(_) => {}
        }
    }

    fn table(&mut self, node: &Node, schema: &Map<String, Json>, name: &str) {
        let none = Map::new();
        let known = schema.get("properties").and_then(Json::as_object).unwrap_or(&none);
        let others = schema.get("additionalProperties").unwrap_or(&Json::Bool(true));
        let names = schema.get("propertyNames").and_then(|names| names.get("format")).and_then(Json::as_str);
        for entry in node.entries() {
            if let Some(format) = names.and_then(Format::named)
                && let Err(refused) = format.check(&entry.key, self.folder)
            {
                let what = format!("{:?} in {name} is {}: {}", entry.key, refused.what, refused.why);
                self.faults.add(entry.at, what, format.remedy());
            }
            let path = if name.is_empty() { entry.key.clone() } else { format!("{name}.{}", entry.key) };
            match known.get(&entry.key) {
                Some(schema) => self.node(&entry.node, schema, &path),
                None if *others == Json::Bool(false) => self.unknown(entry.at, &entry.key, known, name),
                None => self.node(&entry.node, others, &path),
            }
        }
        for key in schema.get("required").and_then(Json::as_array).into_iter().flatten() {
            let Some(key) = key.as_str() else { continue };
            if node.get(key).is_none() {
                let help = known.get(key).and_then(Json::as_object).map_or_else(String::new, remedy);
                self.faults.add(
                    node.span.start,
                    format!("{name} has no {key}"),
                    format!("add {key}: {help}"),
                );
            }
        }
    }

    fn unknown(&mut self, at: usize, key: &str, known: &Map<String, Json>, name: &str) {
        let place = if name.is_empty() { String::new() } else { format!(" in {name}") };
        let mut all: Vec<&str> = known.keys().map(String::as_str).collect();
        // The order of the map depends on which features other crates enable.
        all.sort_unstable();
        let remedy = match nearest(key, &all) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => format!("known keys{place} are {}", all.join(", ")),
        };
        self.faults.add_unknown_key(at, format!("unknown key {key}{place}"), remedy);
    }

    fn list(&mut self, node: &Node, nodes: &[Node], schema: &Map<String, Json>, name: &str) {
        if schema.get("minItems").and_then(Json::as_u64).is_some_and(|min| (nodes.len() as u64) < min) {
            self.faults.add(node.span.start, format!("{name} is empty"), remedy(schema));
        }
        for (index, item) in nodes.iter().enumerate() {
            let schema = schema.get("items").unwrap_or(&Json::Bool(true));
            self.node(item, schema, &format!("{name}[{index}]"));
        }
    }

    fn number(&mut self, node: &Node, number: f64, schema: &Map<String, Json>, name: &str) {
        let bound = |key: &str| schema.get(key).and_then(Json::as_f64);
        let below = bound("minimum").is_some_and(|min| number < min);
        let above = bound("maximum").is_some_and(|max| number > max);
        // NaN is neither below nor above a bound.
        if below || above || !number.is_finite() {
            self.faults.add(node.span.start, format!("{name} is {number}"), remedy(schema));
        }
    }

    fn length(&mut self, node: &Node, chars: u64, schema: &Map<String, Json>, name: &str) {
        let bound = |key: &str| schema.get(key).and_then(Json::as_u64);
        if bound("minLength").is_some_and(|min| chars < min) {
            self.faults.add(node.span.start, format!("{name} is empty"), "write a text".to_owned());
        }
        if let Some(max) = bound("maxLength").filter(|max| chars > *max) {
            let what = format!("{name} has {chars} characters");
            self.faults.add(node.span.start, what, format!("write a text of at most {max} characters"));
        }
    }

    fn text(&mut self, node: &Node, text: &str, secret: bool, schema: &Map<String, Json>, name: &str) {
        if secret && text.is_empty() {
            // An unset variable was reported already.
            return;
        }
        self.length(node, text.chars().count() as u64, schema, name);
        if let Some(names) = schema.get("enum").and_then(Json::as_array)
            && !names.iter().any(|name| name == text)
        {
            let names: Vec<&str> = names.iter().filter_map(Json::as_str).collect();
            let what = if secret {
                format!("{name} does not have an allowed value")
            } else {
                format!("{name} is {text:?}")
            };
            self.faults.add(node.span.start, what, format!("write one of {}", names.join(", ")));
        }
        let format = schema.get("format").and_then(Json::as_str).and_then(Format::named);
        if let Some(Err((format, refused))) =
            format.map(|format| format.check(text, self.folder).map_err(|refused| (format, refused)))
        {
            // A value from the environment may be a secret, and a parser's message may repeat it.
            let what = match secret {
                true => format!("{name}, filled in from the environment, is {}", refused.what),
                // An address may contain a password, and an argument or a variable any secret.
                false
                    if matches!(
                        format,
                        Format::Store | Format::Postgres | Format::Redis | Format::Url | Format::Argument
                    ) =>
                {
                    format!("{name} is {}: {}", refused.what, refused.why)
                }
                false => format!("{name} = {text:?} is {}: {}", refused.what, refused.why),
            };
            self.faults.add(node.span.start, what, format.remedy());
        }
    }
}

fn is(node: &Node, wanted: &str) -> bool {
    match &node.value {
        Value::Text { .. } => wanted == "string",
        Value::Integer(_) => wanted == "integer" || wanted == "number",
        Value::Float(_) | Value::Rounded { .. } => wanted == "number",
        Value::Bool(_) => wanted == "boolean",
        Value::List(_) => wanted == "array",
        Value::Table(_) => wanted == "object",
    }
}

const fn kind_of(node: &Node) -> &'static str {
    match &node.value {
        Value::Text { .. } => "a text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) | Value::Rounded { .. } => "a number with a fraction, or too large",
        Value::Bool(_) => "true or false",
        Value::List(_) => "a list",
        Value::Table(_) => "a table",
    }
}

/// Returns an instruction for a value that violates the schema.
fn remedy(schema: &Map<String, Json>) -> String {
    let format = schema.get("format").and_then(Json::as_str).and_then(Format::named);
    let bound = |key: &str| schema.get(key).map(ToString::to_string);
    let range = match (bound("minimum"), bound("maximum")) {
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
        (Some(min), None) => format!(" of at least {min}"),
        (None, Some(max)) => format!(" of at most {max}"),
        (None, None) => String::new(),
    };
    match (format, schema.get("type").and_then(Json::as_str)) {
        (Some(format), _) => format.remedy().to_owned(),
        (_, Some("string")) => "write a string in quotes".to_owned(),
        (_, Some("integer")) => format!("write a whole number{range}, without quotes"),
        (_, Some("number")) => format!("write a number{range}, without quotes"),
        (_, Some("boolean")) => "write true or false, without quotes".to_owned(),
        (_, Some("array")) => "write a list such as [\"a\", \"b\"]".to_owned(),
        _ => "write a table such as { key = \"value\" }".to_owned(),
    }
}

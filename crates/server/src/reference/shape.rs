//! Descriptions of JSON schemas for the API reference.

use std::collections::BTreeMap;

use serde_json::Value;

/// The named schemas.
pub(super) type Named = BTreeMap<String, Value>;

/// The description of a schema; names of types become links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape(pub(crate) Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// Whether it is the name of a type.
    pub(crate) is_type: bool,
}

impl Shape {
    fn text(text: impl Into<String>) -> Self {
        Self(vec![Piece { text: text.into(), is_type: false }])
    }

    fn named(name: &str) -> Self {
        Self(vec![Piece { text: name.to_owned(), is_type: true }])
    }

    fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn join(shapes: impl IntoIterator<Item = Self>, between: &str) -> Self {
        shapes.into_iter().reduce(|all, next| all.then(Self::text(between)).then(next)).unwrap_or_default()
    }

    /// Describes a schema. An inlined copy of a named schema, as in lists of many kinds, is described by that name.
    pub(super) fn of(schema: &Value, named: &Named) -> Self {
        if let Some(name) = reference(schema) {
            return Self::named(name);
        }
        if schema["properties"].is_object()
            && let Some((name, _)) = named.iter().find(|(_, known)| *known == schema)
        {
            return Self::named(name);
        }
        Self::written(schema, named)
    }

    /// Describes a schema without a name.
    pub(super) fn written(schema: &Value, named: &Named) -> Self {
        for (member, between) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
            if let Some(parts) = schema[member].as_array() {
                return Self::join(parts.iter().map(|part| Self::of(part, named)), between);
            }
        }
        if let Some(values) = schema["enum"].as_array() {
            return Self::join(values.iter().map(|value| Self::text(value.to_string())), " or ");
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            of => of.as_str().into_iter().collect(),
        };
        if types.is_empty() {
            return Self::text("anything");
        }
        Self::join(types.into_iter().map(|of| Self::of_type(of, schema, named)), " or ")
    }

    fn of_type(of: &str, schema: &Value, named: &Named) -> Self {
        match of {
            "array" => match schema["prefixItems"].as_array() {
                Some(parts) => {
                    let parts = Self::join(parts.iter().map(|part| Self::of(part, named)), ", ");
                    Self::text("[").then(parts).then(Self::text("]"))
                }
                None => Self::text("list of ")
                    .then(Self::of(&schema["items"], named))
                    .then(Self::text(bounds(schema, "Items", " items"))),
            },
            "object" if schema["additionalProperties"].is_object() => {
                Self::text("map to ").then(Self::of(&schema["additionalProperties"], named))
            }
            "object" => match schema["properties"].as_object() {
                Some(members) => Self::text(format!("{{{}}}", joined(members.keys()))),
                None => Self::text("object"),
            },
            "string" => {
                let format = schema["format"].as_str().map_or("string", |format| match format {
                    "date-time" => "time",
                    other => other,
                });
                Self::text(format!("{format}{}", bounds(schema, "Length", " characters")))
            }
            "integer" | "number" => {
                let default = schema["default"].as_number();
                let default = default.map_or_else(String::new, |number| format!(", default {number}"));
                Self::text(format!("{of}{}{default}", bounds(schema, "imum", "")))
            }
            other => Self::text(other),
        }
    }
}

/// Returns the name of the schema that a `$ref` refers to.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

fn joined<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Describes `minLength`, `maxLength` and similar bounds. A minimum of 0 is omitted.
fn bounds(schema: &Value, of: &str, unit: &str) -> String {
    let bound = |which: &str| schema[format!("{which}{of}")].as_number().map(ToString::to_string);
    match (bound("min").filter(|min| min != "0"), bound("max")) {
        (Some(min), Some(max)) => format!(", {min} to {max}{unit}"),
        (Some(min), None) => format!(", at least {min}{unit}"),
        (None, Some(max)) => format!(", at most {max}{unit}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_told_in_words() {
        let row = json!({"type": "object", "properties": {"id": {"type": "string"}}});
        let named = Named::from([("Row".to_owned(), row.clone())]);
        let told = |schema: Value| {
            let shape = Shape::of(&schema, &named);
            shape
                .0
                .iter()
                .map(|piece| if piece.is_type { format!("<{}>", piece.text) } else { piece.text.clone() })
                .collect::<String>()
        };
        for (schema, words) in [
            (json!({"$ref": "#/components/schemas/Row"}), "<Row>"),
            (row, "<Row>"),
            (
                json!({"type": "array", "items": {"$ref": "#/components/schemas/Row"}, "maxItems": 5}),
                "list of <Row>, at most 5 items",
            ),
            (json!({"type": ["string", "null"], "format": "date-time"}), "time or null"),
            (json!({"type": "integer", "minimum": 1, "maximum": 1000}), "integer, 1 to 1000"),
            (json!({"type": "integer", "minimum": 0, "default": 10}), "integer, default 10"),
            (json!({"type": "string", "enum": ["a", "b"]}), "\"a\" or \"b\""),
            (json!({"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Row"}]}), "null or <Row>"),
            (json!({"type": "object", "additionalProperties": {"type": "boolean"}}), "map to boolean"),
            (json!({"type": "object", "properties": {"x": {}, "y": {}}}), "{x, y}"),
            (json!({"description": "what was given"}), "anything"),
        ] {
            assert_eq!(told(schema.clone()), words, "{schema}");
        }
    }
}

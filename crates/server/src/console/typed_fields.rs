//! Form fields for the members of a JSON object, by its JSON Schema. Their names begin with the type of the value, so that a form is read
//! without the schema.

use std::collections::BTreeMap;

use milepost_core::bulk::parameters::{Parameters, json_or_text};
use milepost_core::bulk::staged::ColumnType;
use serde_json::Value;
use serde_json::value::RawValue;

use super::flash::Flash;
use super::form::{Control, Field, Sent};

/// The maximum number of members with a field of their own.
const FIELDS_MAX: usize = 40;
/// Prefix of fields whose values are texts.
const TEXT: &str = "text:";
/// Prefix of fields whose values are numbers.
const NUMBER: &str = "number:";
/// Prefix of fields whose values are JSON, or else texts.
const VALUE: &str = "value:";
/// Prefix of fields whose values are JSON.
const JSON: &str = "json:";

/// Returns a field for each property of the schema, required ones first, and one named `rest` for other members if the schema allows them. `None` if the
/// schema does not list properties.
pub(super) fn fields(schema: &Value, rest: &'static str) -> Option<Vec<Field>> {
    let properties = schema.get("properties")?.as_object()?;
    if properties.is_empty() || properties.len() > FIELDS_MAX {
        return None;
    }
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)))
    };
    let mut fields: Vec<Field> = properties
        .iter()
        .map(|(name, property)| Field { required: required(name), ..field(name, property) })
        .collect();
    fields.sort_by_key(|field| !field.required);
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        let others = Field::shown(rest, "Other members, JSON", "", "none");
        fields.push(others.edited_as(Control::Json));
    }
    Some(fields)
}

/// Returns a field for each parameter of a bulk job, and one named `rest` for others, such as empty texts.
pub(super) fn of_parameters(
    parameters: &BTreeMap<String, Option<ColumnType>>,
    rest: &'static str,
) -> Vec<Field> {
    let field = |(name, of): (&String, &Option<ColumnType>)| {
        let (prefix, control, hint) = match of {
            None => (VALUE, Control::Line, "a number, a text, or JSON"),
            Some(ColumnType::Text) => (TEXT, Control::Line, "text"),
            Some(ColumnType::Integer) => (NUMBER, Control::Number, "integer"),
            Some(ColumnType::Number) => (NUMBER, Control::Number, "number"),
            Some(ColumnType::Boolean) => {
                (JSON, Control::Choice([true, false].map(|it| choice(&it.into())).into()), "")
            }
            Some(ColumnType::Json) => (JSON, Control::Json, "JSON"),
        };
        Field::shown(format!("{prefix}{name}"), name.clone(), "", hint).edited_as(control)
    };
    let others = Field::shown(rest, "Other parameters, JSON", "", "none; an empty text is given here");
    parameters.iter().map(field).chain([others.edited_as(Control::Json)]).collect()
}

/// Returns the field of a property.
fn field(name: &str, property: &Value) -> Field {
    let text = |key: &str| property.get(key).and_then(Value::as_str);
    let choices = property.get("enum").and_then(Value::as_array);
    let (prefix, control) = match (choices, text("type"), text("format")) {
        (Some(values), ..) => (JSON, Control::Choice(values.iter().map(choice).collect())),
        (None, Some("boolean"), _) => {
            (JSON, Control::Choice([true, false].map(|it| choice(&it.into())).into()))
        }
        (None, Some("integer" | "number"), _) => (NUMBER, Control::Number),
        (None, Some("string"), Some("date")) => (TEXT, Control::Date),
        (None, Some("string"), _) => (TEXT, Control::Line),
        _ => (JSON, Control::Json),
    };
    let default = property.get("default").map(|default| match default {
        Value::String(text) if prefix == TEXT => text.clone(),
        other => other.to_string(),
    });
    let hint = text("description").or_else(|| text("format")).unwrap_or_default().to_owned();
    let label = text("title").unwrap_or(name).to_owned();
    Field { control, ..Field::shown(format!("{prefix}{name}"), label, default.unwrap_or_default(), hint) }
}

/// Returns a value as JSON, and its label.
fn choice(value: &Value) -> (String, String) {
    (value.to_string(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Returns the JSON value of a form: the object of its typed fields and of the members in the field `rest`, or without typed fields the value of
/// `rest`. Empty fields are left out.
///
/// # Errors
/// A field is not of its type, or a member is given twice.
pub(super) fn value(sent: &Sent, rest: &str) -> Result<Box<RawValue>, Flash> {
    let [texts, numbers, jsons, values] = [TEXT, NUMBER, JSON, VALUE].map(|prefix| sent.after_prefix(prefix));
    let others = sent.field(rest).unwrap_or("{}");
    if [&texts, &numbers, &jsons, &values].iter().all(|fields| fields.is_empty()) {
        return parse(rest, others);
    }
    let mut object = Parameters::read(others)
        .ok_or_else(|| Flash::refused(format!("nothing was done: {rest} must be a JSON object")))?;
    let members = texts
        .into_iter()
        .map(|(name, text)| (name, parse(name, &Value::from(text).to_string())))
        .chain(numbers.into_iter().map(|(name, text)| (name, number(name, text.trim()))))
        .chain(jsons.into_iter().map(|(name, text)| (name, parse(name, text))))
        .chain(values.into_iter().map(|(name, text)| (name, Ok(json_or_text(text)))));
    for (name, value) in members {
        if !object.add(name.to_owned(), value?) {
            return Err(Flash::refused(format!("nothing was done: {name} is given twice")));
        }
    }
    serde_json::value::to_raw_value(&object).map_err(|error| no_json(rest, &error))
}

fn parse(name: &str, text: &str) -> Result<Box<RawValue>, Flash> {
    RawValue::from_string(text.to_owned()).map_err(|error| no_json(name, &error))
}

fn number(name: &str, text: &str) -> Result<Box<RawValue>, Flash> {
    let parsed = RawValue::from_string(text.to_owned()).ok();
    parsed
        .filter(|value| value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()))
        .ok_or_else(|| Flash::refused(format!("nothing was done: {name} is {text:?}, which is no number")))
}

fn no_json(name: &str, error: &serde_json::Error) -> Flash {
    Flash::refused(format!("nothing was done: {name} is no JSON: {error}"))
}

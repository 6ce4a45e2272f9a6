//! The list of configuration keys in `docs/CONFIG.md`, generated from the schema.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value as Json;

use super::schema;

const BEGIN: &str = "<!-- keys: made from the schema -->\n";
const END: &str = "<!-- end of keys -->\n";

/// Appends the tables of all keys, with a heading per section.
fn keys(schema: &Json, name: &str, text: &mut String) {
    let heading = if name.is_empty() { "At the top".to_owned() } else { format!("`[{name}]`") };
    let about = if name.is_empty() { "" } else { schema["description"].as_str().unwrap_or("") };
    let _ = write!(text, "\n### {heading}\n\n{}", one_line(about));
    if !about.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str("| key | value | meaning |\n|---|---|---|\n");
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut sections = Vec::new();
    // The order of the map depends on which features other crates enable.
    let properties: BTreeMap<_, _> = schema["properties"].as_object().unwrap().iter().collect();
    for (key, schema) in properties {
        let must = if required.contains(&Json::from(key.as_str())) { " (needed)" } else { "" };
        let about = one_line(schema["description"].as_str().unwrap_or(""));
        let _ = writeln!(text, "| `{key}`{must} | {} | {about} |", value(schema));
        let path = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        if schema["properties"].is_object() {
            sections.push((path, schema));
        } else if schema["additionalProperties"]["properties"].is_object() {
            sections.push((format!("{path}.NAME"), &schema["additionalProperties"]));
        } else if schema["items"]["properties"].is_object() {
            sections.push((format!("[{path}]"), &schema["items"]));
        }
    }
    for (path, schema) in sections {
        keys(schema, &path, text);
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

fn value(schema: &Json) -> String {
    let format = schema["format"].as_str().map(|format| format.trim_start_matches("milepost-"));
    let Some(kind) = schema["type"].as_str() else { return "anything".to_owned() };
    if let Some(names) = schema["enum"].as_array() {
        // Null, for a key that may be missing, is not written in TOML.
        let names: Vec<String> =
            names.iter().filter_map(Json::as_str).map(|name| format!("`{name}`")).collect();
        return names.join(", ");
    }
    match (format, kind) {
        (Some("duration" | "duration-positive"), _) => "duration".to_owned(),
        (Some("argument"), _) => "text".to_owned(),
        (Some(format), _) => format.to_owned(),
        (_, "string") => "text".to_owned(),
        (_, "boolean") => "true or false".to_owned(),
        (_, "integer" | "number") => match (&schema["minimum"], &schema["maximum"]) {
            (Json::Null, Json::Null) => "number".to_owned(),
            (min, Json::Null) => format!("number, at least {min}"),
            (min, max) => format!("number, {min} to {max}"),
        },
        (_, "array") => match value(&schema["items"]) {
            item if item.starts_with("number") => {
                format!("list of {}", item.replacen("number", "numbers", 1))
            }
            item => format!("list of {item}s"),
        },
        (_, "object") if schema["additionalProperties"]["type"] == "string" => "table of texts".to_owned(),
        _ => "table".to_owned(),
    }
}

/// Run with `MILEPOST_UPDATE_DOCS=1` to regenerate the reference.
#[test]
fn the_reference_lists_every_key_as_the_schema_has_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/CONFIG.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let mut listed = String::new();
    keys(&schema::of_sections(), "", &mut listed);
    let expected = format!("{head}{BEGIN}{listed}\n{END}{tail}");
    if std::env::var_os("MILEPOST_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    assert!(
        page == expected,
        "docs/CONFIG.md differs from the schema; run this test with MILEPOST_UPDATE_DOCS=1"
    );
}

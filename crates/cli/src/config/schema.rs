//! The JSON schema of the file, generated from the sections.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::Value;

use super::Sections;

/// Returns the schema as one document without references.
pub(super) fn of_sections() -> Value {
    let mut settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(plain));
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<Sections>();
    schema.insert("title".to_owned(), "milepost.toml".into());
    schema.to_value()
}

/// Adapts a schema to TOML: there is no null, since optional keys are simply omitted. Numeric formats and defaults are removed.
fn plain(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| !format.starts_with("milepost-")) {
        schema.remove("format");
    }
    schema.remove("default");
}

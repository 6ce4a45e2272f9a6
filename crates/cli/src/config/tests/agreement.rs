//! Comparison of the schema with the check, and of both with a third-party validator.

use super::*;

/// Returns the result of the third-party validator.
fn is_valid(document: &Json) -> bool {
    let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
    compiler.add_resource("milepost.json", schema::of_sections()).unwrap();
    let schema = compiler.compile("milepost.json", &mut schemas).unwrap();
    schemas.validate(document, schema).is_ok()
}

#[test]
fn the_example_has_no_fault_and_fits_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    parse(EXAMPLE, folder.path(), |_| None).unwrap();
    let example: Json = toml::from_str(EXAMPLE).unwrap();
    assert!(is_valid(&example));
}

#[test]
fn a_validator_of_all_of_json_schema_finds_the_same_faults_of_form() {
    let good = json!({ "kinds": { "a": { "exec": { "program": "sh" }, "backoff": { "jitter": 0.5 } } } });
    assert!(is_valid(&good));
    for (pointer, bad) in [
        ("/kinds/a/exec/program", json!(1)),
        ("/kinds/a/backoff/jitter", json!(2)),
        ("/kinds/a/exec", json!({})),
        ("/kinds/a", json!({ "exec": { "program": "sh" }, "colour": 1 })),
        ("/kinds", json!([])),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = bad;
        assert!(!is_valid(&document), "{document}");
        let text = toml::to_string(&document).unwrap();
        assert!(!faults(&text).is_empty(), "{text}");
    }
}

/// Collects every keyword of the schema with its value.
fn words<'a>(schema: &'a Json, found: &mut Vec<(&'a str, &'a Json)>) {
    let Some(object) = schema.as_object() else { return };
    for (word, value) in object {
        found.push((word, value));
        match word.as_str() {
            "properties" => value.as_object().unwrap().values().for_each(|schema| words(schema, found)),
            "items" | "additionalProperties" | "propertyNames" => words(value, found),
            _ => {}
        }
    }
}

#[test]
fn the_schema_says_nothing_that_the_check_does_not_understand() {
    let schema = schema::of_sections();
    let mut found = Vec::new();
    words(&schema, &mut found);
    let understood = [
        "$schema",
        "title",
        "description",
        "type",
        "properties",
        "additionalProperties",
        "propertyNames",
        "required",
        "items",
        "minItems",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "enum",
        "format",
    ];
    let strange: BTreeSet<&str> =
        found.iter().map(|(word, _)| *word).filter(|word| !understood.contains(word)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    for (word, value) in found {
        match word {
            "type" => assert!(value.is_string(), "{value}"),
            // Numeric formats are removed from the schema.
            "format" => assert!(Format::named(value.as_str().unwrap()).is_some(), "{value}"),
            _ => {}
        }
    }
}

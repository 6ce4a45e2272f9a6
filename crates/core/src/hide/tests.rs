//! Tests of hidden data.

use serde_json::json;

use crate::dag::checked::Dag;
use crate::dag::definition::{Definition, Task};

use super::*;

fn hidden(kinds: &[&str], paths: &[&str]) -> Hidden {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Hidden::new(&[HideRule { kinds: owned(kinds), paths: owned(paths) }], &[Role::Admin]).unwrap()
}

fn masked(paths: &[&str], json: &Value) -> Value {
    let text = json.to_string();
    let masked = hidden(&[], paths).mask("k", &text).unwrap_or(text);
    serde_json::from_str(&masked).unwrap()
}

#[test]
fn members_with_the_same_name_hide_nothing_from_the_rules() {
    let rules = hidden(&[], &["customer.email"]);
    let json = r#"{"customer":{"email":"a@b"},"customer":{"ok":1}}"#;
    assert_eq!(rules.mask("k", json).unwrap(), r#"{"customer":{"ok":1}}"#);
    let json = r#"{"customer":{"email":"a@b","email":"c@d"}}"#;
    assert_eq!(rules.mask("k", json).unwrap(), r#"{"customer":{"email":"[hidden]"}}"#);
    assert_eq!(rules.mask("k", r#"{"customer":{"ok":1},"amount":1.10}"#), None);
}

#[test]
fn values_in_the_text_of_json_of_the_audit_are_hidden() {
    let mut detail =
        json!({"after": {"payload": r#"{"iban": "DE1", "ok": 1}"#, "note": r#"{"iban": "DE1"}"#}});
    hidden(&[], &["**.iban"]).mask_within(&mut detail, |name| name == "payload");
    let after = json!({"payload": r#"{"iban":"[hidden]","ok":1}"#, "note": r#"{"iban": "DE1"}"#});
    assert_eq!(detail, json!({"after": after}));
}

#[test]
fn quotes_in_errors_of_tasks_are_hidden() {
    let masked = |error: &str| {
        let mut error = error.to_owned();
        hidden(&[], &["iban"]).mask_quotes(&mut error);
        error
    };
    assert_eq!(masked("expression: \"DE1\" is not a time"), "expression: [hidden]");
    assert_eq!(masked("cannot_start: 'DE1' does not match"), "cannot_start: [hidden]");
    assert_eq!(masked("the customer has called: twice"), "the customer has called: twice");
}

#[test]
fn values_at_paths_are_hidden_and_others_are_not() {
    let person = json!({
        "customer": {"email": "a@b", "name": "Ada", "iban": "DE1"},
        "cards": [{"number": 1, "brand": "v"}, {"number": 2, "deep": {"iban": "DE2"}}],
        "iban": null,
    });
    let hide = |paths: &[&str]| masked(paths, &person);
    assert_eq!(
        hide(&["customer.email"])["customer"],
        json!({"email": "[hidden]", "name": "Ada", "iban": "DE1"})
    );
    assert_eq!(hide(&["customer"])["customer"], "[hidden]");
    let cards = hide(&["cards[*].number"])["cards"].clone();
    assert_eq!(
        (&cards[0], &cards[1]["number"]),
        (&json!({"number": "[hidden]", "brand": "v"}), &json!("[hidden]"))
    );
    assert_eq!(hide(&["cards[1].number"])["cards"][0]["number"], 1);
    let anywhere = hide(&["**.iban"]);
    assert_eq!((&anywhere["iban"], &anywhere["customer"]["iban"]), (&json!("[hidden]"), &json!("[hidden]")));
    assert_eq!(anywhere["cards"][1]["deep"]["iban"], "[hidden]");
    assert_eq!(anywhere["customer"]["email"], "a@b");
    assert_eq!(hide(&["*.name"])["customer"]["name"], "[hidden]");
    assert_eq!(hide(&["customer.**"])["customer"], "[hidden]");
    assert_eq!(hide(&["cards.**.iban"])["cards"][1]["deep"]["iban"], "[hidden]");
    assert_eq!(
        hide(&["email", "cards.number", "customer[0]", "Customer.email"]),
        person,
        "these match nothing"
    );
    assert_eq!(masked(&["[*].a"], &json!([{"a": 1}])), json!([{"a": "[hidden]"}]));
    assert_eq!(masked(&["**"], &json!({"a": {"b": 1}, "c": [1]})), json!({"a": "[hidden]", "c": "[hidden]"}));
}

#[test]
fn a_rule_applies_to_its_kinds_and_numbers_keep_their_digits() {
    let rules = hidden(&["mail.*", "news"], &["a"]);
    let text = r#"{"a":1,"b":12345678901234567890.123456789}"#;
    assert_eq!(rules.mask("billing", text), None);
    let expected = r#"{"a":"[hidden]","b":12345678901234567890.123456789}"#;
    for kind in ["mail.send", "news"] {
        assert_eq!(rules.mask(kind, text).as_deref(), Some(expected));
    }
    assert_eq!(rules.mask("news", r#"{"b":1}"#), None);
    assert_eq!(rules.mask("news", "not JSON").as_deref(), Some("\"[hidden]\""));
}

#[test]
fn a_text_is_masked_if_it_is_json() {
    let rules = hidden(&[], &["a"]);
    let mask = |text: &str| {
        let mut text = text.to_owned();
        rules.mask_text("k", &mut text);
        text
    };
    assert_eq!(mask(r#" {"a": "secret"}"#), r#"{"a":"[hidden]"}"#);
    for text in ["a: secret", "{a}", "[1] is bad", "{\"b\": 1}"] {
        assert_eq!(mask(text), text);
    }
}

#[test]
fn a_search_is_refused_at_above_and_below_a_hidden_value() {
    let rules = hidden(&["mail"], &["customer.email", "cards[*].number", "**.iban.code"]);
    let is_refused = |kind: Option<&str>, path: &str| {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        rules.check_search(kind, &path).is_err()
    };
    for path in
        ["customer.email", "customer", "customer.email.x", "cards.0.number", "cards", "cards.1", "x.iban"]
    {
        assert!(is_refused(Some("mail"), path) && is_refused(None, path), "{path}");
        assert!(!is_refused(Some("other"), path), "{path}");
    }
    let rules = hidden(&[], &["customer.email", "cards[*].number"]);
    for path in ["customer.name", "id", "cards.number", "cards.0.brand"] {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        assert_eq!(rules.check_search(None, &path), Ok(()), "{path:?}");
    }
}

#[test]
fn a_placeholder_is_found_only_in_place_of_a_hidden_value() {
    let rules = hidden(&[], &["a.b"]);
    assert!(rules.has_placeholder("k", r#"{"a": {"b": "[hidden]"}}"#));
    assert!(!rules.has_placeholder("k", r#"{"a": {"b": "x"}, "c": "[hidden]"}"#));
}

#[test]
fn rules_that_cannot_be_are_refused() {
    let of = |kinds: &[&str], paths: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Hidden::new(&[HideRule { kinds: owned(kinds), paths: owned(paths) }], &[])
    };
    let deep = vec!["a"; STEPS_MAX + 1].join(".");
    for path in ["", "a..b", ".a", "a.", "a[", "a[x]", "a[1", "a*", "a[1]b", &deep, &"a".repeat(501)] {
        assert!(matches!(of(&[], &[path]), Err(InvalidHide::Path { .. })), "{path}");
    }
    assert!(matches!(of(&["a*b"], &["a"]), Err(InvalidHide::Pattern { .. })));
    assert!(matches!(of(&[], &[]), Err(InvalidHide::NoPaths { number: 1 })));
    assert!(matches!(of(&[], &vec!["a"; PATHS_MAX + 1]), Err(InvalidHide::TooMany { what: "paths", .. })));
    assert!(matches!(Hidden::new(&[], &[Role::Viewer]), Err(InvalidHide::Role(Role::Viewer))));
    assert!(of(&[], &["a[1][*].b", "[0]", "**.x"]).is_ok());
}

#[test]
fn a_dag_that_reads_hidden_values_is_recognized() {
    let rules = hidden(&["orders", "mail.*"], &["**.iban"]);
    let reads = |name: &str, second: Task| {
        let dag = Definition::new(name).task("a", Task::job("mail.send")).task("b", second.after(["a"]));
        rules.is_read_by(&Dag::check(dag).unwrap())
    };
    let plain = || Task::job("k");
    let payload = |text: &str| plain().payload(json!({ "x": text }));
    assert!(!reads("orders", plain()));
    assert!(!reads("orders", payload("no expression")));
    assert!(reads("orders", payload("${ input.id }")));
    assert!(!reads("other", payload("${ input.id }")), "its input is not hidden");
    assert!(reads("other", payload("${ tasks.a.output.iban }")));
    assert!(reads("orders", plain().when("input.iban == 'DE1'")));
    assert!(reads("other", plain().when("tasks.all(t, t.output == null)")));
    assert!(reads("orders", Task { each: Some("input.items".to_owned()), ..plain() }));
    let with_schema = |name: &str| {
        let mut dag = Definition::new(name).task("a", plain());
        dag.input_schema = Some(json!({"type": "object"}));
        rules.is_read_by(&Dag::check(dag).unwrap())
    };
    assert_eq!((with_schema("orders"), with_schema("other")), (true, false));
}

#[test]
fn the_output_of_an_inner_batch_can_be_hidden() {
    let rules = hidden(&["mail.*"], &["**.iban"]);
    let dag = Definition::new("d")
        .task("a", Task::batch("inner"))
        .task("b", Task::job("k").payload(json!({ "x": "${ tasks.a.output }" })).after(["a"]));
    let dag = Dag::check(dag).unwrap();
    assert!(rules.is_read_by(&dag));
    assert!(!Hidden::default().is_read_by(&dag));
}

//! Tests of `[hide]`: accepted rules and rejected ones.

use milepost_core::token::Role;

use super::*;

#[test]
fn rules_hide_what_they_name() {
    let text = r#"
        [hide]
        reveal = ["admin"]

        [[hide.rules]]
        kinds = ["mail.*"]
        paths = ["customer.email"]

        [[hide.rules]]
        paths = ["**.iban"]
    "#;
    let hidden = parse(text, Path::new("/"), |_| None).unwrap().hide.hidden();
    assert!(hidden.may_reveal(Role::Admin) && !hidden.may_reveal(Role::Operator));
    let json = r#"{"customer":{"email":"a","iban":"b"}}"#;
    let expected = r#"{"customer":{"email":"[hidden]","iban":"[hidden]"}}"#;
    assert_eq!(hidden.mask("mail.send", json).as_deref(), Some(expected));
    let expected = r#"{"customer":{"email":"a","iban":"[hidden]"}}"#;
    assert_eq!(hidden.mask("other", json).as_deref(), Some(expected));
    let none = parse("", Path::new("/"), |_| None).unwrap().hide.hidden();
    assert!(none.is_empty() && !none.can_be_revealed());
}

#[test]
fn rules_that_cannot_be_are_refused_at_their_place() {
    for (text, what) in [
        ("[[hide.rules]]\npaths = [\"a..b\"]", "a name is missing"),
        ("[[hide.rules]]\npaths = []", "has no paths"),
        ("[[hide.rules]]\nkinds = [\"a*b\"]\npaths = [\"a\"]", "a `*` can only be its last character"),
        ("[hide]\nreveal = [\"viewer\"]", "viewer"),
        ("[[hide.rules]]\nkinds = [\"a\"]", "paths"),
    ] {
        let faults = faults(text);
        assert!(faults.len() == 1 && faults[0].contains(what), "{text}: {faults:?}");
    }
}

//! Hidden data: values at configured paths of stored JSON, which users of a server see as `"[hidden]"`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::batch::due::{CANNOT_START, EXPRESSION};
use crate::json::{Exact, plain_value};
use crate::pattern::{check_pattern, matches_any};
use crate::token::Role;

/// The text in place of a hidden value.
pub const PLACEHOLDER: &str = "[hidden]";
/// The maximum number of rules.
pub const RULES_MAX: usize = 100;
/// The maximum number of paths of all rules.
pub const PATHS_MAX: usize = 500;
/// The maximum number of steps of a path.
pub const STEPS_MAX: usize = 16;
/// The maximum length of a path, in bytes.
pub const PATH_BYTES_MAX: usize = 500;

/// Which values are hidden in the JSON of some kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HideRule {
    /// Patterns of kinds of jobs, of names of bulk jobs and DAGs, and of types of aggregates; empty: all.
    pub kinds: Vec<String>,
    /// Paths, such as `customer.email`, `cards[*].number` and `**.iban`.
    pub paths: Vec<String>,
}

/// An invalid rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidHide {
    /// There are too many rules or paths.
    #[error("there are {given} {what}; at most {max} are allowed")]
    TooMany {
        /// Rules or paths.
        what: &'static str,
        /// The given number.
        given: usize,
        /// The maximum.
        max: usize,
    },
    /// A rule hides nothing.
    #[error("rule {number} has no paths; name at least one, or remove the rule")]
    NoPaths {
        /// The number of the rule, from 1.
        number: usize,
    },
    /// A path is invalid.
    #[error("path {path:?}: {why}; write paths as customer.email, cards[*].number or **.iban")]
    Path {
        /// The path, shortened.
        path: String,
        /// The reason.
        why: &'static str,
    },
    /// A pattern of kinds is invalid.
    #[error("pattern {pattern:?}: {why}")]
    Pattern {
        /// The pattern, shortened.
        pattern: String,
        /// The reason.
        why: String,
    },
    /// A role that cannot read jobs cannot reveal their values.
    #[error("role {0} cannot reveal values; the roles are operator and admin")]
    Role(Role),
}

/// A request that hidden data does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HideRefusal {
    /// A search by a hidden value.
    #[error(
        "values at {path} are hidden by the configuration, so jobs cannot be found by them; search by another path, or for a kind in which they are \
         not hidden"
    )]
    Search {
        /// The path of the search.
        path: String,
    },
    /// The placeholder would be stored in place of the value.
    #[error("{what} has the text \"{PLACEHOLDER}\" in place of a hidden value; give the value itself")]
    Placeholder {
        /// What would be stored.
        what: String,
    },
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The member with this name.
    Member(String),
    /// Any member: `*`.
    AnyMember,
    /// The item at this place of a list: `[3]`.
    Item(usize),
    /// Any item: `[*]`.
    AnyItem,
    /// Any number of members and items, also none: `**`.
    Anywhere,
}

#[derive(Clone, Debug)]
struct Rule {
    kinds: Vec<String>,
    paths: Vec<Vec<Step>>,
}

/// The compiled rules, and the roles that may see hidden values on request.
#[derive(Clone, Debug, Default)]
pub struct Hidden {
    rules: Vec<Rule>,
    reveal: Vec<Role>,
}

/// The rests of paths that can match below a value.
type Active<'r> = Vec<&'r [Step]>;

impl Hidden {
    /// Compiles rules. `reveal`: the roles that may see hidden values on request.
    ///
    /// # Errors
    /// [`InvalidHide`] with the first fault.
    pub fn new(rules: &[HideRule], reveal: &[Role]) -> Result<Self, InvalidHide> {
        let paths = rules.iter().map(|rule| rule.paths.len()).sum();
        for (what, given, max) in [("rules", rules.len(), RULES_MAX), ("paths", paths, PATHS_MAX)] {
            if given > max {
                return Err(InvalidHide::TooMany { what, given, max });
            }
        }
        if let Some(role) = reveal.iter().find(|role| !role.allows(Role::Operator)) {
            return Err(InvalidHide::Role(*role));
        }
        let rules = rules.iter().zip(1..).map(|(rule, number)| compile(rule, number));
        Ok(Self { rules: rules.collect::<Result<_, _>>()?, reveal: reveal.to_vec() })
    }

    /// Returns whether nothing is hidden.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether a role may see hidden values on request.
    #[must_use]
    pub fn may_reveal(&self, role: Role) -> bool {
        self.reveal.contains(&role)
    }

    /// Returns whether any role may see hidden values on request.
    #[must_use]
    pub const fn can_be_revealed(&self) -> bool {
        !self.reveal.is_empty()
    }

    /// Returns the paths of a kind; `None`: those of all kinds.
    fn paths(&self, kind: Option<&str>) -> Active<'_> {
        let applies = |rule: &&Rule| kind.is_none_or(|kind| matches_any(&rule.kinds, kind));
        self.rules.iter().filter(applies).flat_map(|rule| rule.paths.iter().map(Vec::as_slice)).collect()
    }

    /// Returns JSON text of a kind with the placeholder for each hidden value; `None` if nothing is hidden in it.
    #[must_use]
    pub fn mask(&self, kind: &str, json: &str) -> Option<String> {
        let paths = self.paths(Some(kind));
        if paths.is_empty() {
            return None;
        }
        let mut is_changed = false;
        let masked =
            Exact::read(json).map(|value| value.changed(|value| is_changed = mask_below(value, &paths)));
        match masked.and_then(|masked| serde_json::to_string(&masked)) {
            // Of members with the same name, only the last one was read: the text has the others, too.
            Ok(masked) => (is_changed || has_same_names(json)).then_some(masked),
            // Text that cannot be read may contain what must be hidden.
            Err(_) => Some(Value::from(PLACEHOLDER).to_string()),
        }
    }

    /// Returns whether something is hidden in JSON of this kind.
    #[must_use]
    pub fn hides_in(&self, kind: &str) -> bool {
        !self.paths(Some(kind)).is_empty()
    }

    /// Replaces the hidden values of JSON of a kind.
    pub fn mask_json(&self, kind: &str, json: &mut Box<RawValue>) {
        if let Some(masked) = self.mask(kind, json.get()).and_then(|text| RawValue::from_string(text).ok()) {
            *json = masked;
        }
    }

    /// Replaces the hidden values of a text of a kind, if it is a JSON object or list. Other texts have no paths.
    pub fn mask_text(&self, kind: &str, text: &mut String) {
        if text.trim_start().starts_with(['{', '['])
            && serde_json::from_str::<&RawValue>(text).is_ok()
            && let Some(masked) = self.mask(kind, text)
        {
            *text = masked;
        }
    }

    /// Replaces a text, whose kind is not known, if it is a JSON object or list.
    pub fn mask_text_of_any(&self, text: &mut String) {
        if text.trim_start().starts_with(['{', '[']) && !self.is_empty() {
            PLACEHOLDER.clone_into(text);
        }
    }

    /// Replaces the values that are hidden in any kind, at any depth of a value. `begins`: whether paths begin at a member with this name.
    pub fn mask_within(&self, value: &mut Value, begins: fn(&str) -> bool) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_within(item, begins)),
            Value::Object(members) => {
                for (name, member) in members {
                    if begins(name) {
                        self.mask_member(member);
                    } else {
                        self.mask_within(member, begins);
                    }
                }
            }
            _ => {}
        }
    }

    /// Replaces the values that are hidden in any kind, in a value or in the text of one.
    fn mask_member(&self, member: &mut Value) {
        let paths = self.paths(None);
        let Value::String(text) = member else {
            mask_below(member, &paths);
            return;
        };
        if let Ok(mut value) = serde_json::from_str::<Value>(text)
            && (mask_below(&mut value, &paths) || has_same_names(text))
        {
            *text = value.to_string();
        }
    }

    /// Replaces what follows the code in an error of a task without a job: expressions and schemas quote the values that do not fit.
    pub fn mask_quotes(&self, error: &mut String) {
        if let Some((code, _)) = error.split_once(": ")
            && [EXPRESSION, CANNOT_START].contains(&code)
            && !self.is_empty()
        {
            *error = format!("{code}: {PLACEHOLDER}");
        }
    }

    /// Returns whether JSON of a kind has the placeholder where a value is hidden.
    #[must_use]
    pub fn has_placeholder(&self, kind: &str, json: &str) -> bool {
        let paths = self.paths(Some(kind));
        let Ok(before) = serde_json::from_str::<Value>(json) else { return false };
        if paths.is_empty() || !json.contains(PLACEHOLDER) {
            return false;
        }
        let mut found = false;
        let mut value = before;
        visit(&mut value, &paths, &mut |hidden| found |= hidden == PLACEHOLDER);
        found
    }

    /// Refuses a search for a value that is hidden, contains a hidden value, or is a part of one. `kind`: the only kind of the search.
    ///
    /// # Errors
    /// [`HideRefusal::Search`].
    pub fn check_search(&self, kind: Option<&str>, path: &[String]) -> Result<(), HideRefusal> {
        let mut active = self.paths(kind);
        for name in path {
            let item = name.parse().ok();
            let below = below(&active, |step| match step {
                Step::Member(its) => its == name,
                Step::Item(its) => item == Some(*its),
                Step::AnyItem => item.is_some(),
                Step::AnyMember | Step::Anywhere => true,
            });
            match below {
                Below::Hidden => return Err(HideRefusal::Search { path: path.join(".") }),
                Below::Active(rests) => active = rests,
            }
        }
        if active.is_empty() { Ok(()) } else { Err(HideRefusal::Search { path: path.join(".") }) }
    }
}

/// Returns whether members of an object have the same name, or a value cannot be read exactly.
fn has_same_names(json: &str) -> bool {
    plain_value(&mut serde_json::Deserializer::from_str(json)).is_err()
}

/// What the paths mean for a member or an item.
enum Below<'r> {
    Hidden,
    Active(Active<'r>),
}

/// Returns what the paths mean for a member or an item that `is` the next step of some.
fn below<'r>(active: &[&'r [Step]], is: impl Fn(&Step) -> bool) -> Below<'r> {
    let mut rests: Active<'r> = Vec::new();
    let mut add = |rest: &'r [Step]| {
        // The rests are parts of the rules: equal ones have the same address.
        if !rests.iter().any(|its| std::ptr::eq(*its, rest)) {
            rests.push(rest);
        }
    };
    for path in active {
        let mut path = *path;
        // Any number of steps can also be none.
        while let [Step::Anywhere, rest @ ..] = path {
            add(path);
            path = rest;
        }
        match path {
            [] => return Below::Hidden,
            [step] if is(step) => return Below::Hidden,
            [step, rest @ ..] if is(step) => {
                // A path that ends with any number of steps hides everything below.
                if rest.iter().all(|step| *step == Step::Anywhere) {
                    return Below::Hidden;
                }
                add(rest);
            }
            _ => {}
        }
    }
    Below::Active(rests)
}

/// Replaces the hidden values of a value. Returns whether there are some.
fn mask_below(value: &mut Value, active: &[&[Step]]) -> bool {
    let mut is_changed = false;
    visit(value, active, &mut |hidden| {
        *hidden = Value::from(PLACEHOLDER);
        is_changed = true;
    });
    is_changed
}

/// Calls `hide` for each hidden value.
fn visit(value: &mut Value, active: &[&[Step]], hide: &mut impl FnMut(&mut Value)) {
    let mut one = |value: &mut Value, below: Below<'_>| match below {
        Below::Hidden => hide(value),
        Below::Active(rests) if rests.is_empty() => {}
        Below::Active(rests) => visit(value, &rests, hide),
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let is = |step: &Step| match step {
                    Step::Member(its) => its == name,
                    Step::AnyMember => true,
                    _ => false,
                };
                one(member, below(active, is));
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter_mut().enumerate() {
                let is = |step: &Step| match step {
                    Step::Item(its) => *its == place,
                    Step::AnyItem => true,
                    _ => false,
                };
                one(item, below(active, is));
            }
        }
        _ => {}
    }
}

fn compile(rule: &HideRule, number: usize) -> Result<Rule, InvalidHide> {
    if rule.paths.is_empty() {
        return Err(InvalidHide::NoPaths { number });
    }
    for pattern in &rule.kinds {
        check_pattern(pattern)
            .map_err(|why| InvalidHide::Pattern { pattern: pattern.chars().take(60).collect(), why })?;
    }
    let paths = rule.paths.iter().map(|path| {
        parse(path).map_err(|why| InvalidHide::Path { path: path.chars().take(60).collect(), why })
    });
    Ok(Rule { kinds: rule.kinds.clone(), paths: paths.collect::<Result<_, _>>()? })
}

/// Parses a path.
fn parse(path: &str) -> Result<Vec<Step>, &'static str> {
    if path.len() > PATH_BYTES_MAX {
        return Err("it is longer than 500 bytes");
    }
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, mut items) = part.split_at(part.find('[').unwrap_or(part.len()));
        match name {
            "" if items.is_empty() || !steps.is_empty() => return Err("a name is missing"),
            "" => {}
            "**" => steps.push(Step::Anywhere),
            "*" => steps.push(Step::AnyMember),
            name if name.contains('*') => return Err("a `*` stands for a whole name"),
            name => steps.push(Step::Member(name.to_owned())),
        }
        while !items.is_empty() {
            let inner = items.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let (place, rest) = inner.ok_or("a bracket is not closed")?;
            steps.push(match place {
                "*" => Step::AnyItem,
                place => Step::Item(place.parse().map_err(|_| "brackets contain a number or `*`")?),
            });
            items = rest;
        }
    }
    if steps.len() > STEPS_MAX {
        return Err("it has more than 16 steps");
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert_eq!(
            (&anywhere["iban"], &anywhere["customer"]["iban"]),
            (&json!("[hidden]"), &json!("[hidden]"))
        );
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
        assert_eq!(
            masked(&["**"], &json!({"a": {"b": 1}, "c": [1]})),
            json!({"a": "[hidden]", "c": "[hidden]"})
        );
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
        assert!(matches!(
            of(&[], &vec!["a"; PATHS_MAX + 1]),
            Err(InvalidHide::TooMany { what: "paths", .. })
        ));
        assert!(matches!(Hidden::new(&[], &[Role::Viewer]), Err(InvalidHide::Role(Role::Viewer))));
        assert!(of(&[], &["a[1][*].b", "[0]", "**.x"]).is_ok());
    }
}

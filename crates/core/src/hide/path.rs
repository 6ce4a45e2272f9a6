//! Paths of hidden values: their notation, and the values of a JSON value to which they lead.

use serde_json::Value;

use super::{PATH_BYTES_MAX, PLACEHOLDER, STEPS_MAX};
use crate::json::{Exact, plain_value};

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
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

/// The rests of paths that can match below a value.
pub(super) type Active<'r> = Vec<&'r [Step]>;

/// Returns JSON text with the placeholder for each hidden value; `None` if nothing is hidden in it.
///
/// # Errors
/// When the text is not JSON.
pub(super) fn mask_json_text(json: &str, active: &[&[Step]]) -> Result<Option<String>, serde_json::Error> {
    let mut is_changed = false;
    let masked = Exact::read(json)?.changed(|value| is_changed = mask_below(value, active));
    // Of members with the same name, only the last one was read: the text has the others, too.
    let differs = is_changed || has_same_names(json);
    differs.then(|| serde_json::to_string(&masked)).transpose()
}

/// Returns whether members of an object have the same name, or a value cannot be read exactly.
fn has_same_names(json: &str) -> bool {
    plain_value(&mut serde_json::Deserializer::from_str(json)).is_err()
}

/// What the paths mean for a member or an item.
pub(super) enum Below<'r> {
    Hidden,
    Active(Active<'r>),
}

/// Returns what the paths mean for a member or an item that `is` the next step of some.
pub(super) fn below<'r>(active: &[&'r [Step]], is: impl Fn(&Step) -> bool) -> Below<'r> {
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
pub(super) fn mask_below(value: &mut Value, active: &[&[Step]]) -> bool {
    let mut is_changed = false;
    visit(value, active, &mut |hidden| {
        *hidden = Value::from(PLACEHOLDER);
        is_changed = true;
    });
    is_changed
}

/// Calls `hide` for each hidden value.
pub(super) fn visit(value: &mut Value, active: &[&[Step]], hide: &mut impl FnMut(&mut Value)) {
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

/// Parses a path.
pub(super) fn parse(path: &str) -> Result<Vec<Step>, &'static str> {
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

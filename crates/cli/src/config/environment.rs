//! Environment variables in the texts of a file: `${NAME}`; `$${` is an escaped `${`.

use std::cell::RefCell;

use super::document::{Node, Value};
use super::fault::Faults;

/// Replaces variables by their values from the environment, and returns these values. An unset variable is a fault. Values are hidden in faults, except
/// those of fewer than 8 bytes.
pub(super) fn fill_in(
    node: &mut Node,
    file: &str,
    variable: impl Fn(&str) -> Option<String>,
    faults: &mut Faults,
) -> Vec<String> {
    let values = RefCell::new(Vec::new());
    let variable = |name: &str| variable(name).inspect(|value| values.borrow_mut().push(value.clone()));
    fill_in_all(node, file, &variable, faults);
    let values = values.into_inner();
    faults.hide(values.iter().cloned());
    values
}

fn fill_in_all(node: &mut Node, file: &str, variable: &dyn Fn(&str) -> Option<String>, faults: &mut Faults) {
    match &mut node.value {
        Value::Text { text, from_environment } if text.contains("${") => {
            match filled(text, variable) {
                Ok(filled) => *text = filled,
                Err(missing) => {
                    let at = file[node.span.clone()].find(&missing.place).unwrap_or(0);
                    faults.add(node.span.start + at, missing.what, missing.remedy);
                    // Prevents further faults about a text with an unset variable.
                    text.clear();
                }
            }
            *from_environment = true;
        }
        Value::List(nodes) => nodes.iter_mut().for_each(|node| fill_in_all(node, file, variable, faults)),
        Value::Table(entries) => {
            entries.iter_mut().for_each(|entry| fill_in_all(&mut entry.node, file, variable, faults));
        }
        _ => {}
    }
}

struct Missing {
    place: String,
    what: String,
    remedy: String,
}

fn filled(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, Missing> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            filled.push_str(before);
            filled.push_str("${");
            rest = after;
            continue;
        }
        let named = after.split_once('}').filter(|(name, _)| is_name(name));
        let Some((name, after)) = named else {
            return Err(Missing {
                place: "${".to_owned(),
                what: "${ begins an environment variable, but is not followed by a name and }".to_owned(),
                remedy: "write ${NAME}, or $${ for a literal ${".to_owned(),
            });
        };
        let value = variable(name).ok_or_else(|| Missing {
            place: format!("${{{name}}}"),
            what: format!("the environment variable {name} is not set"),
            remedy: format!("set {name} before milepost starts, or write the value here"),
        })?;
        filled.push_str(before);
        filled.push_str(&value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<String> {
        filled(text, &|name| (name == "HOST").then(|| "db.internal".to_owned())).ok()
    }

    #[test]
    fn variables_are_put_in_and_a_doubled_dollar_is_one() {
        assert_eq!(
            text("postgres://${HOST}:5432/${HOST}").unwrap(),
            "postgres://db.internal:5432/db.internal"
        );
        assert_eq!(text("$HOST, $${HOST} and $5").unwrap(), "$HOST, ${HOST} and $5");
        for bad in ["${PORT}", "${", "${}", "${HO ST}", "${1}"] {
            assert_eq!(text(bad), None, "{bad}");
        }
    }
}

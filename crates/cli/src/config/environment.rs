//! Environment variables in the texts of a file: `${NAME}`; `$${` is an escaped `${`.

use super::document::{Node, Value};
use super::fault::Faults;
use crate::input::DOCUMENT_BYTES_MAX;

/// Replaces variables by their values from the environment, and returns these values. An unset variable is a fault. Values are hidden in faults, except
/// those of fewer than 8 bytes.
pub(super) fn fill_in(
    node: &mut Node,
    file: &str,
    variable: impl Fn(&str) -> Option<String>,
    faults: &mut Faults,
) -> Vec<String> {
    let mut environment = Environment { variable: &variable, values: Vec::new(), bytes: 0 };
    environment.fill_in(node, file, faults);
    faults.hide(environment.values.iter().cloned());
    environment.values
}

/// The environment, and what has been inserted from it.
struct Environment<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// The inserted values, each once.
    values: Vec<String>,
    /// The size of all insertions.
    bytes: u64,
}

impl Environment<'_> {
    fn fill_in(&mut self, node: &mut Node, file: &str, faults: &mut Faults) {
        match &mut node.value {
            Value::Text { text, from_environment } if text.contains("${") => {
                match self.filled(text) {
                    Ok(filled) => {
                        *from_environment = filled != text.replace("$${", "${");
                        *text = filled;
                    }
                    Err(missing) => {
                        let at = file[node.span.clone()].find(&missing.place).unwrap_or(0);
                        faults.add(node.span.start + at, missing.what, missing.remedy);
                        // Prevents further faults about a text with an unset variable.
                        text.clear();
                        *from_environment = true;
                    }
                }
            }
            Value::List(nodes) => nodes.iter_mut().for_each(|node| self.fill_in(node, file, faults)),
            Value::Table(entries) => {
                entries.iter_mut().for_each(|entry| self.fill_in(&mut entry.node, file, faults));
            }
            _ => {}
        }
    }

    fn filled(&mut self, text: &str) -> Result<String, Missing> {
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
            filled.push_str(before);
            filled.push_str(self.value(name)?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Returns the value of a variable, unless it is unset or too much has been inserted.
    fn value(&mut self, name: &str) -> Result<&str, Missing> {
        let missing = |what: String, remedy: String| Missing { place: format!("${{{name}}}"), what, remedy };
        let value = (self.variable)(name).ok_or_else(|| {
            missing(
                format!("the environment variable {name} is not set"),
                format!("set {name} before milepost starts, or write the value here"),
            )
        })?;
        self.bytes += value.len() as u64;
        if self.bytes > DOCUMENT_BYTES_MAX {
            return Err(missing(
                format!(
                    "with {name}, more than {DOCUMENT_BYTES_MAX} bytes are inserted from the environment"
                ),
                "insert less".to_owned(),
            ));
        }
        let known = self.values.iter().position(|known| *known == value);
        let index = known.unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        });
        Ok(&self.values[index])
    }
}

struct Missing {
    place: String,
    what: String,
    remedy: String,
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
        let variable = |name: &str| (name == "HOST").then(|| "db.internal".to_owned());
        Environment { variable: &variable, values: Vec::new(), bytes: 0 }.filled(text).ok()
    }

    #[test]
    fn what_is_inserted_is_limited() {
        let large = "x".repeat(usize::try_from(DOCUMENT_BYTES_MAX / 4).unwrap());
        let variable = |_: &str| Some(large.clone());
        let mut environment = Environment { variable: &variable, values: Vec::new(), bytes: 0 };
        for _ in 0..4 {
            assert!(environment.filled("${A}").is_ok());
        }
        assert_eq!(environment.values.len(), 1, "kept once");
        let refused = environment.filled("${A}").expect_err("too much");
        assert!(refused.what.contains("inserted from the environment"), "{}", refused.what);
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

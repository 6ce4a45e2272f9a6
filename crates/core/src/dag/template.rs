//! Templates: payloads with embedded expressions.
//!
//! A string that is exactly `${ CEL }` becomes the value, of any type. In a longer string the value is inserted as
//! text: a string as it is, other values as JSON. `$${` is a literal `${`. Member names are not templates.

use serde_json::Value;
use thiserror::Error;

use super::expression::{EvaluationError, Expression, InvalidExpression, Over, Reads, Scope};
use crate::json::Exact;

/// The maximum number of expressions in one template.
pub const EXPRESSIONS_MAX: usize = 1000;
/// The maximum total size of the expressions in one template, in bytes. They are compiled whenever the task is due, at about 4 µs per byte.
pub const EXPRESSION_BYTES_MAX: usize = 32 * 1024;

/// An invalid template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidTemplate {
    /// A `${` without its `}`.
    #[error("{}: the expression that begins with ${{ is not closed", place(.pointer))]
    Unclosed {
        /// The location, as a JSON pointer.
        pointer: String,
    },
    /// An expression that does not compile.
    #[error("{}: {invalid}", place(.pointer))]
    Expression {
        /// The location, as a JSON pointer.
        pointer: String,
        /// The reason.
        #[source]
        invalid: InvalidExpression,
    },
    /// There are too many expressions, or they are too large.
    #[error(
        "it has more than {EXPRESSIONS_MAX} expressions, or more than {EXPRESSION_BYTES_MAX} bytes of them"
    )]
    TooMany,
}

impl InvalidTemplate {
    /// Returns the location of the fault, as a JSON pointer, if it is at one.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        match self {
            Self::Unclosed { pointer } | Self::Expression { pointer, .. } => Some(pointer),
            Self::TooMany => None,
        }
    }
}

/// A template that cannot be rendered with the given values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RenderError {
    /// An expression that cannot be evaluated.
    #[error("{}: {error}", place(.pointer))]
    Evaluation {
        /// The location, as a JSON pointer.
        pointer: String,
        /// The reason.
        #[source]
        error: EvaluationError,
    },
    /// The payload would be too large.
    #[error("the payload would have more than {bytes_max} bytes")]
    TooLarge {
        /// The limit.
        bytes_max: usize,
    },
}

fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "the payload" } else { pointer }
}

/// A compiled template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    root: Value,
    /// The strings with expressions, by JSON pointer.
    strings: Vec<(String, Vec<Piece>)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Value(Expression),
}

impl Template {
    /// Compiles the strings of a value, over the variables of a batch.
    ///
    /// # Errors
    /// [`InvalidTemplate`] with the first fault and its location.
    pub fn compile(value: &Value) -> Result<Self, InvalidTemplate> {
        Self::compile_over(value, Over::Batch)
    }

    /// Compiles the strings of a value, over these variables.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_over(value: &Value, over: Over) -> Result<Self, InvalidTemplate> {
        let mut faults = Vec::new();
        let template = Self::compile_each(value, over, &mut faults);
        faults.into_iter().next().map_or(Ok(template), Err)
    }

    /// Compiles the strings of a value; appends the faults to `faults` and omits the faulty strings.
    pub(super) fn compile_all(value: &Value, faults: &mut Vec<InvalidTemplate>) -> Self {
        Self::compile_each(value, Over::Batch, faults)
    }

    fn compile_each(value: &Value, over: Over, faults: &mut Vec<InvalidTemplate>) -> Self {
        let mut template = Self { root: value.clone(), strings: Vec::new() };
        // Checked before anything is compiled.
        let (count, bytes) = count_expressions(value);
        if count > EXPRESSIONS_MAX || bytes > EXPRESSION_BYTES_MAX {
            faults.push(InvalidTemplate::TooMany);
        } else {
            template.collect(value, over, &mut String::new(), faults);
        }
        template
    }

    /// Returns whether the payload is constant: it has no expressions and no escaped `$${`.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.strings.is_empty()
    }

    /// Returns its expressions with their locations as JSON pointers.
    pub fn expressions(&self) -> impl Iterator<Item = (&str, &Expression)> {
        self.strings.iter().flat_map(|(pointer, pieces)| {
            pieces.iter().filter_map(move |piece| match piece {
                Piece::Value(expression) => Some((pointer.as_str(), expression)),
                Piece::Text(_) => None,
            })
        })
    }

    /// Returns everything that its expressions read.
    #[must_use]
    pub fn reads(&self) -> Reads {
        let mut all = Reads::default();
        for (_, expression) in self.expressions() {
            let reads = expression.reads();
            all.tasks.extend(reads.tasks.iter().cloned());
            all.all_tasks |= reads.all_tasks;
            all.item |= reads.item;
            all.input |= reads.input;
        }
        all
    }

    /// Renders the payload with these values.
    ///
    /// # Errors
    /// [`RenderError`] when an expression cannot be evaluated, or when all values together exceed `bytes_max`.
    pub fn render(&self, scope: &Scope<'_>, bytes_max: usize) -> Result<Exact, RenderError> {
        let mut payload = self.root.clone();
        let mut bytes_left = bytes_max;
        for (pointer, pieces) in &self.strings {
            let value = whole(pieces, scope, &mut bytes_left).map_err(|error| match error {
                Some(error) => RenderError::Evaluation { pointer: pointer.clone(), error },
                None => RenderError::TooLarge { bytes_max },
            })?;
            if let Some(string) = payload.pointer_mut(pointer) {
                *string = value.into_marked();
            }
        }
        Ok(Exact::of_marked(payload))
    }

    fn collect(
        &mut self,
        value: &Value,
        over: Over,
        pointer: &mut String,
        faults: &mut Vec<InvalidTemplate>,
    ) {
        match value {
            Value::String(text) if text.contains("${") => match pieces(text, over, pointer) {
                Ok(pieces) => self.strings.push((pointer.clone(), pieces)),
                Err(invalid) => faults.push(invalid),
            },
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.below(&at.to_string(), item, over, pointer, faults);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.below(&name.replace('~', "~0").replace('/', "~1"), member, over, pointer, faults);
                }
            }
            _ => {}
        }
    }

    fn below(
        &mut self,
        step: &str,
        value: &Value,
        over: Over,
        pointer: &mut String,
        faults: &mut Vec<InvalidTemplate>,
    ) {
        let above = pointer.len();
        pointer.push('/');
        pointer.push_str(step);
        self.collect(value, over, pointer, faults);
        pointer.truncate(above);
    }
}

/// Returns the value of a string. The error is `None` when the size limit is exceeded.
fn whole(
    pieces: &[Piece],
    scope: &Scope<'_>,
    bytes_left: &mut usize,
) -> Result<Exact, Option<EvaluationError>> {
    let mut evaluate = |expression: &Expression| -> Result<(Exact, String), Option<EvaluationError>> {
        let value = expression.value(scope).map_err(Some)?;
        let text = value.to_string();
        *bytes_left = bytes_left.checked_sub(text.len()).ok_or(None)?;
        Ok((value, text))
    };
    if let [Piece::Value(expression)] = pieces {
        return Ok(evaluate(expression)?.0);
    }
    let mut whole = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(piece) => whole.push_str(piece),
            Piece::Value(expression) => {
                let (value, text) = evaluate(expression)?;
                whole.push_str(value.as_text().unwrap_or(&text));
            }
        }
    }
    Ok(Value::String(whole).into())
}

/// Returns the number of expressions in the strings of a value, and their total size in bytes. It compiles nothing.
pub(crate) fn count_expressions(value: &Value) -> (usize, usize) {
    let add = |one: (usize, usize), other: (usize, usize)| (one.0 + other.0, one.1 + other.1);
    match value {
        Value::String(text) => {
            let (mut found, mut rest) = ((0, 0), text.as_str());
            while let Some(at) = rest.find("${") {
                let (before, inside) = (&rest[..at], &rest[at + 2..]);
                rest = inside;
                if before.ends_with('$') {
                    continue;
                }
                // An unclosed expression is a fault, whatever follows.
                let Some(end) = end(inside) else { break };
                found = add(found, (1, end));
                rest = &inside[end + 1..];
            }
            found
        }
        Value::Array(items) => items.iter().map(count_expressions).fold((0, 0), add),
        Value::Object(members) => members.values().map(count_expressions).fold((0, 0), add),
        _ => (0, 0),
    }
}

/// Splits a string into text and expressions.
fn pieces(string: &str, over: Over, pointer: &str) -> Result<Vec<Piece>, InvalidTemplate> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = string;
    while let Some(at) = rest.find("${") {
        if let Some(before) = rest[..at].strip_suffix('$') {
            text.push_str(before);
            text.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        text.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let end = end(inside).ok_or_else(|| InvalidTemplate::Unclosed { pointer: pointer.to_owned() })?;
        let expression = Expression::compile_over(inside[..end].trim(), over)
            .map_err(|invalid| InvalidTemplate::Expression { pointer: pointer.to_owned(), invalid })?;
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Value(expression));
        rest = &inside[end + 1..];
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// Returns where the expression ends that begins here: at the `}` that neither closes one of its maps nor is in a string.
fn end(text: &str) -> Option<usize> {
    let (mut open, mut quote, mut escaped) = (0_usize, None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(mark), _) if byte == mark => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'{') => open += 1,
            (None, b'}') if open == 0 => return Some(at),
            (None, b'}') => open -= 1,
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::expression::{Item, STEPS_MAX, Values};
    use super::*;

    fn render(template: Value, bytes_max: usize) -> Result<Value, RenderError> {
        let input: Exact = json!({"n": 3, "to": "é", "list": [1, "a"], "big": "x".repeat(600)}).into();
        let (item, tick) = (Exact::from(json!({"id": 7})), Exact::default());
        let item = Some(Item { value: &item, index: 2 });
        let scope =
            Scope::new(&Values { input: &input, tick: &tick, tasks: &[], item, event: None }, STEPS_MAX);
        Template::compile(&template).unwrap().render(&scope, bytes_max).map(|payload| payload.rounded())
    }

    #[test]
    fn a_string_that_is_an_expression_becomes_its_value() {
        let template = json!({"n": "${ input.n }", "all": ["${input.list}", "${ {'a': {'}': item.id}} }"]});
        let payload = json!({"n": 3, "all": [[1, "a"], {"a": {"}": 7}}]});
        assert_eq!(render(template, 1000), Ok(payload));
    }

    #[test]
    fn a_longer_string_has_the_value_as_text() {
        let template = json!(["to ${ input.to }, ${index + 1} of ${input.list}", " ${input.n}"]);
        assert_eq!(render(template, 1000), Ok(json!(["to é, 3 of [1,\"a\"]", " 3"])));
    }

    #[test]
    fn numbers_keep_their_digits() {
        let (input, null) = (Exact::read(r#"{"n":100000000000000000001}"#).unwrap(), Exact::default());
        let scope = Scope::new(
            &Values { input: &input, tick: &null, tasks: &[], item: None, event: None },
            STEPS_MAX,
        );
        let template = Template::compile(&json!(["${ input.n }", "no ${ input.n }", "${ input }"])).unwrap();
        assert_eq!(
            template.render(&scope, 1000).unwrap().to_string(),
            r#"[100000000000000000001,"no 100000000000000000001",{"n":100000000000000000001}]"#
        );
    }

    #[test]
    fn escaped_and_plain_strings_stay() {
        let template = json!({"$${k}": "$${ input.n } costs $5 {} $$", "both": "$${a} ${input.n}"});
        let payload = json!({"$${k}": "${ input.n } costs $5 {} $$", "both": "${a} 3"});
        assert_eq!(render(template, 1000), Ok(payload));
    }

    #[test]
    fn errors_name_the_place() {
        let invalid = |template: Value| Template::compile(&template).unwrap_err().to_string();
        assert!(invalid(json!({"a/b": ["", "${ 1 + }"]})).starts_with("/a~1b/1: at line 1, column "));
        assert_eq!(invalid(json!({"a": "${ 'x}' "})), "/a: the expression that begins with ${ is not closed");
        assert_eq!(invalid(json!("${}")), "the payload: it is empty");
        let missing = render(json!({"a": {"b": "x ${ input.nothing }"}}), 1000).unwrap_err().to_string();
        assert!(missing.starts_with("/a/b: "), "{missing}");
    }

    #[test]
    fn a_payload_cannot_grow_without_bound() {
        let template = json!(["${input.big}", "${input.big + input.big}"]);
        assert_eq!(render(template.clone(), 1799), Err(RenderError::TooLarge { bytes_max: 1799 }));
        assert!(render(template, 1804).is_ok());
        let many = Value::Array(vec![json!("${input}"); EXPRESSIONS_MAX + 1]);
        assert_eq!(Template::compile(&many), Err(InvalidTemplate::TooMany));
        let long = Value::Array(vec![
            json!(format!("a ${{ 1{} }} $${{", " + 1".repeat(40)));
            EXPRESSION_BYTES_MAX / 160
        ]);
        assert_eq!(count_expressions(&long), (204, 204 * 163));
        assert_eq!(Template::compile(&long), Err(InvalidTemplate::TooMany));
    }
}

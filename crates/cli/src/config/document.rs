//! TOML as a tree in which every value has its position.

use std::ops::Range;

use milepost_core::json::is_same_json;
use serde_json::{Map, Number, Value as Json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Faults, Lines};

/// How many repeated keys are reported: for each one the text is searched.
const REPEATED_MAX: usize = 50;

/// A parsed file.
pub(crate) struct Document {
    pub(crate) root: Node,
    /// Sections whose header occurs a second time; each range starts at the repeated header.
    pub(crate) repeated: Vec<Range<usize>>,
}

/// A value and its position.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text {
        text: String,
        from_environment: bool,
    },
    Integer(i64),
    Float(f64),
    /// A number that JSON values cannot keep: infinite, too large, or with more digits than `number`, the nearest one, has.
    Rounded {
        number: f64,
        digits: String,
    },
    Bool(bool),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its position, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: usize,
    pub(crate) node: Node,
}

impl Document {
    /// Parses a text. Returns `None` if it is not TOML; this is then the only fault reported. A repeated key is a fault, but does not hide
    /// other faults.
    pub(crate) fn parse(text: &str, faults: &mut Faults) -> Option<Self> {
        let (root, errors) = DeTable::parse_recoverable(text);
        let mut is_toml = true;
        let mut repeated: Vec<Range<usize>> = Vec::new();
        let mut told = 0;
        for error in errors {
            let span = error.span().unwrap_or_default();
            if error.message() != "duplicate key" {
                is_toml = false;
                let remedy = "write valid TOML, with strings in quotes: https://toml.io";
                faults.add(span.start, format!("this is not TOML: {}", error.message()), remedy);
            } else if told < REPEATED_MAX && !repeated.iter().any(|section| section.contains(&span.start)) {
                told += 1;
                let header = header_at(text, span.start);
                repeated.extend(header.clone());
                tell_repeated(text, span, header.is_some(), faults);
            }
        }
        is_toml.then(|| Self { root: table(root), repeated })
    }
}

fn tell_repeated(text: &str, key: Range<usize>, is_header: bool, faults: &mut Faults) {
    let (name, line) = (text[key.clone()].to_owned(), line_at(text, key.start));
    let first = if is_header { first_header(text, line) } else { first_key(text, &key) };
    let first = first.map_or_else(String::new, |at| format!(" in line {}", Lines::of(text).place(at).0));
    faults.add_repeated(
        key.start,
        format!("{name} is defined twice; the first is{}", if first.is_empty() { " above" } else { &first }),
        "remove or rename one of the two",
    );
}

/// Returns the range of the line that contains a byte.
fn line_at(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    start..end
}

fn is_header(line: &str) -> bool {
    line.trim_start().starts_with('[')
}

/// Returns the section whose header is in the line of this byte.
fn header_at(text: &str, at: usize) -> Option<Range<usize>> {
    let line = line_at(text, at);
    if !is_header(&text[line.clone()]) {
        return None;
    }
    let mut end = line.end;
    for next in text[line.end..].split_inclusive('\n') {
        if is_header(next) {
            break;
        }
        end += next.len();
    }
    Some(line.start..end)
}

/// Returns the position of the first occurrence of the header in this line.
fn first_header(text: &str, line: Range<usize>) -> Option<usize> {
    let header = |line: &str| line.split('#').next().unwrap_or("").split_whitespace().collect::<String>();
    let wanted = header(&text[line.clone()]);
    lines_with_start(&text[..line.start]).find(|(_, line)| header(line) == wanted).map(|(start, _)| start)
}

/// Returns the position of the previous occurrence of this key in its section: in a line above, or earlier in the same line.
fn first_key(text: &str, key: &Range<usize>) -> Option<usize> {
    let name = &text[key.clone()];
    let line = line_at(text, key.start);
    let begins = |line: &str| {
        let rest = line.trim_start().strip_prefix(name).map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with(['=', '.']))
    };
    let above = &text[..line.start];
    let section =
        lines_with_start(above).filter(|(_, line)| is_header(line)).last().map_or(0, |(start, _)| start);
    let found = lines_with_start(above).filter(|&(start, line)| start >= section && begins(line)).last();
    found.map(|(start, _)| start).or_else(|| text[line.start..key.start].find(name).map(|at| line.start + at))
}

fn lines_with_start(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}

fn table(table: Spanned<DeTable<'_>>) -> Node {
    let span = table.span();
    let entries = table.into_inner().into_iter().map(|(key, value)| Entry {
        at: key.span().start,
        key: key.into_inner().into_owned(),
        node: node(value),
    });
    Node { span, value: Value::Table(entries.collect()) }
}

fn node(value: Spanned<DeValue<'_>>) -> Node {
    let span = value.span();
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text { text: text.into_owned(), from_environment: false },
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Rounded { number: f64::INFINITY, digits: number.as_str().to_owned() },
        },
        DeValue::Float(number) => float(number.as_str()),
        DeValue::Boolean(yes) => Value::Bool(yes),
        DeValue::Datetime(time) => Value::Text { text: time.to_string(), from_environment: false },
        DeValue::Array(nodes) => Value::List(nodes.into_iter().map(node).collect()),
        DeValue::Table(entries) => return table(Spanned::new(span, entries)),
    };
    Node { span, value }
}

fn float(digits: &str) -> Value {
    let number: f64 = digits.parse().unwrap_or(f64::NAN);
    let is_exact = number.is_finite() && is_same_json(&number.to_string(), digits.trim_start_matches('+'));
    if is_exact { Value::Float(number) } else { Value::Rounded { number, digits: digits.to_owned() } }
}

impl Node {
    /// Reports the numbers in a JSON value that would become another number, or none.
    pub(crate) fn check_numbers(&self, faults: &mut Faults) {
        match &self.value {
            Value::Rounded { digits, .. } => faults.add(
                self.span.start,
                format!("the number {digits} has no exact 64-bit form"),
                "write it as a string in quotes",
            ),
            Value::List(nodes) => nodes.iter().for_each(|node| node.check_numbers(faults)),
            Value::Table(entries) => entries.iter().for_each(|entry| entry.node.check_numbers(faults)),
            Value::Text { .. } | Value::Integer(_) | Value::Float(_) | Value::Bool(_) => {}
        }
    }

    /// Reports the texts with a NUL character, which neither a store nor a program can receive, unless another fault was found at their place,
    /// such as that of the payload around them.
    pub(crate) fn check_nul(&self, faults: &mut Faults) {
        if faults.has_one_at(self.span.start) {
            return;
        }
        let mut check = |text: &str, at: usize| {
            if text.contains('\0') && !faults.has_one_at(at) {
                faults.add(
                    at,
                    "this text has a NUL character (\\u0000), which cannot be stored",
                    "remove it",
                );
            }
        };
        match &self.value {
            Value::Text { text, .. } => check(text, self.span.start),
            Value::List(nodes) => nodes.iter().for_each(|node| node.check_nul(faults)),
            Value::Table(entries) => {
                for entry in entries {
                    check(&entry.key, entry.at);
                }
                entries.iter().for_each(|entry| entry.node.check_nul(faults));
            }
            Value::Integer(_) | Value::Float(_) | Value::Rounded { .. } | Value::Bool(_) => {}
        }
    }

    pub(crate) const fn is_table(&self) -> bool {
        matches!(self.value, Value::Table(_))
    }

    /// Returns the entries of a table; none for any other value.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the nodes of a list; none for any other value.
    pub(crate) fn nodes(&self) -> &[Self] {
        match &self.value {
            Value::List(nodes) => nodes,
            _ => &[],
        }
    }

    /// Returns a table's value by its key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// Returns whether it is a text into which a value of the environment was inserted.
    pub(crate) const fn is_from_environment(&self) -> bool {
        matches!(self.value, Value::Text { from_environment: true, .. })
    }

    /// Returns the value if it is a string.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns the value if it is an integer.
    pub(crate) const fn integer(&self) -> Option<i64> {
        match &self.value {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Converts the value to JSON, without positions.
    pub(crate) fn into_json(self) -> Json {
        match self.value {
            Value::Text { text, .. } => Json::String(text),
            Value::Integer(number) => Json::Number(number.into()),
            Value::Float(number) | Value::Rounded { number, .. } => {
                Number::from_f64(number).map_or(Json::Null, Json::Number)
            }
            Value::Bool(yes) => Json::Bool(yes),
            Value::List(nodes) => Json::Array(nodes.into_iter().map(Self::into_json).collect()),
            Value::Table(entries) => {
                let entries = entries.into_iter().map(|entry| (entry.key, entry.node.into_json()));
                Json::Object(entries.collect::<Map<_, _>>())
            }
        }
    }
}

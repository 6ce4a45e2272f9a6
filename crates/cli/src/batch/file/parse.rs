//! Parsing of definitions. Errors contain the position and the task.

use milepost_core::dag::definition::Definition;
use milepost_core::json::Table;
use milepost_core::text::is_unprintable;
use serde_json::Value as Json;
use serde_path_to_error::{Path, Segment};

use super::{Fault, Format};
use crate::config::document::{Document, Node, Value};
use crate::config::fault::{Faults, Lines};

/// A deserialization error with the path of the rejected value.
type Refused<E> = serde_path_to_error::Error<E>;

/// The reason why a text is not a definition.
pub(super) enum Unread {
    /// The text is not valid TOML, YAML or JSON.
    Syntax(Vec<Fault>),
    /// A field is unknown or has an invalid value; this is the first such fault, with its path.
    Refused(Fault, Path),
}

pub(super) fn toml(text: &str) -> Result<Definition, Unread> {
    let mut faults = Faults::default();
    let document = Document::parse(text, &mut faults);
    if let Some(document) = &document {
        document.root.check_numbers(&mut faults);
    }
    let root = match document {
        Some(document) if faults.is_empty() => document.root,
        _ => return Err(Unread::Syntax(faults.placed(text).into_iter().map(told).collect())),
    };
    let refused = match serde_path_to_error::deserialize(root.clone().into_json()) {
        Ok(Table(definition)) => return Ok(definition),
        Err(refused) => refused,
    };
    let at = Lines::of(text).place(place_of(&root, refused.path()));
    let what = words(refused.path(), &refused.inner().to_string());
    Err(Unread::Refused(Fault { place: Some(at), what }, refused.path().clone()))
}

fn told(fault: crate::config::Fault) -> Fault {
    Fault { place: Some((fault.line, fault.column)), what: format!("{}; {}", fault.what, fault.remedy) }
}

/// Returns the position of the deepest existing value on the path; for an unknown field, the position of its key.
pub(super) fn place_of(root: &Node, path: &Path) -> usize {
    let (mut node, mut at) = (root, root.span.start);
    for segment in path {
        let next = match (segment, &node.value) {
            (Segment::Map { key }, Value::Table(entries)) => {
                let entry = entries.iter().find(|entry| entry.key == *key);
                entry.map(|entry| (&entry.node, entry.at))
            }
            (Segment::Seq { index }, Value::List(nodes)) => {
                nodes.get(*index).map(|node| (node, node.span.start))
            }
            _ => None,
        };
        let Some(next) = next else { break };
        (node, at) = next;
    }
    at
}

pub(super) fn yaml(text: &str) -> Result<Definition, Unread> {
    let mut path = None;
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, yaml_options(), |yaml| {
        serde_path_to_error::deserialize(yaml).map_err(|refused: Refused<serde_saphyr::Error>| {
            path = Some(refused.path().clone());
            refused.into_inner()
        })
    });
    read.map(|Table(definition)| definition).map_err(|error: serde_saphyr::Error| {
        let place = error
            .location()
            .and_then(|at| Some((usize::try_from(at.line()).ok()?, usize::try_from(at.column()).ok()?)));
        let said = error.without_snippet().render_with_formatter(&serde_saphyr::UserMessageFormatter);
        let why = said.rsplit_once(" at line ").map_or(&*said, |(why, _)| why);
        match path {
            Some(path) => Unread::Refused(Fault { place, what: words(&path, why) }, path),
            None => {
                Unread::Syntax(vec![Fault { place, what: one_line(&format!("this is not YAML: {why}")) }])
            }
        }
    })
}

/// Returns limits that allow the largest DAG, but not a short file whose aliases repeat so much that it takes seconds.
pub(super) fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_events: 20_000_000, max_nodes: 10_000_000, max_depth: 140 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 200_000 },
    }
}

pub(super) fn json(text: &str) -> Result<Definition, Unread> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut reader);
    let read = read.map_err(|refused: Refused<serde_json::Error>| {
        let path = refused.path().clone();
        (Some(path), refused.into_inner())
    });
    let read =
        read.and_then(|Table(definition)| reader.end().map(|()| definition).map_err(|error| (None, error)));
    read.map_err(|(path, error)| {
        let said = error.to_string();
        let why = said.rsplit_once(" at line ").map_or(&*said, |(why, _)| why);
        // The column is 0 after a line end.
        let place = Some((error.line(), error.column().max(1)));
        match path.filter(|_| error.is_data()) {
            Some(path) => Unread::Refused(Fault { place, what: words(&path, why) }, path),
            None => Unread::Syntax(vec![Fault { place, what: format!("this is not JSON: {why}") }]),
        }
    })
}

/// Returns the content of a text without checking it; `None` if the text is not valid TOML, YAML or JSON.
pub(super) fn fields(format: Format, text: &str) -> Option<Json> {
    match format {
        Format::Toml => Some(Document::parse(text, &mut Faults::default())?.root.into_json()),
        Format::Yaml => serde_saphyr::from_str_with_options(text, yaml_options()).ok(),
        Format::Json => serde_json::from_str(text).ok(),
    }
}

/// Describes an error, including the task and the field.
pub(super) fn words(path: &Path, why: &str) -> String {
    let names: Vec<String> = path
        .iter()
        .filter_map(|segment| match segment {
            Segment::Map { key } => Some(key.clone()),
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect();
    let words = match names.as_slice() {
        [] => why.to_owned(),
        [tasks, key] if tasks == "tasks" => format!("task {key:?}: {why}"),
        [tasks, key, rest @ ..] if tasks == "tasks" => {
            format!("task {key:?}, {}: {why}", rest.join("."))
        }
        names => format!("{}: {why}", names.join(".")),
    };
    one_line(&words)
}

/// Escapes line breaks and other control characters, which names in a file can contain.
fn one_line(text: &str) -> String {
    let escape = |c: char| if is_unprintable(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

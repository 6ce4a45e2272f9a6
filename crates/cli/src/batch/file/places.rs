//! Positions of the tasks of a definition, for faults that were found in the whole definition.

use std::collections::HashMap;

use milepost_core::dag::fault::{Fault as Wrong, InvalidDag};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_saphyr::Spanned;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{Fault, Format, parse};
use crate::config::document::{Document, Node};
use crate::config::fault::{Faults, place};

/// Lines and columns, by key.
pub(super) type Places = HashMap<String, (usize, usize)>;

/// Returns the faults of a definition that was read from this text, with their positions.
pub(super) fn placed(format: Format, text: &str, invalid: &InvalidDag) -> Vec<Fault> {
    let (tasks, fields) = (of_tasks(format, text), of_fields(format, text));
    let fault = |wrong: &Wrong| {
        let task = wrong.task().and_then(|task| tasks.get(task));
        let place = task.or_else(|| fields.get(wrong.field()?));
        Fault { place: place.copied(), what: wrong.to_string() }
    };
    let mut faults: Vec<Fault> = invalid.faults.iter().map(fault).collect();
    faults.sort_by_key(|fault| fault.place);
    if invalid.left_out > 0 {
        faults.push(Fault { place: None, what: format!("and {} more", invalid.left_out) });
    }
    faults
}

/// The keys of a YAML mapping, with their positions.
type Keys = HashMap<Spanned<String>, IgnoredAny>;

/// Returns the position of each task.
pub(super) fn of_tasks(format: Format, text: &str) -> Places {
    /// A definition of which only the tasks are read.
    #[derive(Deserialize)]
    struct Tasks {
        tasks: Keys,
    }

    match format {
        Format::Toml => of_toml(text, |root| root.get("tasks")),
        // JSON is a subset of YAML, so positions are found in the same way.
        Format::Yaml | Format::Json => of_yaml(text, |definition: Tasks| definition.tasks),
    }
}

/// Returns the position of each top-level field.
fn of_fields(format: Format, text: &str) -> Places {
    match format {
        Format::Toml => of_toml(text, |root| Some(root)),
        Format::Yaml | Format::Json => of_yaml(text, |fields: Keys| fields),
    }
}

fn of_toml(text: &str, table: impl Fn(&Node) -> Option<&Node>) -> Places {
    let document = Document::parse(text, &mut Faults::default());
    let table = document.as_ref().and_then(|document| table(&document.root));
    let entries = table.map(Node::entries).unwrap_or_default().iter();
    entries.map(|entry| (entry.key.clone(), place(text, entry.at))).collect()
}

fn of_yaml<T: DeserializeOwned>(text: &str, keys: impl Fn(T) -> Keys) -> Places {
    let mut options = parse::yaml_options();
    options.duplicate_keys = DuplicateKeyPolicy::PassThrough;
    let Ok(read) = serde_saphyr::from_str_with_options::<T>(text, options) else { return Places::new() };
    let number = |number: u64| usize::try_from(number).unwrap_or_default();
    let place = |key: &Spanned<String>| (number(key.referenced.line()), number(key.referenced.column()));
    let mut places = Places::new();
    for key in keys(read).into_keys() {
        let place = place(&key);
        // For a repeated key, the last position.
        places.entry(key.value).and_modify(|last| *last = place.max(*last)).or_insert(place);
    }
    places
}

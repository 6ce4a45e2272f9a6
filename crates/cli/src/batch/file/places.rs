//! Where the tasks of a definition stand, for faults that were found in it as a whole.

use std::collections::HashMap;

use milepost_core::dag::fault::{Fault as Wrong, InvalidDag};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{Fault, Format, parse};
use crate::config::document::{Document, Node};
use crate::config::fault::{Faults, place};

/// Lines and columns, by task.
pub(super) type Places = HashMap<String, (usize, usize)>;

/// The faults of a definition that was read from this text.
pub(super) fn placed(format: Format, text: &str, invalid: &InvalidDag) -> Vec<Fault> {
    let places = of_tasks(format, text);
    let fault = |wrong: &Wrong| Fault {
        place: wrong.task().and_then(|task| places.get(task)).copied(),
        what: wrong.to_string(),
    };
    let mut faults: Vec<Fault> = invalid.faults.iter().map(fault).collect();
    faults.sort_by_key(|fault| fault.place);
    if invalid.left_out > 0 {
        faults.push(Fault { place: None, what: format!("and {} more", invalid.left_out) });
    }
    faults
}

/// Where each task stands.
pub(super) fn of_tasks(format: Format, text: &str) -> Places {
    match format {
        Format::Toml => of_toml(text),
        // JSON is YAML, as far as places go.
        Format::Yaml | Format::Json => of_yaml(text),
    }
}

fn of_toml(text: &str) -> Places {
    let document = Document::parse(text, &mut Faults::default());
    let tasks = document.as_ref().and_then(|document| document.root.get("tasks"));
    let entries = tasks.map(Node::entries).unwrap_or_default().iter();
    entries.map(|entry| (entry.key.clone(), place(text, entry.at))).collect()
}

fn of_yaml(text: &str) -> Places {
    /// The keys of tasks, with places.
    #[derive(Deserialize)]
    struct Keys {
        tasks: HashMap<Spanned<String>, IgnoredAny>,
    }

    let mut options = parse::yaml_options();
    options.duplicate_keys = DuplicateKeyPolicy::PassThrough;
    let Ok(keys) = serde_saphyr::from_str_with_options::<Keys>(text, options) else { return Places::new() };
    let number = |number: u64| usize::try_from(number).unwrap_or_default();
    let place = |key: &Spanned<String>| (number(key.referenced.line()), number(key.referenced.column()));
    let mut places = Places::new();
    for key in keys.tasks.into_keys() {
        let place = place(&key);
        // Of a key that is there twice the last.
        places.entry(key.value).and_modify(|last| *last = place.max(*last)).or_insert(place);
    }
    places
}

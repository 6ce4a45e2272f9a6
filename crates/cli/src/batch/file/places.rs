//! Positions of the tasks of a definition, for faults that were found in the whole definition.

use std::collections::HashMap;

use milepost_core::dag::fault::{Fault as Wrong, InvalidDag};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_path_to_error::{Path, Segment};
use serde_saphyr::Spanned;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{Fault, Format, parse};
use crate::config::document::{Document, Node};
use crate::config::fault::{Faults, Lines};

/// Lines and columns, by key.
type Places = HashMap<String, (usize, usize)>;

/// The positions in the text of a definition. The text is parsed once, because it can be large.
pub(super) struct Positions<'t> {
    tasks: Places,
    /// The top-level fields.
    fields: Places,
    /// The parsed text, if it is TOML, in which every value has its position.
    toml: Option<(Document, Lines<'t>)>,
}

impl<'t> Positions<'t> {
    pub(super) fn of(format: Format, text: &'t str) -> Self {
        match format {
            Format::Toml => Self::of_toml(text),
            // JSON is a subset of YAML, so positions are found in the same way.
            Format::Yaml | Format::Json => Self::of_yaml(text),
        }
    }

    fn of_toml(text: &'t str) -> Self {
        let lines = Lines::of(text);
        let Some(document) = Document::parse(text, &mut Faults::default()) else {
            return Self { tasks: Places::new(), fields: Places::new(), toml: None };
        };
        let places = |table: Option<&Node>| {
            let entries = table.map(Node::entries).unwrap_or_default().iter();
            entries.map(|entry| (entry.key.clone(), lines.place(entry.at))).collect()
        };
        let (tasks, fields) = (places(document.root.get("tasks")), places(Some(&document.root)));
        Self { tasks, fields, toml: Some((document, lines)) }
    }

    fn of_yaml(text: &str) -> Self {
        /// A definition of which only the tasks are read.
        #[derive(Deserialize)]
        struct Tasks {
            tasks: Keys,
        }

        let tasks = of_yaml(text, |definition: Tasks| definition.tasks);
        Self { tasks, fields: of_yaml(text, |fields: Keys| fields), toml: None }
    }

    /// Returns the position of the value at a path, or of its task.
    pub(super) fn of_value(&self, path: &Path) -> Option<(usize, usize)> {
        if let Some((document, lines)) = &self.toml {
            return Some(lines.place(parse::place_of(&document.root, path)));
        }
        let mut keys = path.iter().map_while(|segment| match segment {
            Segment::Map { key } => Some(key.as_str()),
            Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => None,
        });
        (keys.next() == Some("tasks")).then(|| self.tasks.get(keys.next()?).copied()).flatten()
    }

    /// Returns the faults of a definition that was read from the text, with their positions.
    pub(super) fn placed(&self, invalid: &InvalidDag) -> Vec<Fault> {
        let fault = |wrong: &Wrong| {
            let task = wrong.task().and_then(|task| self.tasks.get(task));
            let place = task.or_else(|| self.fields.get(wrong.field()?));
            Fault { place: place.copied(), what: wrong.to_string() }
        };
        let mut faults: Vec<Fault> = invalid.faults.iter().map(fault).collect();
        faults.sort_by_key(|fault| fault.place);
        if invalid.left_out > 0 {
            faults.push(Fault { place: None, what: format!("and {} more", invalid.left_out) });
        }
        faults
    }
}

/// The keys of a YAML mapping, with their positions.
type Keys = HashMap<Spanned<String>, IgnoredAny>;

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

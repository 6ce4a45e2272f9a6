//! What else is wrong with a definition that has a fault: serde stops at the first one, so what it refuses is taken out, and the rest
//! is read again.

use std::collections::BTreeSet;

use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::{Fault, Format, parse, places};
use crate::config::document::Document;
use crate::config::fault::{Faults, place};

/// How many faults of one file are told at most, when it cannot be read.
const FAULTS_MAX: usize = 50;

/// All faults of a text, in the order of their places. The first was found at this path.
pub(super) fn with_the_rest(format: Format, text: &str, first: Fault, first_path: &Path) -> Vec<Fault> {
    let Some(mut fields) = parse::fields(format, text) else { return vec![first] };
    let first_path = removable(first_path);
    let mut faults = vec![first];
    // What is wrong with the rest of these tasks may come from what was taken out of them.
    let mut touched = BTreeSet::new();
    let mut tasks_missing = false;
    while faults.len() < FAULTS_MAX {
        let refused = match serde_path_to_error::deserialize::<_, Definition>(&fields) {
            Ok(definition) if !tasks_missing => {
                faults.extend(of_the_whole(format, text, definition, &touched));
                break;
            }
            Ok(_) => break,
            Err(refused) => refused,
        };
        let path = removable(refused.path());
        if path != first_path {
            let what = parse::words(refused.path(), &refused.inner().to_string());
            faults.push(Fault { place: place_of(format, text, refused.path()), what });
        }
        match path.as_slice() {
            [tasks, task, _, ..] if tasks == "tasks" => drop(touched.insert(task.clone())),
            [tasks, ..] if tasks == "tasks" => tasks_missing = true,
            _ => {}
        }
        if !remove(&mut fields, &path) {
            break;
        }
    }
    faults.sort_by_key(|fault| fault.place);
    faults
}

/// What is wrong with a definition as a whole, but for the tasks of which something is missing.
fn of_the_whole(
    format: Format,
    text: &str,
    definition: Definition,
    touched: &BTreeSet<String>,
) -> Vec<Fault> {
    let Err(mut invalid) = Dag::check(definition) else { return Vec::new() };
    invalid.faults.retain(|fault| fault.task().is_none_or(|task| !touched.contains(task)));
    places::placed(format, text, &invalid)
}

fn place_of(format: Format, text: &str, path: &Path) -> Option<(usize, usize)> {
    if format == Format::Toml {
        let document = Document::parse(text, &mut Faults::default())?;
        return Some(place(text, parse::place_of(&document.root, path)));
    }
    match removable(path).as_slice() {
        [tasks, task, ..] if tasks == "tasks" => places::of_tasks(format, text).get(task).copied(),
        _ => None,
    }
}

/// The fields of a path down to the first list, which is taken out as a whole: the places of its other items would change.
fn removable(path: &Path) -> Vec<String> {
    let fields = path.iter().map_while(|segment| match segment {
        Segment::Map { key } => Some(key.clone()),
        Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => None,
    });
    fields.collect()
}

/// Takes out the field at this path; whether there was one.
fn remove(fields: &mut Value, path: &[String]) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let parent = parents.iter().try_fold(fields, |node, key| node.get_mut(key));
    parent.and_then(Value::as_object_mut).is_some_and(|parent| parent.remove(last).is_some())
}

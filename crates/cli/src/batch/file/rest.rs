//! What else is wrong with a definition that has a fault: serde stops at the first one, so what it refuses is taken out, and the rest
//! is read again.

use std::collections::BTreeSet;

use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::fault::Fault as Wrong;
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
    let mut taken_out = TakenOut::default();
    while faults.len() < FAULTS_MAX {
        let refused = match serde_path_to_error::deserialize::<_, Definition>(&fields) {
            Ok(definition) => {
                faults.extend(of_the_whole(format, text, definition, &taken_out));
                break;
            }
            Err(refused) => refused,
        };
        let path = removable(refused.path());
        if path != first_path {
            let what = parse::words(refused.path(), &refused.inner().to_string());
            faults.push(Fault { place: place_of(format, text, refused.path()), what });
        }
        match path.as_slice() {
            [tasks, task, _, ..] if tasks == "tasks" => drop(taken_out.of_tasks.insert(task.clone())),
            [tasks, task] if tasks == "tasks" => drop(taken_out.tasks.insert(task.clone())),
            _ => {}
        }
        if !remove(&mut fields, &path) {
            break;
        }
    }
    faults.sort_by_key(|fault| fault.place);
    faults
}

/// What was taken out of a definition.
#[derive(Default)]
struct TakenOut {
    /// Whole tasks.
    tasks: BTreeSet<String>,
    /// Tasks that lack a field.
    of_tasks: BTreeSet<String>,
}

impl TakenOut {
    /// Whether it can be the reason for a fault of the rest.
    fn explains(&self, fault: &Wrong) -> bool {
        match fault {
            Wrong::UnknownPredecessor { after, .. } => self.tasks.contains(after),
            Wrong::NoTasks => !self.tasks.is_empty(),
            _ => {
                fault.can_follow_from_another_field()
                    && fault.task().is_some_and(|task| self.of_tasks.contains(task))
            }
        }
    }
}

/// What is wrong with a definition as a whole, but for what comes from what was taken out of it.
fn of_the_whole(format: Format, text: &str, definition: Definition, taken_out: &TakenOut) -> Vec<Fault> {
    let Err(mut invalid) = Dag::check(definition) else { return Vec::new() };
    invalid.faults.retain(|fault| !taken_out.explains(fault));
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

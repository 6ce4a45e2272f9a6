//! Search for the other faults of an invalid definition. Serde stops at the first fault, so the rejected part is removed and the rest is
//! read again.

use std::collections::BTreeSet;

use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::fault::Fault as Wrong;
use milepost_core::json::Table;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::places::Positions;
use super::{Fault, Format, parse};

/// The maximum number of reported faults of an unreadable file.
const FAULTS_MAX: usize = 50;

/// Returns all faults of a text, in the order of their positions. `first_path` is the path of the first fault.
pub(super) fn with_the_rest(format: Format, text: &str, first: Fault, first_path: &Path) -> Vec<Fault> {
    let Some(mut fields) = parse::fields(format, text) else { return vec![first] };
    let positions = Positions::of(format, text);
    let first_path = removable(first_path);
    let mut faults = vec![first];
    let mut taken_out = TakenOut::default();
    while faults.len() < FAULTS_MAX {
        let refused = match serde_path_to_error::deserialize::<_, Table<Definition>>(&fields) {
            Ok(Table(definition)) => {
                faults.extend(of_the_whole(&positions, definition, &taken_out));
                break;
            }
            Err(refused) => refused,
        };
        let path = removable(refused.path());
        if path.is_empty() && taken_out.is_missed(&refused.inner().to_string()) {
            break;
        }
        if path != first_path {
            let what = parse::words(refused.path(), &refused.inner().to_string());
            faults.push(Fault { place: positions.of_value(refused.path()), what });
        }
        match path.as_slice() {
            [tasks, task, _, ..] if tasks == "tasks" => drop(taken_out.of_tasks.insert(task.clone())),
            [tasks, task] if tasks == "tasks" => drop(taken_out.tasks.insert(task.clone())),
            [field] => drop(taken_out.fields.insert(field.clone())),
            _ => {}
        }
        if !remove(&mut fields, &path) {
            break;
        }
    }
    faults.sort_by_key(|fault| fault.place);
    faults
}

/// The parts that were removed from a definition.
#[derive(Default)]
struct TakenOut {
    /// Removed tasks.
    tasks: BTreeSet<String>,
    /// Tasks from which a field was removed.
    of_tasks: BTreeSet<String>,
    /// Removed fields of the whole definition.
    fields: BTreeSet<String>,
}

impl TakenOut {
    /// Returns whether an error says that a removed field is missing.
    fn is_missed(&self, error: &str) -> bool {
        self.fields.iter().any(|field| error == format!("missing field `{field}`"))
    }

    /// Returns whether the removed parts can be the cause of a fault.
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

/// Returns the faults of the whole definition, without those caused by the removed parts.
fn of_the_whole(positions: &Positions<'_>, definition: Definition, taken_out: &TakenOut) -> Vec<Fault> {
    let Err(mut invalid) = Dag::check(definition) else { return Vec::new() };
    invalid.faults.retain(|fault| !taken_out.explains(fault));
    positions.placed(&invalid)
}

/// Returns the fields of a path up to the first list. The list is removed as a whole, since removing an item would move the others.
fn removable(path: &Path) -> Vec<String> {
    let fields = path.iter().map_while(|segment| match segment {
        Segment::Map { key } => Some(key.clone()),
        Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => None,
    });
    fields.collect()
}

/// Removes the field at this path; returns whether it existed.
fn remove(fields: &mut Value, path: &[String]) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let parent = parents.iter().try_fold(fields, |node, key| node.get_mut(key));
    parent.and_then(Value::as_object_mut).is_some_and(|parent| parent.remove(last).is_some())
}

//! Checks of a complete definition.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::super::definition::{Definition, Task};
use super::super::fault::{FAULTS_MAX, Fault, InvalidDag};
use super::super::graph::{Circular, Graph};
use super::super::schema::{InputSchema, InvalidSchema};
use super::super::template::count_expressions;
use super::super::version::{Version, canonical};
use super::super::wait::{InvalidWait, Wait};
use super::{BYTES_MAX, CheckedTask, Content, Dag, EDGES_MAX, TASKS_MAX};
use crate::job::error::InvalidJob;
use crate::job::{NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, check_attempts, check_key, check_name, check_timeout};
use crate::json::{check_payload, holds_nul, large_number};

/// The maximum number of unknown predecessors that get suggestions; each one is compared with all keys.
const SUGGESTING_MAX: usize = 10;
/// The maximum number of suggested keys.
const SUGGESTED: usize = 3;
/// The maximum total size of the expressions of a definition, in bytes; compiling them takes about 4 µs per byte.
const EXPRESSION_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The minimum similarity of a suggestion; 1.0 means equal.
const LIKENESS_MIN: f64 = 0.8;

pub(super) fn check(mut definition: Definition) -> Result<Dag, InvalidDag> {
    let name = definition.name.clone();
    let refuse = |faults: Vec<Fault>| refused(&name, faults);
    let sizes = sizes(&definition);
    if !sizes.is_empty() {
        return Err(refuse(sizes));
    }
    let mut faults = Vec::new();
    faults.extend(check_name("name of the DAG", &definition.name, NAME_BYTES_MAX).err().map(Fault::Name));
    let schema = definition.input_schema.as_ref().and_then(|schema| InputSchema::compile(schema).err());
    faults.extend(schema.map(Fault::InputSchema));
    let large = definition.input_schema.as_ref().and_then(large_number);
    faults.extend(large.map(|number| {
        let why = format!("it has the number {number}, whose digits a definition cannot keep");
        Fault::InputSchema(InvalidSchema { why })
    }));
    let kept =
        definition.input_schema.as_ref().and_then(|it| check_payload(&it.to_string(), BYTES_MAX).err());
    faults.extend(kept.map(|refused| {
        let why = refused.to_string().replacen("the payload", "it", 1);
        Fault::InputSchema(InvalidSchema { why })
    }));
    definition.tasks.sort_by(|(a, _), (b, _)| a.cmp(b));
    let tasks = check_tasks(&definition, &mut faults);
    let edges = check_edges(&definition, &mut faults);
    let keys = definition.tasks.iter().map(|(key, _)| key.clone()).collect();
    let graph = match Graph::new(keys, edges) {
        Ok(graph) => graph,
        Err(circular) => {
            circular_faults(&definition, &circular, &mut faults);
            return Err(refuse(faults));
        }
    };
    if !faults.is_empty() {
        return Err(refuse(faults));
    }
    let not_json = |e: serde_json::Error| Fault::Name(InvalidJob::NotJson { why: e.to_string() });
    let canonical: Arc<str> = canonical(&definition).map_err(|e| refuse(vec![not_json(e)]))?.into();
    if holds_nul(&canonical) {
        return Err(refuse(vec![Fault::Nul]));
    }
    if canonical.len() > BYTES_MAX {
        let given = canonical.len();
        return Err(refuse(vec![Fault::TooMany { what: "bytes", given, max: BYTES_MAX }]));
    }
    Ok(Dag(Arc::new(Content { version: Version::of(&canonical), canonical, definition, graph, tasks })))
}

fn refused(name: &str, mut faults: Vec<Fault>) -> InvalidDag {
    let left_out = faults.len().saturating_sub(FAULTS_MAX);
    faults.truncate(FAULTS_MAX);
    InvalidDag { name: name.chars().take(60).collect(), faults, left_out }
}

/// Refuses tasks whose kind is a bulk job.
pub(super) fn check_kinds(definition: &Definition, bulk_jobs: &HashSet<&str>) -> Result<(), InvalidDag> {
    let fault = |(key, task): &(String, Task)| {
        let kind = task.kind.as_deref().filter(|kind| bulk_jobs.contains(kind))?;
        Some(Fault::BulkKind { task: key.clone(), kind: kind.to_owned() })
    };
    let faults: Vec<Fault> = definition.tasks.iter().filter_map(fault).collect();
    if faults.is_empty() { Ok(()) } else { Err(refused(&definition.name, faults)) }
}

/// Returns exceeded limits, which prevent further checks.
fn sizes(definition: &Definition) -> Vec<Fault> {
    let tasks = definition.tasks.len();
    let edges = definition.tasks.iter().map(|(_, task)| task.after.len()).sum();
    let too_many = |what, given, max| (given > max).then_some(Fault::TooMany { what, given, max });
    let no_tasks = (tasks == 0).then_some(Fault::NoTasks);
    let too_many = [
        too_many("tasks", tasks, TASKS_MAX),
        too_many("edges", edges, EDGES_MAX),
        too_many("bytes of expressions", expression_bytes(definition), EXPRESSION_BYTES_MAX),
    ];
    no_tasks.into_iter().chain(too_many.into_iter().flatten()).collect()
}

/// Returns the total size of all expressions of a definition, in bytes.
fn expression_bytes(definition: &Definition) -> usize {
    let of_task = |task: &Task| {
        let texts = task.when.iter().chain(&task.each).map(String::len);
        texts.sum::<usize>() + count_expressions(&task.templated()).1
    };
    definition.tasks.iter().map(|(_, task)| of_task(task)).sum()
}

/// Checks each task on its own.
fn check_tasks(definition: &Definition, faults: &mut Vec<Fault>) -> Vec<Option<Box<CheckedTask>>> {
    let mut checked = Vec::with_capacity(definition.tasks.len());
    let mut previous = None;
    let mut signals = BTreeMap::new();
    for (key, task) in &definition.tasks {
        faults.extend(check_name("key", key, NAME_BYTES_MAX).err().map(Fault::Key));
        if previous.replace(key) == Some(key) {
            faults.push(Fault::DuplicateTask { task: key.clone() });
        }
        let invalid = |invalid| Fault::Task { task: key.clone(), invalid };
        faults.extend(settings(task).filter_map(Result::err).map(invalid));
        if task.work().is_none() {
            faults.push(Fault::Work { task: key.clone() });
        }
        faults.extend(wait_faults(key, task, &mut signals));
        if task.after.is_empty() && !task.rule.holds_for_roots() {
            faults.push(Fault::RuleOfRoot { task: key.clone(), rule: task.rule });
        }
        let compiled = CheckedTask::compile(key, task, faults);
        checked.push(compiled.filter(|task| !task.is_plain()).map(Box::new));
    }
    checked
}

/// Returns the faults of what a task waits for; `signals`: the tasks before it, by the signals that they wait for.
fn wait_faults<'d>(key: &'d str, task: &'d Task, signals: &mut BTreeMap<&'d str, &'d str>) -> Vec<Fault> {
    let Some(wait) = &task.wait else { return Vec::new() };
    let mut faults = wait.faults();
    faults.extend(settings_of_jobs(task).map(|field| InvalidWait::OfJob { field }));
    let other = wait.signal.as_ref().and_then(|signal| signals.insert(signal, key));
    faults.extend(other.map(|other| InvalidWait::SameSignal { other: other.to_owned() }));
    faults.into_iter().map(|invalid| Fault::Wait { task: key.to_owned(), invalid }).collect()
}

/// Returns the fields of a task that only jobs have, if they are set.
fn settings_of_jobs(task: &Task) -> impl Iterator<Item = &'static str> {
    let plain = Task::wait(Wait::default());
    let set = [
        ("payload", !task.payload.is_null()),
        ("queue", task.queue != plain.queue),
        ("priority", task.priority != plain.priority),
        ("group", task.group.is_some()),
        ("max_attempts", task.max_attempts != plain.max_attempts),
        ("timeout", task.timeout.is_some()),
    ];
    set.into_iter().filter(|(_, is)| *is).map(|(field, _)| field)
}

fn settings(task: &Task) -> impl Iterator<Item = Result<(), InvalidJob>> + '_ {
    let named = [
        ("kind", task.kind.as_deref()),
        ("bulk", task.bulk.as_deref()),
        ("dag", task.dag.as_deref()),
        ("queue", Some(task.queue.as_str())),
    ];
    let names = named
        .into_iter()
        .filter_map(|(field, name)| name.map(|name| check_name(field, name, NAME_BYTES_MAX)));
    let payload = check_payload(&task.payload.to_string(), PAYLOAD_BYTES_MAX);
    let number = large_number(&task.payload).map_or(Ok(()), |number| Err(InvalidJob::LargeNumber { number }));
    let group = task.group.as_deref().map(|group| check_key("group", group, NAME_BYTES_MAX));
    names.chain(group).chain([
        check_attempts(task.max_attempts),
        check_timeout(task.timeout),
        payload,
        number,
    ])
}

/// Returns the edges between different tasks, as numbers (before, after), each once.
fn check_edges(definition: &Definition, faults: &mut Vec<Fault>) -> Vec<(u32, u32)> {
    let numbers: BTreeMap<&str, u32> =
        (0..).zip(&definition.tasks).map(|(at, (key, _))| (key.as_str(), at)).collect();
    let mut edges = Vec::new();
    let mut suggesting = 0..SUGGESTING_MAX;
    for (key, task) in &definition.tasks {
        let mut seen = HashSet::new();
        for after in &task.after {
            let (task, after) = (key.clone(), after.clone());
            match (numbers.get(after.as_str()), numbers.get(key.as_str())) {
                _ if !seen.insert(after.clone()) => faults.push(Fault::DuplicateEdge { task, after }),
                _ if task == after => faults.push(Fault::SelfEdge { task }),
                (Some(&before), Some(&number)) => edges.push((before, number)),
                _ => {
                    let nearest =
                        suggesting.next().map_or_else(Vec::new, |_| nearest(&after, numbers.keys()));
                    faults.push(Fault::UnknownPredecessor { task, after, nearest });
                }
            }
        }
    }
    edges
}

/// Returns similar keys, best match first.
fn nearest<'a>(given: &str, keys: impl Iterator<Item = &'a &'a str>) -> Vec<String> {
    let mut near: Vec<(f64, &str)> = keys
        .map(|key| (strsim::jaro_winkler(key, given), *key))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    near.into_iter().take(SUGGESTED).map(|(_, key)| key.to_owned()).collect()
}

fn circular_faults(definition: &Definition, circular: &Circular, faults: &mut Vec<Fault>) {
    let keys = |tasks: &[u32]| -> Vec<String> {
        tasks.iter().map(|&task| definition.tasks[task as usize].0.clone()).collect()
    };
    if definition.tasks.iter().all(|(_, task)| !task.after.is_empty()) {
        faults.push(Fault::NoRoot);
    }
    faults.extend(circular.cycles.iter().map(|cycle| Fault::Cycle { tasks: keys(cycle) }));
    if !circular.behind.is_empty() {
        faults.push(Fault::Unreachable { tasks: keys(&circular.behind) });
    }
}

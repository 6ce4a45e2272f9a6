//! Definitions of DAGs in TOML, YAML and JSON.

use milepost_cli::fuzzing::{DagFormat, Fault, definition};
use milepost_core::dag::checked::{BYTES_MAX, Dag, EDGES_MAX, TASKS_MAX};
use milepost_core::dag::definition::Definition;

use crate::check;

/// Parses a text in each format. An accepted definition keeps its limits, and is the same DAG when it is written in any format.
///
/// # Panics
/// A property does not hold.
pub fn target(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for format in [DagFormat::Toml, DagFormat::Yaml, DagFormat::Json] {
        match definition(format, text) {
            Ok(dag) => check_accepted(&dag),
            Err(faults) => check_faults(text, &faults),
        }
    }
    // JSON is a subset of YAML.
    if let (Ok(json), Ok(yaml)) = (definition(DagFormat::Json, text), definition(DagFormat::Yaml, text)) {
        assert_eq!(json.version(), yaml.version(), "JSON and YAML of the same text are different DAGs");
    }
}

fn check_accepted(dag: &Dag) {
    let edges: usize = dag.definition().tasks.iter().map(|(_, task)| task.after.len()).sum();
    assert!(dag.definition().tasks.len() <= TASKS_MAX && edges <= EDGES_MAX);
    assert!(dag.canonical().len() <= BYTES_MAX);
    let stored: Definition = serde_json::from_str(dag.canonical()).expect("the stored text is a definition");
    assert_eq!(Dag::check(stored).expect("the stored text is a DAG").version(), dag.version());
    let json = serde_json::to_string_pretty(dag.definition()).expect("a definition can be written");
    for format in [DagFormat::Json, DagFormat::Yaml] {
        let again = definition(format, &json);
        let version = again.as_ref().map(Dag::version);
        assert!(version.as_ref().is_ok_and(|it| *it == dag.version()), "{format:?}: {again:?}\n{json}");
    }
}

/// Checks the faults of a file: there is one at least, each has a position in the text, and their messages are readable.
///
/// # Panics
/// They are not.
pub(super) fn check_faults(text: &str, faults: &[Fault]) {
    assert!(!faults.is_empty(), "a text was refused without a fault");
    // In YAML, a carriage return ends a line.
    let lines = text.split(['\n', '\r']).count();
    for Fault { place, what, remedy } in faults {
        check::message(what);
        if !remedy.is_empty() {
            check::message(remedy);
        }
        if let Some((line, column)) = *place {
            assert!((1..=lines).contains(&line), "a fault in line {line} of {lines}: {what}");
            // The parser of JSON counts bytes, the others characters.
            assert!((1..=text.len() + 1).contains(&column), "a fault in column {column}: {what}");
        }
    }
}

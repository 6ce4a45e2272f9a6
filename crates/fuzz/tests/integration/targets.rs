//! Each target over its corpus, and over a bounded number of mutations of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use milepost_fuzz::{Target, target, targets};
use proptest::test_runner::{Config, TestRunner};

use crate::mutations::inputs;

/// The largest file of a corpus.
const FILE_BYTES_MAX: usize = 4096;

fn corpus_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

/// Runs a target over its corpus, then over this number of mutations.
fn run(name: &str, mutations: u32) {
    let Target { run, .. } = target(name).unwrap();
    let mut corpus = Vec::new();
    for entry in std::fs::read_dir(corpus_of(name)).unwrap() {
        let path = entry.unwrap().path();
        let input = std::fs::read(&path).unwrap();
        assert!(input.len() <= FILE_BYTES_MAX, "{} is too large", path.display());
        println!("{}", path.display());
        run(&input);
        corpus.push(input);
    }
    corpus.sort();
    // The inputs are the same in each run: `scripts/fuzz` is for others.
    let config = Config { cases: mutations, failure_persistence: None, ..Config::default() };
    let rng = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, rng)
        .run(&inputs(corpus), |input| {
            run(&input);
            Ok(())
        })
        .unwrap();
}

/// Declares a test for each target, with its number of mutations.
macro_rules! targets {
    ($($test:ident: $name:literal, $mutations:literal;)+) => {
        $(#[test]
        fn $test() {
            run($name, $mutations);
        })+

        const TESTED: &[&str] = &[$($name),+];
    };
}

targets! {
    requests_to_the_api_are_answered: "api", 300;
    configurations_are_read_or_refused: "configuration", 300;
    csv_rows_are_read_or_refused: "csv", 2000;
    definitions_of_dags_are_read_or_refused: "dag_file", 500;
    durations_times_and_rates_are_read_or_refused: "durations", 2000;
    the_work_of_expressions_is_bounded: "expression", 500;
    the_work_of_input_schemas_is_bounded: "input_schema", 300;
    json_lines_are_read_or_refused: "json_lines", 2000;
    accepted_payloads_can_be_decoded: "json_payload", 2000;
    ids_and_names_are_read_or_refused: "names", 2000;
    a_requested_wait_is_bounded: "retry_after", 2000;
    ticks_of_schedules_are_ascending: "schedule", 500;
    apply_statements_are_read_or_refused: "sql_apply", 1000;
    source_queries_are_read_or_refused: "sql_source", 1000;
    no_password_of_a_store_is_shown: "store_address", 2000;
    subjects_are_read_or_refused: "subject", 2000;
    templates_are_rendered_or_refused: "template", 500;
    tokens_are_read_or_refused: "token", 2000;
    trace_headers_are_read_or_refused: "traceparent", 2000;
    webhook_signatures_are_those_of_the_library: "webhook", 1000;
}

#[test]
fn every_target_has_a_test_and_a_corpus() {
    let tested: BTreeSet<_> = TESTED.iter().copied().collect();
    let known: BTreeSet<_> = targets::ALL.iter().map(|target| target.name).collect();
    assert_eq!(tested, known);
    let folders = std::fs::read_dir(corpus_of("")).unwrap();
    let folders: BTreeSet<_> =
        folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(folders, known.into_iter().map(str::to_owned).collect());
}

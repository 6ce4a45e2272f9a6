//! Tests of valid and invalid configuration files.

mod agreement;
mod batch;
mod bulk;
mod bulk_places;
mod form;
mod hide;
mod notify;
mod sections;
mod serve;
mod subscription;
mod team;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value as Json, json};

use milepost_core::retention::{Keep, RetentionPolicy};

use super::command::EXAMPLE;
use super::format::Format;
use super::*;

/// Parses the text of a file without a store from the command line.
fn parse(text: &str, folder: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Config, Vec<Fault>> {
    super::parse(text, folder, None, variable)
}

/// Returns the faults of a text, each as `line:column what → remedy`.
fn faults(text: &str) -> Vec<String> {
    let variable = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
    match parse(text, Path::new("/"), variable) {
        Ok(_) => Vec::new(),
        Err(faults) => faults
            .into_iter()
            .map(|fault| format!("{}:{} {} → {}", fault.line, fault.column, fault.what, fault.remedy))
            .collect(),
    }
}

/// Asserts that a text has exactly these faults: each begins with the first text, and its remedy contains the second.
#[track_caller]
fn assert_faults(text: &str, expected: &[(&str, &str)]) {
    let found = faults(text);
    assert_eq!(found.len(), expected.len(), "{text}\n{found:#?}");
    for (found, (begins, remedy)) in found.iter().zip(expected) {
        let told = found.split(" → ").nth(1).unwrap();
        assert!(
            found.starts_with(begins) && told.contains(remedy),
            "{found}\ndoes not contain {begins} → {remedy}"
        );
        assert!(!found.contains("s3cret"), "{found}");
    }
}

const KIND: &str = "[kinds.a]\nexec = { program = \"sh\" }\n";

//! Good files and bad ones.

mod agreement;
mod batch;
mod bulk;
mod form;
mod sections;
mod serve;
mod subscription;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value as Json, json};

use milepost_core::retention::{Keep, RetentionPolicy};

use super::command::EXAMPLE;
use super::format::Format;
use super::*;

/// Reads the text of a file, for no store that was named.
fn parse(text: &str, folder: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Config, Vec<Fault>> {
    super::parse(text, folder, None, variable)
}

/// The faults of a text, each as `line:column what → remedy`.
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

/// Asserts that a text has exactly these faults: each begins so, and names this in its remedy.
#[track_caller]
fn assert_faults(text: &str, expected: &[(&str, &str)]) {
    let found = faults(text);
    assert_eq!(found.len(), expected.len(), "{text}\n{found:#?}");
    for (found, (begins, remedy)) in found.iter().zip(expected) {
        let told = found.split(" → ").nth(1).unwrap();
        assert!(
            found.starts_with(begins) && told.contains(remedy),
            "{found}\ndoes not say {begins} → {remedy}"
        );
        assert!(!found.contains("s3cret"), "{found}");
    }
}

const KIND: &str = "[kinds.a]\nexec = { program = \"sh\" }\n";

//! Configurations in TOML.

use std::path::Path;

use milepost_cli::fuzzing;

use super::dag_file;

/// A folder without files.
const FOLDER: &str = "/nonexistent";

/// Parses a configuration. Its store is the same if only the store is read.
///
/// # Panics
/// A property does not hold.
pub fn target(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match fuzzing::configuration(text, Path::new(FOLDER)) {
        Ok(store) => {
            let alone = fuzzing::store_of_configuration(text, Path::new(FOLDER));
            assert!(
                alone.as_ref().is_ok_and(|alone| *alone == store),
                "the store is {store:?}, read alone {alone:?}"
            );
        }
        Err(faults) => dag_file::check_faults(text, &faults),
    }
    if let Err(faults) = fuzzing::store_of_configuration(text, Path::new(FOLDER)) {
        dag_file::check_faults(text, &faults);
    }
}

//! The statement files of a store's crate.

use std::fs;
use std::path::{Path, PathBuf};

/// A file in the folder `queries` of a crate.
#[derive(Clone, Debug)]
pub struct QueryFile {
    /// Its path in the folder, without its extension: `batch/due`.
    pub name: String,
    /// Its text.
    pub sql: String,
}

/// Returns all statement files of a crate, sorted by their names.
pub fn all(crate_folder: &str) -> Vec<QueryFile> {
    let folder = Path::new(crate_folder).join("queries");
    let mut files: Vec<QueryFile> = files_below(&folder)
        .iter()
        .map(|path| QueryFile {
            name: path.strip_prefix(&folder).expect("a path below").with_extension("").display().to_string(),
            sql: read(path),
        })
        .collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

/// Returns the names of statement files that no source of the crate names. Checks of the doctor are named without their folder.
pub fn unused(crate_folder: &str) -> Vec<String> {
    let sources = files_below(&Path::new(crate_folder).join("src"));
    let sources: String = sources.iter().map(|path| read(path)).collect();
    let is_used = |name: &String| match name.strip_prefix("doctor/") {
        Some(check) => sources.contains(&format!("\"{check}\"")),
        None => sources.contains(&format!("sql!(\"{name}\")")),
    };
    all(crate_folder).into_iter().map(|file| file.name).filter(|name| !is_used(name)).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("cannot read a folder").path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

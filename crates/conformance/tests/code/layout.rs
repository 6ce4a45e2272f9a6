//! Check that every test file is part of a test binary: an undeclared module would never be compiled.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[test]
fn every_file_of_tests_is_declared_as_a_module() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = 0;
    for tests in folders(crates).map(|package| package.join("tests")).filter(|tests| tests.is_dir()) {
        let mut files = BTreeSet::new();
        sources(&tests, &mut files);
        let mut declared = BTreeSet::new();
        for main in folders(&tests).map(|folder| folder.join("main.rs")).filter(|main| main.is_file()) {
            reach(&main, main.parent().unwrap(), &mut declared);
        }
        let forgotten: Vec<_> = files.difference(&declared).collect();
        assert!(
            forgotten.is_empty(),
            "files without a `mod` declaration; declare or remove them: {forgotten:?}"
        );
        found += files.len();
    }
    assert!(found > 200, "too few test files were found: {found}");
}

#[test]
fn a_target_that_cargo_does_not_test_has_no_unit_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut untested = 0;
    for package in [root.join("crates"), root.join("examples")].iter().flat_map(|folder| folders(folder)) {
        // Examples in other languages have no manifest.
        let manifest = std::fs::read_to_string(package.join("Cargo.toml")).unwrap_or_default();
        if !manifest.contains("[lib]\ntest = false") {
            continue;
        }
        let mut files = BTreeSet::new();
        sources(&package.join("src"), &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(
                !text.contains("#[cfg(test)]"),
                "{}: has tests that cargo does not run, because of `test = false`",
                file.display()
            );
        }
        untested += 1;
    }
    assert!(untested >= 4, "too few were found: {untested}");
}

#[test]
fn actions_of_workflows_are_pinned_to_commits() {
    let workflows =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join(".github/workflows");
    let mut used = 0;
    for workflow in entries(&workflows) {
        let text = std::fs::read_to_string(&workflow).unwrap();
        for action in
            text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: "))
        {
            let commit = action.split(['@', ' ']).nth(1).unwrap_or_default();
            let is_commit = commit.len() == 40 && commit.bytes().all(|digit| digit.is_ascii_hexdigit());
            assert!(
                is_commit,
                "{}: {action}: pin the commit, because a tag can be moved",
                workflow.display()
            );
            used += 1;
        }
    }
    assert!(used >= 6, "too few were found: {used}");
}

#[test]
fn files_that_the_documentation_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let pages = [root.to_owned(), root.join("docs"), root.join("docs/adr")];
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut files = BTreeSet::new();
    sources(&root.join("crates"), &mut files);
    let mut named = 0;
    for page in pages.iter().flat_map(|folder| entries(folder)).filter(is_page) {
        let text = std::fs::read_to_string(&page).unwrap();
        for path in text.split('`').filter(|code| !code.contains(['*', ' ', '\n'])) {
            let is_path = path.starts_with("crates/") && root.join(path).exists();
            let is_file = path.ends_with(".rs") && files.iter().any(|file| file.ends_with(path));
            let names_a_file = path.starts_with("crates/") || path.ends_with(".rs");
            assert!(
                !names_a_file || is_path || is_file,
                "{} names {path}, which does not exist",
                page.display()
            );
            named += usize::from(names_a_file);
        }
    }
    assert!(named > 30, "too few were found: {named}");
}

/// Reads of the store that can return many megabytes.
const LARGE_READS: [&str; 10] = [
    ".audit_log(",
    ".bulk_failures(",
    ".dag(",
    ".dead_events(",
    ".dead_letters(",
    ".events(",
    ".held(",
    ".history(",
    ".parked(",
    ".schedules_after(",
];

#[test]
fn the_server_reads_something_large_only_with_a_permit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut files = BTreeSet::new();
    sources(&root.join("crates/server/src"), &mut files);
    let mut found = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        let calls = |read: &&str| text.contains(&format!("store{read}"));
        let reads: Vec<_> = LARGE_READS.into_iter().filter(calls).collect();
        let has_permit = ["large.permit()", "large.exclusive_permit()", "LargePermit", "of_large_rows("];
        assert!(
            reads.is_empty() || has_permit.iter().any(|permit| text.contains(permit)),
            "{} calls {reads:?} without a permit of large_reads.rs",
            file.display()
        );
        found.extend(reads);
    }
    assert_eq!(found.len(), LARGE_READS.len(), "some of the reads were not found: {found:?}");
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

pub(crate) fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    entries(folder).filter(|path| path.is_dir())
}

pub(crate) fn sources(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(path);
        }
    }
}

/// Adds a file and all modules that it declares, which are in `folder` or at the path that `#[path]` specifies.
fn reach(file: &Path, folder: &Path, declared: &mut BTreeSet<PathBuf>) {
    declared.insert(file.to_owned());
    let text = std::fs::read_to_string(file).unwrap();
    let mut path = None;
    for line in text.lines().map(str::trim) {
        if let Some(other) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            path = Some(file.parent().unwrap().join(other));
        }
        let module = line.strip_prefix("pub(crate) ").unwrap_or(line).strip_prefix("mod ");
        let Some(name) = module.and_then(|rest| rest.strip_suffix(';')) else { continue };
        let candidates = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
        let module = path.take().or_else(|| candidates.into_iter().find(|candidate| candidate.is_file()));
        let module = module.unwrap_or_else(|| panic!("{}: no file for `mod {name}`", file.display()));
        let is_root = module.file_name().is_some_and(|name| name == "mod.rs");
        let inside = if is_root { module.parent().unwrap().to_owned() } else { folder.join(name) };
        reach(&module, &inside, declared);
    }
}

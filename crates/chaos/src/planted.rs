//! The bugs that `scripts/planted` plants.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bugs {
    bug: Vec<Bug>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bug {
    name: String,
    promise: u8,
    file: String,
    old: String,
    new: String,
    #[expect(dead_code, reason = "only the script uses it")]
    only: Option<String>,
    store: Option<String>,
}

#[test]
fn every_bug_can_be_planted() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Bugs { bug: bugs } =
        toml::from_str(&fs::read_to_string(here.join("planted/bugs.toml")).unwrap()).unwrap();
    let names: HashSet<&str> = bugs.iter().map(|bug| &*bug.name).collect();
    assert_eq!(names.len(), bugs.len(), "each bug has a name of its own");
    for Bug { name, promise, file, old, new, store, .. } in &bugs {
        assert!((1..=22).contains(promise), "{name}");
        let is_of_sqlite = file.starts_with("crates/sqlite");
        assert!(!is_of_sqlite || store.is_none(), "{name}");
        let text = fs::read_to_string(here.join("../..").join(file)).unwrap();
        assert_eq!(text.matches(old).count(), 1, "{name}: {old:?} in {file}");
        assert_ne!(old, new, "{name}");
    }
}

//! Check that modules do not import each other in a cycle. A module and its own children may: a folder is read as one unit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::layout::{folders, sources};

/// The path of a module within its crate; empty for the root.
type Module = Vec<String>;
/// The modules that each module imports.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn modules_do_not_import_each_other_in_a_cycle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut modules = 0;
    for package in folders(crates).filter(|package| package.join("src").is_dir()) {
        let imports = imports(&package.join("src"));
        modules += imports.len();
        let cycle =
            cycle(&imports).map(|cycle| cycle.iter().map(|module| module.join("::")).collect::<Vec<_>>());
        assert_eq!(
            cycle,
            None,
            "{}: these modules import each other; move what they share to a module that both import",
            package.display()
        );
    }
    assert!(modules > 900, "too few modules were found: {modules}");
}

#[test]
fn a_cycle_is_found_through_any_form_of_import() {
    let all: BTreeSet<Module> = ["", "a", "a::b", "c", "d"].map(path).into();
    let found = |from: &str, text: &str| {
        imported(&path(from), text, &all).iter().map(|module| module.join("::")).collect::<Vec<_>>()
    };
    assert_eq!(found("c", "use crate::a::b::{self, X};\nuse crate::{d, lib_item};"), ["a::b", "d"]);
    assert_eq!(found("a::b", "pub(crate) use super::super::c::X;"), ["c"]);
    assert_eq!(found("c", "fn f() { super::d::g(); } // crate::a::h()"), ["d"]);
    assert_eq!(found("a", "use self::b::X;\nuse std::fmt;\nuse b::Y;"), [""; 0], "its own child");
    assert_eq!(found("c", "#[cfg(test)]\nmod tests {\n    use crate::a::X;\n}"), [""; 0]);
    let edges = |edges: &[(&str, &str)]| {
        let mut imports: Imports = all.iter().map(|module| (module.clone(), BTreeSet::new())).collect();
        for (from, to) in edges {
            imports.get_mut(&path(from)).unwrap().insert(path(to));
        }
        cycle(&imports).map(|cycle| cycle.len())
    };
    assert_eq!(edges(&[("a", "c"), ("c", "d"), ("a", "d")]), None);
    assert_eq!(edges(&[("a", "c"), ("c", "d"), ("d", "c")]), Some(2));
}

fn path(text: &str) -> Module {
    text.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Reads all modules below a folder `src`.
fn imports(src: &Path) -> Imports {
    let mut files = BTreeSet::new();
    sources(src, &mut files);
    let module = |file: &Path| {
        let inside = file.strip_prefix(src).unwrap().with_extension("");
        let mut module: Module = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        module.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
        module
    };
    let files: BTreeMap<Module, _> = files.iter().map(|file| (module(file), file)).collect();
    let all: BTreeSet<Module> = files.keys().cloned().collect();
    let read = |file| std::fs::read_to_string(file).unwrap();
    files.iter().map(|(module, file)| (module.clone(), imported(module, &read(file), &all))).collect()
}

/// Returns the modules that the text of a module imports or names, without its ancestors and descendants.
fn imported(module: &Module, text: &str, all: &BTreeSet<Module>) -> BTreeSet<Module> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    let text: String = text.lines().map(|line| [without_comment(line), "\n"].concat()).collect();
    let mut paths = Vec::new();
    for (at, _) in text.match_indices("use ").filter(|&(at, _)| begins_item(&text[..at])) {
        let tree = text[at + "use ".len()..].split(';').next().unwrap();
        expand("", &tree.split_whitespace().collect::<Vec<_>>().join(" "), &mut paths);
    }
    for root in ["crate::", "super::", "self::"] {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
        let starts = text.match_indices(root).filter(|&(at, _)| !text[..at].ends_with(is_name));
        paths.extend(starts.map(|(at, _)| text[at..].split(|c| !is_name(c)).next().unwrap().to_owned()));
    }
    let named = paths.iter().filter_map(|path| resolve(module, path, all));
    named.filter(|other| !other.starts_with(module) && !module.starts_with(other)).collect()
}

fn without_comment(line: &str) -> &str {
    let comment = line.match_indices("//").find(|&(at, _)| !line[..at].ends_with(':'));
    comment.map_or(line, |(at, _)| &line[..at])
}

/// Returns whether an item can begin after this text.
fn begins_item(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap().trim();
    line.is_empty() || line == "pub" || (line.starts_with("pub(") && line.ends_with(')'))
}

/// Adds all paths of a tree such as `a::{b, c::d}`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        paths.push(format!("{prefix}{}", tree.split(" as ").next().unwrap().trim()));
        return;
    };
    let (prefix, inner) = (format!("{prefix}{}", head.trim()), &rest[..rest.rfind('}').unwrap()]);
    let mut depth = 0;
    let branches = inner.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    branches
        .filter(|branch| !branch.trim().is_empty())
        .for_each(|branch| expand(&prefix, branch.trim(), paths));
}

/// Returns the module in which a path ends; `None` for a path into another crate.
fn resolve(module: &Module, path: &str, all: &BTreeSet<Module>) -> Option<Module> {
    let mut parts: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
    let mut at = match *parts.first()? {
        "crate" => Module::new(),
        "self" | "super" => module.clone(),
        child => {
            all.get(&[module.as_slice(), &[child.to_owned()]].concat())?;
            module.clone()
        }
    };
    let roots = parts.iter().take_while(|part| matches!(**part, "crate" | "self" | "super")).count();
    for _ in parts.drain(..roots).filter(|root| *root == "super") {
        at.pop();
    }
    for part in parts {
        at.push(part.to_owned());
        if !all.contains(&at) {
            at.pop();
            break;
        }
    }
    Some(at)
}

/// Returns the modules of one cycle, if there is any.
fn cycle(imports: &Imports) -> Option<Vec<Module>> {
    let mut left = imports.clone();
    // Modules that import nothing that is left are in no cycle.
    loop {
        let done: BTreeSet<Module> = left
            .iter()
            .filter(|(_, to)| to.iter().all(|to| !left.contains_key(to)))
            .map(|(of, _)| of.clone())
            .collect();
        if done.is_empty() {
            break;
        }
        left.retain(|module, _| !done.contains(module));
    }
    let mut way = vec![left.keys().next()?.clone()];
    loop {
        let next = left[way.last().unwrap()].iter().find(|to| left.contains_key(*to)).unwrap();
        if let Some(at) = way.iter().position(|module| module == next) {
            return Some(way.split_off(at));
        }
        way.push(next.clone());
    }
}

//! Tests of valid and invalid definition files.

use super::*;

/// Returns the faults of a text, one per line.
#[track_caller]
fn faults(format: Format, text: &str) -> Vec<String> {
    let Err(faults) = check(format, text) else { panic!("no faults were reported: {text}") };
    Faulty { file: "f".into(), faults }.lines().collect()
}

/// Asserts that a text has exactly these faults; each begins with the given text.
#[track_caller]
fn assert_faults(format: Format, text: &str, expected: &[&str]) {
    let found = faults(format, text);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\ndoes not begin with\n{expected}");
        assert!(!found.contains('\n') && found.matches("line").count() <= 1, "{found}");
    }
}

const TOML: &str = r#"
name = "orders"

[tasks.extract]
kind = "sql"
timeout = "2m 30s"

[tasks.load]
kind = "mail"
payload = { n = "${ tasks.extract.output.n }", list = [1, 2.5, true] }
after = ["extract"]
"#;

const YAML: &str = r#"
name: orders
tasks:
  extract: { kind: sql, timeout: 2m 30s }
  load:
    kind: mail
    payload: { n: "${ tasks.extract.output.n }", list: [1, 2.5, true] }
    after: [extract]
"#;

const JSON: &str = r#"{
  "name": "orders",
  "tasks": {
    "extract": { "kind": "sql", "timeout": "2m 30s" },
    "load": {
      "kind": "mail",
      "payload": { "n": "${ tasks.extract.output.n }", "list": [1, 2.5, true] },
      "after": ["extract"]
    }
  }
}"#;

#[test]
fn the_same_content_is_the_same_version_in_each_format() {
    let version = |format, text| check(format, text).unwrap().version();
    let toml = version(Format::Toml, TOML);
    assert_eq!(version(Format::Yaml, YAML), toml);
    assert_eq!(version(Format::Json, JSON), toml);
}

#[test]
fn the_name_of_a_file_says_how_it_is_written() {
    let of = |name: &str| Format::of(Path::new(name));
    assert_eq!(of("a/b.toml"), Some(Format::Toml));
    assert_eq!((of("b.yaml"), of("b.yml")), (Some(Format::Yaml), Some(Format::Yaml)));
    assert_eq!((of("b.json"), of("b.txt"), of("toml")), (Some(Format::Json), None, None));
    let error = read(Path::new("b.txt")).unwrap_err().to_string();
    assert!(error.contains(".toml, .yaml, .yml or .json"), "{error}");
}

#[test]
fn a_value_of_the_wrong_form_is_told_with_its_task_and_place() {
    let timeout = "task \"load\", timeout: expected number";
    let toml = "name = \"x\"\n[tasks.load]\nkind = \"k\"\ntimeout = \"soon\"\n";
    assert_faults(Format::Toml, toml, &[&format!("f:4:1: {timeout}")]);
    let yaml = "name: x\ntasks:\n  load:\n    kind: k\n    timeout: soon\n";
    assert_faults(Format::Yaml, yaml, &[&format!("f:5:14: {timeout}")]);
    let json = "{\"name\": \"x\", \"tasks\": {\n\"load\": {\"kind\": \"k\", \"timeout\": \"soon\"}}}";
    assert_faults(Format::Json, json, &[&format!("f:2:40: {timeout}")]);
}

#[test]
fn what_is_misspelt_is_told_with_its_task_and_place() {
    let afer = "task \"load\", afer: unknown field `afer`, expected one of";
    let toml = "name = \"x\"\n[tasks.load]\nkind = \"k\"\nafer = []\n";
    assert_faults(Format::Toml, toml, &[&format!("f:4:1: {afer}")]);
    let yaml = "name: x\ntasks:\n  load: { kind: k, afer: [] }\n";
    assert_faults(Format::Yaml, yaml, &[&format!("f:3:20: {afer}")]);
    let json = "{\"name\": \"x\", \"tasks\": {\"load\": {\"kind\": \"k\", \"afer\": []}}}";
    assert_faults(Format::Json, json, &[&format!("f:1:52: {afer}")]);
}

#[test]
fn numbers_that_would_change_are_refused() {
    let number = |number: &str| {
        format!("name = \"x\"\n[tasks.load]\nkind = \"k\"\npayload = {{ limit = {number} }}\n")
    };
    let refused =
        "f:4:21: the number 9223372036854775808 has no exact 64-bit form; write it as a string in quotes";
    assert_faults(Format::Toml, &number("9223372036854775808"), &[refused]);
    assert_eq!(faults(Format::Toml, &number("inf")).len(), 1);
    assert!(parse::toml(&number("9223372036854775807")).is_ok());
}

#[test]
fn what_is_no_such_format_at_all_is_told_with_its_place() {
    assert_faults(Format::Toml, "name = \"x\"\ntasks = {", &["f:2:10: this is not TOML: "]);
    assert_faults(Format::Json, "{\"name\": \"x\",}", &["f:1:14: this is not JSON: trailing comma"]);
    assert_faults(Format::Json, "{\"name\": \"x\", \"tasks\": {}} {}", &["f:1:28: this is not JSON: "]);
    let yaml = faults(Format::Yaml, "name: x\ntasks: [\n");
    assert!(yaml.len() == 1 && yaml[0].starts_with("f:2:"), "{yaml:?}");
    let two = faults(Format::Yaml, "name: x\ntasks: { a: { kind: k } }\n---\nname: y\n");
    assert!(two.len() == 1 && two[0].contains("document"), "{two:?}");
}

#[test]
fn tasks_without_keys_are_refused_with_the_remedy() {
    let list = "tasks: the tasks are a list, but each needs a key: write them as a table, such as";
    assert_faults(Format::Yaml, "name: x\ntasks:\n  - kind: k\n", &[&format!("f:3:3: {list}")]);
    assert_faults(
        Format::Json,
        "{\"name\": \"x\",\n\"tasks\": [{\"kind\": \"k\"}]}",
        &[&format!("f:2:10: {list}")],
    );
    let fields = "task \"a\": invalid type: sequence, expected a table with fields";
    assert_faults(
        Format::Json,
        "{\"name\": \"x\", \"tasks\": {\"a\": [\"k\"]}}",
        &[&format!("f:1:29: {fields}")],
    );
    assert_eq!(faults(Format::Json, "[\"x\", null, null, {\"a\": {\"kind\": \"k\"}}]").len(), 1);
    assert_faults(Format::Toml, "name = \"x\"\n[[tasks]]\nkind = \"k\"\n", &[&format!("f:2:3: {list}")]);
}

#[test]
fn a_task_that_is_there_twice_is_told() {
    let toml = "name = \"x\"\n[tasks.a]\nkind = \"k\"\n[tasks.a]\nkind = \"l\"\n";
    assert_faults(Format::Toml, toml, &["f:4:8: a is defined twice; the first is in line 2"]);
    let yaml = "name: x\ntasks:\n  a: { kind: k }\n  a: { kind: l }\n";
    assert_faults(Format::Yaml, yaml, &["f:4:3: tasks: duplicate mapping key `a` is not allowed here"]);
    let json = "{\"name\": \"x\", \"tasks\": {\"a\": {\"kind\": \"k\"},\n\"a\": {\"kind\": \"l\"}}}";
    assert_faults(Format::Json, json, &["f:2:1: two tasks have the key \"a\""]);
}

#[test]
fn all_faults_of_the_whole_are_told_where_their_tasks_stand() {
    let cycle = "a cycle: a → b → a";
    let work = "task \"c\" must specify exactly one kind of work";
    let toml = "name = \"x\"\n[tasks.c]\nbulk = \"k\"\nkind = \"k\"\n[tasks.a]\nkind = \"k\"\nafter = [\"b\"]\n\
        [tasks.b]\nkind = \"k\"\nafter = [\"a\"]\n";
    assert_faults(Format::Toml, toml, &[&format!("f:2:8: {work}"), &format!("f:5:8: {cycle}")]);
    let yaml = "name: x\ntasks:\n  a: { kind: k, after: [b] }\n  b: { kind: k, after: [a] }\n  c: {}\n";
    assert_faults(Format::Yaml, yaml, &[&format!("f:3:3: {cycle}"), &format!("f:5:3: {work}")]);
    let json = "{\n\t\"name\": \"x\",\n\t\"tasks\": {\n\t\t\"c\": {}\n\t}\n}\n";
    assert_faults(Format::Json, json, &[&format!("f:4:3: {work}")]);
}

#[test]
fn a_definition_of_fifty_thousand_tasks_is_read() {
    let mut yaml = "name: large\ntasks:\n".to_owned();
    for task in 0..50_000 {
        let after =
            if task < 100 { String::new() } else { format!(", after: [t{}, t{}]", task - 100, task - 99) };
        yaml.push_str(&format!("  t{task}: {{ kind: k{after} }}\n"));
    }
    assert_eq!(check(Format::Yaml, &yaml).unwrap().graph().len(), 50_000);
}

#[test]
fn every_definition_of_the_guide_can_run() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = ["BATCHES.md", "guides/wait-for-an-approval.md"];
    let page = pages.map(|page| std::fs::read_to_string(docs.join(page)).unwrap()).join("\n");
    let blocks = |mark: &str| -> Vec<String> {
        let begin = format!("\n```{mark}\n");
        let blocks = page.split(&begin).skip(1);
        blocks.map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
    };
    let (toml, yaml) = (blocks("toml"), blocks("yaml"));
    assert_eq!((toml.len(), yaml.len()), (8, 1));
    let all = toml.iter().map(|text| (Format::Toml, text)).chain([(Format::Yaml, &yaml[0])]);
    for (format, text) in all {
        let checked = check(format, text);
        assert!(checked.is_ok(), "{text}\n{checked:?}");
    }
}

#[test]
fn all_faults_of_a_file_are_told_at_once_whether_it_can_be_read_or_not() {
    let toml = r#"
inpt = 3
name = "orders"
[tasks.a]
kind = "k"
retries = 3
[tasks.b]
kind = "k"
after = ["zz"]
max_attempts = "many"
rule = "sometimes"
[tasks.c]
kind = "k"
when = "1 +"
timeout = 5
[tasks.d]
kind = "k"
when = "1 +"
"#;
    assert_faults(
        Format::Toml,
        toml,
        &[
            "f:2:1: inpt: unknown field",
            "f:6:1: task \"a\", retries: unknown field",
            "f:7:8: task \"b\" has the predecessor \"zz\", which is not a task",
            "f:10:1: task \"b\", max_attempts: invalid type",
            "f:11:1: task \"b\", rule: unknown variant",
            "f:12:8: task \"c\", when: at",
            "f:15:1: task \"c\", timeout: invalid type",
            "f:16:8: task \"d\", when: at",
        ],
    );
    let yaml = "
name: orders
tasks:
  a: { kind: k, retries: 3, after: [1, 2], rule: sometimes }
  b: { kind: k, when: 1 + }
  c: { max_attempts: many }
";
    let found = faults(Format::Yaml, yaml);
    assert_eq!(found.len(), 5, "{found:#?}");
    assert!(found.iter().all(|fault| !fault.contains("\"c\": ")), "{found:#?}");
}

#[test]
fn a_field_that_cannot_be_read_hides_neither_a_cycle_nor_other_faults_of_its_task() {
    let toml = r#"
name = "orders"
input_schema = { type = "nothing" }
[tasks.a]
kind = "k"
retries = 3
queue = "a b\u0007"
after = ["b"]
payload = { x = "${ 1 + }", y = "${ 2 + }" }
[tasks.b]
kind = "k"
after = ["a"]
"#;
    assert_faults(
        Format::Toml,
        toml,
        &[
            "f: every task has a predecessor",
            "f:3:1: the input schema is invalid",
            "f:4:8: task \"a\": the queue",
            "f:4:8: task \"a\", payload: /x: at",
            "f:4:8: task \"a\", payload: /y: at",
            "f:4:8: a cycle: a → b → a",
            "f:6:1: task \"a\", retries: unknown field",
        ],
    );
}

#[test]
fn what_comes_after_a_task_that_cannot_be_read_is_no_fault() {
    let toml = "name = 'orders'\n[tasks]\na = 3\nb = { kind = 'k', after = ['a'] }\n";
    assert_faults(Format::Toml, toml, &["f:3:1: task \"a\": invalid type"]);
}

#[test]
fn a_fault_after_a_line_end_is_in_the_first_column() {
    for text in ["{\"name\"\n", "{\"name\":\"x\",\"task\"\n:1}"] {
        let faults = check(Format::Json, text).unwrap_err();
        let places: Vec<_> = faults.iter().filter_map(|fault| fault.place).collect();
        assert_eq!(places.first(), Some(&(2, 1)), "{text}: {faults:?}");
    }
}

#[test]
fn a_line_end_in_a_name_does_not_break_the_message() {
    let faults = check(Format::Json, r#"{"\name":"x"}"#).unwrap_err();
    let unknown = r"\name: unknown field `\name`";
    assert!(faults.iter().any(|fault| fault.what.starts_with(unknown)), "{faults:?}");
}

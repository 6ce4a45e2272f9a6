use std::time::Duration;

use serde_json::json;

use super::super::counting::steps_of;
use super::super::definition::Task;
use super::super::fault::Fault;
use super::super::progress::Progress;
use super::super::rule::Outcome;
use super::*;

fn dag(tasks: impl IntoIterator<Item = (&'static str, Task)>) -> Definition {
    tasks.into_iter().fold(Definition::new("d"), |dag, (key, task)| dag.task(key, task))
}

fn job() -> Task {
    Task::job("k")
}

fn faults(definition: Definition) -> Vec<String> {
    Dag::check(definition).unwrap_err().faults.iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_definition_has_a_graph_by_the_order_of_its_keys() {
    let definition = dag([("load", job().after(["extract"])), ("extract", job())]);
    let dag = Dag::check(definition).unwrap();
    assert_eq!(dag.graph().keys(), ["extract", "load"]);
    assert_eq!(dag.graph().successors(0), [1]);
    assert_eq!(dag.definition().tasks[1].0, "load");
    assert_eq!(Version::of(dag.canonical()), dag.version());
    let again = Dag::check(serde_json::from_str(dag.canonical()).unwrap()).unwrap();
    assert_eq!(again, dag);
}

#[test]
fn all_that_is_wrong_is_told_at_once_with_task_and_place() {
    let definition = dag([
        ("a", job().after(["a", "b", "b", "extarct"])),
        ("b", Task { max_attempts: 0, ..job() }),
        ("extract", Task { bulk: Some("x".to_owned()), ..job() }),
        ("extract", job().rule(Rule::OneFailed)),
        ("w", job().when("input.x >").payload(json!({"p": ["${ tasks.b.output }", "${ item }"]}))),
    ]);
    let expected = [
        "task \"b\": max_attempts is 0; it must be from 1 to 1000000",
        "task \"extract\" must specify exactly one kind of work: a kind (and each, for a list), a bulk, a dag or a wait",
        "two tasks have the key \"extract\"",
        "task \"extract\" has the rule one_failed, which needs predecessors, but has none",
        "task \"w\", when: at line 1, column 10: Syntax error",
        "task \"w\", payload: it reads \"b\", which is not one of its predecessors",
        "task \"w\", payload: item and index exist only in the payload of a task with each",
        "task \"a\" is its own predecessor",
        "task \"a\" lists the predecessor \"b\" twice",
        "task \"a\" has the predecessor \"extarct\", which is not a task; did you mean extract",
    ];
    let found = faults(definition);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn a_cycle_is_told_as_a_path_and_what_is_behind_it_too() {
    let cycle = [("a", job().after(["c"])), ("b", job().after(["a"])), ("c", job().after(["b"]))];
    let definition = dag(cycle.into_iter().chain([("z", job().after(["b"]))]));
    assert_eq!(
        faults(definition.clone()),
        [
            "every task has a predecessor, so no task can start",
            "a cycle: a → b → c → a",
            "unreachable, because they follow a cycle: z",
        ]
    );
    assert_eq!(faults(definition.task("root", job())).len(), 2, "the DAG has a root");
}

#[test]
fn sizes_are_bounded() {
    assert_eq!(faults(dag([])), ["it has no tasks"]);
    let many = (0..=TASKS_MAX).fold(Definition::new("d"), |dag, at| dag.task(at.to_string(), job()));
    assert_eq!(faults(many), ["it has 100001 tasks; at most 100000 are allowed"]);
    let edges = dag([("a", job().after(vec!["a"; EDGES_MAX + 1]))]);
    assert_eq!(faults(edges), ["it has 1000001 edges; at most 1000000 are allowed"]);
    let error = Dag::check(dag([("a", job().after((0..150).map(|at| at.to_string())))])).unwrap_err();
    assert_eq!((error.faults.len(), error.left_out), (100, 50));
    assert!(error.to_string().ends_with("\n- and 50 more"));
    let large = dag([("a", job().payload(json!("x".repeat(1024 * 1024))))]);
    assert!(matches!(&Dag::check(large).unwrap_err().faults[..], [Fault::Task { .. }]));
    let key = Definition::new("d").task("k".repeat(201), job());
    assert!(matches!(&Dag::check(key).unwrap_err().faults[..], [Fault::Key(_)]));
}

#[test]
fn numbers_whose_digits_would_be_lost_are_refused() {
    let large: serde_json::Value = serde_json::from_str(r#"{"a":[{"n":100000000000000000001}]}"#).unwrap();
    let with_schema =
        Definition { input_schema: Some(json!({"maximum": 1e20})), ..dag([("a", job().payload(large))]) };
    let found = faults(with_schema);
    assert!(found[0].contains("the number 1e+20") || found[0].contains("the number 1e20"), "{found:?}");
    assert!(found[1].starts_with("task \"a\": the payload has the number"), "{found:?}");
    assert_eq!(found.len(), 2, "{found:?}");
    let kept = job().payload(json!([u64::MAX, i64::MIN, 1.8e19, -0.5, "100000000000000000001"]));
    assert!(Dag::check(dag([("a", kept)])).is_ok());
}

#[test]
fn expressions_see_items_where_there_are_some() {
    let each = Task::each("k", "tasks.a.output.to").after(["a"]).payload(json!("${ item.id }/${ index }"));
    let checked = Dag::check(dag([("a", job()), ("b", each)])).unwrap();
    assert_eq!(checked.task(1).reads().tasks.into_iter().collect::<Vec<_>>(), ["a"]);
    let wrong = dag([("a", Task::each("k", "item"))]);
    assert_eq!(
        faults(wrong),
        ["task \"a\", each: item and index exist only in the payload of a task with each"]
    );
}

#[test]
fn canceling_leaves_what_clears_up() {
    let definition = dag([
        ("a", job()),
        ("b", job().after(["a"])),
        ("c", job().after(["b"]).rule(Rule::Always)),
        ("d", job().after(["c"])),
        ("e", job().after(["c", "b"])),
    ]);
    let dag = Dag::check(definition).unwrap();
    assert_eq!(dag.cancel_set(&[0]), [0, 1, 4]);
    assert_eq!(dag.cancel_set(&[2]), [2, 3, 4]);
    assert_eq!(dag.cancel_set(&[]), [0, 1, 4]);
}

#[test]
fn canceling_a_batch_leaves_roots_that_always_run_unless_they_are_listed() {
    let definition = dag([
        ("a", job()),
        ("b", job().rule(Rule::Always)),
        ("c", job().after(["a", "b"])),
        ("d", job().after(["b"])),
    ]);
    let dag = Dag::check(definition).unwrap();
    assert_eq!(dag.cancel_set(&[]), [0, 2]);
    assert_eq!(dag.cancel_set(&[0]), [0, 2]);
    assert_eq!(dag.cancel_set(&[1]), [1, 2, 3]);
}

/// Returns layers of a hundred tasks, each after four tasks of the previous layer; the last task comes after all tasks of the last layer.
fn layered(tasks: u32) -> Definition {
    let key = |task: u32| format!("t{task:06}");
    (0..tasks).fold(Definition::new("d"), |dag, task| {
        let layer = task / 100 * 100;
        let after = (1..=4).filter(|_| layer > 0).map(|at| key(layer - 100 + (task + at * 17) % 100));
        dag.task(key(task), job().after(after))
    })
}

#[test]
fn everything_takes_steps_in_proportion_to_tasks_and_edges() {
    let steps = |tasks: u32| {
        let (dag, check) = steps_of(|| Dag::check(layered(tasks)).unwrap());
        let graph = dag.graph();
        let size = graph.len() + graph.edges();
        let (all, downstream) = steps_of(|| graph.downstream(&graph.roots().collect::<Vec<_>>()).len());
        let (path, critical) = steps_of(|| graph.critical_path(|_| Duration::from_secs(1)));
        assert_eq!((all, path.tasks.len()), (graph.len(), graph.depth() as usize));
        let rules = dag.rules();
        let (_, ends) = steps_of(|| {
            let mut progress = Progress::new(graph, &rules);
            let mut open = progress.start().run;
            while !open.is_empty() {
                open = progress.end(open.into_iter().map(|task| (task, Outcome::Succeeded))).run;
            }
            assert_eq!(progress.outcome(tasks - 1), Some(Outcome::Succeeded));
        });
        let (_, cascade) = steps_of(|| {
            let mut progress = Progress::new(graph, &rules);
            progress.start();
            let skip = progress.end(graph.roots().map(|root| (root, Outcome::Skipped))).skip;
            assert_eq!(skip.len(), graph.len() - 100);
        });
        [check, downstream, critical, ends, cascade].map(|steps| (steps, size))
    };
    for tasks in [1_000, 10_000, 50_000] {
        for (steps, size) in steps(tasks) {
            assert!(steps <= size, "{steps} steps for {tasks} tasks and their edges, {size} together");
        }
    }
}

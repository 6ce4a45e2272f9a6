//! Tests of the drawings.

use milepost_core::dag::definition::{Definition, Task};

use super::*;

/// Creates a graph of these edges, each given as `from-to`.
fn scene(edges: &str) -> Scene {
    let mut definition = Definition::new("<settlement> & \"more\"");
    for edge in edges.split(' ') {
        let (from, to) = edge.split_once('-').map_or((edge, None), |(from, to)| (from, Some(to)));
        for key in [Some(from), to].into_iter().flatten() {
            if !definition.tasks.iter().any(|(known, _)| known == key) {
                definition.tasks.push((key.to_owned(), Task::job("k")));
            }
        }
        let task = to.and_then(|to| definition.tasks.iter_mut().find(|(key, _)| key == to));
        task.into_iter().for_each(|(_, task)| task.after.push(from.to_owned()));
    }
    Scene { dag: Dag::check(definition).unwrap(), states: None }
}

/// Creates a layered graph: each task has predecessors in the previous layer, and every seventh also the first task.
fn layers(layers: usize, width: usize, after: usize) -> Scene {
    let mut definition = Definition::new("layers");
    for at in 0..layers * width {
        let before = (1..=after).filter_map(|step| {
            let layer = (at / width).checked_sub(1)?;
            Some(format!("t{}", layer * width + (at * 7 + step * step * 13) % width))
        });
        let mut before: Vec<String> = before.collect();
        if at >= width && at % 7 == 0 {
            before.push("t0".to_owned());
        }
        before.sort();
        before.dedup();
        definition = definition.task(format!("t{at}"), Task::job("k").after(before));
    }
    Scene { dag: Dag::check(definition).unwrap(), states: None }
}

fn with_states(scene: Scene, states: &[TaskState]) -> Scene {
    let states = states.iter().copied().cycle().take(scene.dag.graph().len()).collect();
    Scene { states: Some(states), ..scene }
}

#[test]
fn a_small_graph_is_drawn_with_boxes_and_lines() {
    let drawn = scene("split-de split-fr split-audit de-join fr-join join-audit").text();
    let expected = "
        ┌───────┐
        │ split │
        └───┬───┘
    ┌───────┼───────┐
    ▼       ▼       │
 ┌────┐  ┌────┐     │
 │ de │  │ fr │     │
 └──┬─┘  └──┬─┘     │
    └───┐   │       │
        ├───┘       │
        ▼           │
    ┌──────┐        │
    │ join │        │
    └───┬──┘        │
        └───┐       │
            ├───────┘
            ▼
        ┌───────┐
        │ audit │
        └───────┘";
    assert_eq!(drawn.trim_end(), expected.trim_start_matches('\n'), "\n{drawn}");
}

#[test]
fn lines_between_two_layers_are_told_apart_however_boxes_lie() {
    for edges in ["a-c a-d b-d a-e b-e b-f c-g f-g", "a-d c-d b-e a-f c-f", "a-c a-d b-c b-d"] {
        let scene = scene(edges);
        let drawn = scene.text();
        let arrows = scene.dag.definition().tasks.iter().filter(|(_, task)| !task.after.is_empty()).count();
        assert_eq!(drawn.matches('▼').count(), arrows, "\n{drawn}");
    }
}

#[test]
fn a_state_has_its_mark_and_the_marks_have_a_legend() {
    let scene = with_states(scene("a-b"), &[TaskState::Succeeded, TaskState::Failed]);
    let drawn = scene.text();
    assert!(drawn.starts_with("✗ failed ✓ succeeded\n"), "{drawn}");
    assert!(drawn.contains("│ ✓ a │") && drawn.contains("│ ✗ b │"), "{drawn}");
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    for (depth, width, after) in [(1, 1, 0), (4, 4, 2), (3, 12, 2), (9, 2, 2), (6, 5, 3), (40, 30, 4)] {
        let scene = with_states(layers(depth, width, after), TaskState::ALL);
        let drawn = scene.text();
        let widest = drawn.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= labels::WIDTH, "{widest} columns:\n{drawn}");
    }
}

#[test]
fn of_a_large_graph_the_layers_are_told_and_what_was_left_out() {
    let scene = with_states(layers(40, 30, 4), &[TaskState::Succeeded, TaskState::Waiting]);
    let drawn = scene.text();
    let lines: Vec<&str> = drawn.lines().collect();
    assert!(
        lines[0].starts_with("layers: 1,200 tasks, ") && lines[0].ends_with(", 40 layers"),
        "{}",
        lines[0]
    );
    assert!(drawn.contains("\n┊ 15 layers with 450 tasks\n"), "{drawn}");
    assert!(drawn.contains("layer 40, 30 tasks: 15 waiting, 15 succeeded"), "{drawn}");
    assert!(drawn.contains("and 18 more") && lines.len() < 400, "{} lines", lines.len());
}

#[test]
fn svg_has_every_task_and_edge_and_is_well_formed() {
    let scene = with_states(scene("a-b a-c b-d c-d a-d x<&>\"-d"), TaskState::ALL);
    let svg = svg::draw(&scene).unwrap();
    assert_eq!(svg.matches("marker-end").count(), scene.dag.graph().edges(), "{svg}");
    assert_eq!(svg.matches("rx=\"5\"").count(), scene.dag.graph().len());
    assert!(svg.contains("x&lt;&amp;&gt;&quot;") && svg.contains("prefers-color-scheme: dark"));
    assert!(svg.contains("<title>&lt;settlement&gt; &amp; &quot;more&quot;</title>"));
    well_formed(&svg);
}

/// Asserts that every element is closed and that texts contain only characters allowed in XML.
#[track_caller]
fn well_formed(xml: &str) {
    let mut open = Vec::new();
    for part in xml.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap();
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        assert!(!text.contains('>') || text.contains('{'), "{text}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        match (tag.strip_prefix('/'), tag.ends_with('/')) {
            (Some(_), _) => assert_eq!(open.pop(), Some(name)),
            (None, false) => open.push(name),
            (None, true) => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_thousand_tasks_are_laid_out_apart_from_one_another_and_soon() {
    let began = std::time::Instant::now();
    let scene = layers(10, 100, 4);
    let graph = scene.dag.graph();
    let layout = layout::of(graph).unwrap();
    let mut seen = std::collections::HashSet::new();
    for &task in graph.order() {
        let place = (layout.places[task as usize] * 2.0).round() as i64;
        assert!(seen.insert((graph.layer(task), place)), "two tasks at one position: {}", graph.key(task));
    }
    assert!(svg::draw(&scene).unwrap().len() < 2_000_000);
    assert!(began.elapsed().as_secs() < 120, "{:?}", began.elapsed());
}

#[test]
fn what_is_too_large_to_be_drawn_says_what_can_be_had() {
    let why = svg::draw(&layers(210, 100, 1)).unwrap_err().to_string();
    assert!(why.contains("--format text") && why.contains("--format dot"), "{why}");
}

#[test]
fn in_svg_a_state_has_its_mark_too_and_the_legend_has_room() {
    let svg = svg::draw(&with_states(scene("a-b"), TaskState::ALL)).unwrap();
    assert!(svg.contains(">· a</text>") && svg.contains(">○ b</text>"), "{svg}");
    let number = |text: &str, name: &str| -> f64 {
        let (_, rest) = text.split_once(&format!("{name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let all = "a-c b-c d-c e-c f-c g-c h-c";
    let svg = svg::draw(&with_states(scene(all), TaskState::ALL)).unwrap();
    let last = svg.lines().rfind(|line| line.contains("⊘ canceled")).unwrap();
    let (_, text) = last.split_once("<text").unwrap();
    let end = number(text, "x") + 7.2 * "⊘ canceled".chars().count() as f64;
    assert!(end < number(&svg, "width"), "the legend ends at {end}: {svg}");
}

#[test]
fn characters_of_two_columns_get_the_room_that_they_take() {
    let scene = scene("検査データ-b");
    assert!(!scene.text().contains('┐'), "boxes would not be closed");
    assert_eq!(
        (labels::cut("検査データ", 10), labels::cut("検査データ", 9)),
        ("検査データ".into(), "検査デー…".into())
    );
    assert_eq!(labels::cut("検査データ", 8), "検査デ…");
    assert!(svg::draw(&scene).unwrap().contains("width=\"96.0\""), "ten columns and the padding");
}

#[test]
fn dot_names_tasks_by_their_keys_and_colours_their_states() {
    let scene = with_states(scene("a\"b-c\\d"), &[TaskState::Failed, TaskState::Waiting]);
    let dot = dot::draw(&scene);
    assert!(dot.starts_with("digraph \"<settlement> & \\\"more\\\"\" {\n"), "{dot}");
    assert!(dot.contains("0 [label=\"a\\\"b\", fillcolor=\"#f6aea9\", tooltip=\"failed\"];"), "{dot}");
    assert!(dot.contains("1 [label=\"c\\\\d\"") && dot.contains("  0 -> 1;\n"), "{dot}");
}

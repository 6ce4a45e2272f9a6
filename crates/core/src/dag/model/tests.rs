use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::dag::state::BatchState;

/// A DAG of up to forty tasks, with a rule and a script for each task.
#[derive(Clone, Debug)]
struct Case {
    graph: Graph,
    rules: Vec<Rule>,
    scripts: Vec<Script>,
}

fn cases() -> impl Strategy<Value = Case> {
    let script = (0_u32..4, 1_u32..4, proptest::bool::weighted(0.85))
        .prop_map(|(failures, max_attempts, when)| Script { failures, max_attempts, when });
    let rule = proptest::sample::select(Rule::ALL);
    let task = (rule, script, proptest::collection::vec(0_usize..40, 0..4));
    proptest::collection::vec(task, 1..40).prop_map(|tasks| {
        let edge = |at: usize, from: &usize| (at > 0).then(|| (from % at.max(1), at));
        let edges: HashSet<(usize, usize)> = (0..)
            .zip(&tasks)
            .flat_map(|(at, (_, _, after))| after.iter().filter_map(move |from| edge(at, from)))
            .collect();
        let number = |at: usize| u32::try_from(at).unwrap();
        let edges = edges.into_iter().map(|(from, to)| (number(from), number(to))).collect();
        let keys = (0..tasks.len()).map(|at| format!("t{at:02}")).collect();
        let (rules, scripts) = tasks.into_iter().map(|(rule, script, _)| (rule, script)).unzip();
        Case { graph: Graph::new(keys, edges).unwrap(), rules, scripts }
    })
}

/// Returns a function that makes the choices in `picks`, repeatedly.
fn chooser(picks: &[usize]) -> impl FnMut(usize) -> usize + '_ {
    let mut at = 0;
    move |ready| {
        at += 1;
        picks[at % picks.len()] % ready
    }
}

impl Case {
    fn start(&self) -> Model<'_> {
        Model::start(&self.graph, &self.rules, &self.scripts)
    }

    fn end_states(&self, picks: &[usize]) -> Vec<TaskState> {
        let mut model = self.start();
        model.run(chooser(picks));
        model.states()
    }

    fn tasks(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.graph.len()).unwrap()
    }
}

fn picks() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0_usize..1000, 1..50)
}

proptest! {
    #[test]
    fn no_task_runs_before_its_predecessors_have_ended_and_each_is_released_once(
        case in cases(), picks in picks(),
    ) {
        let mut model = case.start();
        let mut choose = chooser(&picks);
        let mut released = HashSet::new();
        let mut before: HashSet<u32> = HashSet::new();
        loop {
            let ready: HashSet<u32> = model.ready().iter().copied().collect();
            prop_assert_eq!(ready.len(), model.ready().len(), "no task is ready twice");
            for &task in ready.difference(&before) {
                prop_assert!(released.insert(task), "task {} is released again", task);
                for &predecessor in case.graph.predecessors(task) {
                    prop_assert!(model.progress().outcome(predecessor).is_some());
                }
            }
            if ready.is_empty() {
                break;
            }
            let place = choose(ready.len());
            model.attempt(place);
            before = ready;
        }
    }

    #[test]
    fn tallies_are_what_counting_the_predecessors_gives(case in cases(), picks in picks()) {
        let mut model = case.start();
        model.run(chooser(&picks));
        for task in case.tasks() {
            let mut counted = crate::dag::rule::Tally::new(case.graph.pre_cnt(task));
            for &predecessor in case.graph.predecessors(task) {
                if let Some(outcome) = model.progress().outcome(predecessor) {
                    counted.add(outcome);
                }
            }
            prop_assert_eq!(&counted, model.progress().tally(task));
        }
    }

    #[test]
    fn every_task_ends_or_waits_because_of_one_that_failed(case in cases(), picks in picks()) {
        let states = case.end_states(&picks);
        for task in case.tasks().filter(|&task| states[task as usize] == TaskState::Waiting) {
            let holds_it = |&&from: &&u32| matches!(states[from as usize], TaskState::Waiting | TaskState::Failed);
            let holding = case.graph.predecessors(task).iter().find(holds_it);
            prop_assert!(holding.is_some(), "nothing holds task {}", task);
        }
        let counts: Counts = states.into_iter().collect();
        let failed = counts.failed > 0;
        prop_assert_eq!(counts.state(false), if failed { BatchState::Failed } else { BatchState::Done });
    }

    #[test]
    fn the_order_of_ends_does_not_change_where_a_batch_comes_to(
        case in cases(), some in picks(), others in picks(),
    ) {
        prop_assert_eq!(case.end_states(&some), case.end_states(&others));
    }

    #[test]
    fn a_batch_that_failed_ends_when_what_failed_is_tried_again(case in cases(), picks in picks()) {
        let mut model = case.start();
        let mut choose = chooser(&picks);
        model.run(&mut choose);
        let failed = |model: &Model<'_>| -> Vec<u32> {
            case.tasks().filter(|&task| model.progress().outcome(task) == Some(Outcome::Failed)).collect()
        };
        let mut rounds = 0;
        while !failed(&model).is_empty() {
            failed(&model).into_iter().for_each(|task| model.try_again(task));
            model.run(&mut choose);
            rounds += 1;
            prop_assert!(rounds <= case.graph.len(), "each round runs tasks that never ran before");
        }
        prop_assert_eq!(model.counts().state(false), BatchState::Done);
    }

    #[test]
    fn canceling_what_is_open_ends_a_batch(case in cases(), picks in picks(), steps in 0_usize..30) {
        let mut model = case.start();
        let mut choose = chooser(&picks);
        for _ in 0..steps {
            if model.ready().is_empty() {
                break;
            }
            let place = choose(model.ready().len());
            model.attempt(place);
        }
        let is_open = |task: &u32| !matches!(
            model.progress().outcome(*task), Some(Outcome::Succeeded | Outcome::Skipped)
        );
        let open: Vec<u32> = case.tasks().filter(is_open).collect();
        model.cancel(&open);
        let counts = model.counts();
        prop_assert_eq!(counts.canceled, open.len() as u64);
        prop_assert!(counts.state(false).is_ended() && model.ready().is_empty());
    }
}

#[test]
fn a_false_condition_skips_what_follows_under_each_rule() {
    let keys = ["a", "all", "done", "failed", "none", "one", "then"].map(str::to_owned).to_vec();
    let edges = (1..=5).map(|at| (0, at)).chain([(1, 6)]).collect();
    let graph = Graph::new(keys, edges).unwrap();
    let rules = [
        Rule::AllSuccess,
        Rule::AllSuccess,
        Rule::AllDone,
        Rule::OneFailed,
        Rule::NoneFailed,
        Rule::OneSuccess,
        Rule::AllSuccess,
    ];
    let mut scripts = [Script::SUCCEEDS; 7];
    scripts[0] = Script::DECLINES;
    let mut model = Model::start(&graph, &rules, &scripts);
    assert_eq!(model.ready(), [2, 4]);
    model.run(|_| 0);
    let [skipped, succeeded] = [TaskState::Skipped, TaskState::Succeeded];
    assert_eq!(model.states(), [skipped, skipped, succeeded, skipped, succeeded, skipped, skipped]);
}

#[test]
fn a_failed_task_holds_what_waits_for_success_and_releases_what_waits_for_failure() {
    let keys = ["a", "alarm", "b", "clear"].map(str::to_owned).to_vec();
    let graph = Graph::new(keys, vec![(0, 1), (0, 2), (0, 3)]).unwrap();
    let rules = [Rule::AllSuccess, Rule::OneFailed, Rule::AllSuccess, Rule::AllDone];
    let scripts = [Script::FAILS, Script::SUCCEEDS, Script::SUCCEEDS, Script::SUCCEEDS];
    let mut model = Model::start(&graph, &rules, &scripts);
    model.run(|_| 0);
    let [failed, succeeded] = [TaskState::Failed, TaskState::Succeeded];
    assert_eq!(model.states(), [failed, succeeded, TaskState::Waiting, succeeded]);
    assert_eq!(model.counts().state(false), BatchState::Failed);
    model.try_again(0);
    model.run(|_| 0);
    assert_eq!(model.states(), [succeeded; 4]);
    assert_eq!(model.counts().state(false), BatchState::Done);
}

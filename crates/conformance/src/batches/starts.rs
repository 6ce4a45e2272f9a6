//! Definitions of DAGs and starts of batches.

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::BatchFilter;
use milepost_core::batch::start::NewBatch;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::dag::version::Version;
use serde_json::{Value, json};

use super::{Batches, done, graph, invalid, job};

pub async fn a_start_makes_the_jobs_of_the_first_tasks_and_no_others(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &["a"]), ("c", &[])]), json!({"n": 1})).await;
    batches.assert_states(batch, "a active, b waiting, c active").await;
    assert_eq!(batches.advance().await, 0, "nothing is left to advance");
    let detail = batches.store.batch(batch).await.unwrap().unwrap();
    let input: Value = serde_json::from_str(detail.input.get()).unwrap();
    assert_eq!((input, detail.row.state), (json!({"n": 1}), BatchState::Running));
    assert_eq!((detail.row.number, detail.row.generation, detail.row.counts.total()), (1, 1, 3));
    let claimed = batches.claim(batch).await;
    assert_eq!(claimed.keys().collect::<Vec<_>>(), ["a", "c"]);
    let history = batches.scene.history(claimed["a"].run.job).await;
    assert_eq!(history.iter().map(|entry| entry.verb.as_str()).collect::<Vec<_>>(), ["create", "claim"]);
}

pub async fn a_key_has_one_batch_and_a_start_is_repeated_safely(batches: Batches) {
    batches.define(graph("d", &[("a", &[])])).await;
    batches.define(graph("e", &[("a", &[])])).await;
    let first = NewBatch::new("d", &json!({})).unwrap().key("today");
    let started = batches.store.start_batch(&first).await.unwrap();
    assert_eq!((started.batch, started.duplicate), (first.id, false));
    let second = NewBatch::new("d", &json!({"other": true})).unwrap().key("today");
    for again in [&first, &second] {
        let started = batches.store.start_batch(again).await.unwrap();
        assert_eq!((started.batch, started.duplicate), (first.id, true));
    }
    let unkeyed = NewBatch::new("d", &json!({})).unwrap();
    assert!(!batches.store.start_batch(&unkeyed).await.unwrap().duplicate);
    assert!(batches.store.start_batch(&unkeyed).await.unwrap().duplicate, "repeated with the same id");
    let other = NewBatch::new("e", &json!({})).unwrap().key("today");
    assert!(!batches.store.start_batch(&other).await.unwrap().duplicate, "a key of another DAG");
    assert_eq!((batches.all().await.len(), batches.scene.claim(10).await.len()), (3, 3));
}

pub async fn what_cannot_be_started_says_why(batches: Batches) {
    let start = |batch: NewBatch| {
        let store = batches.store.clone();
        async move { store.start_batch(&batch).await }
    };
    let of = |dag: &str| NewBatch::new(dag, &json!({"n": 0})).unwrap();
    assert_eq!(invalid(start(of("d")).await), InvalidBatch::NoSuchDag { name: "d".to_owned() });
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    let checked = Definition { input_schema: Some(schema), ..graph("d", &[("a", &[])]) };
    batches.define(checked).await;
    let version = Version::of("another");
    let missing = invalid(start(of("d").version(version)).await);
    assert!(matches!(missing, InvalidBatch::NoSuchVersion { .. }), "{missing}");
    let unfit = invalid(start(of("d")).await).to_string();
    assert!(unfit.contains("does not match") && unfit.contains("/n"), "{unfit}");
    assert!(matches!(invalid(start(of("")).await), InvalidBatch::Name(_)));
    assert!(matches!(invalid(start(of("d").key("")).await), InvalidBatch::Name(_)));
    assert!(batches.all().await.is_empty() && batches.scene.claim(1).await.is_empty());
    let fits = NewBatch::new("d", &json!({"n": 1})).unwrap();
    assert!(!start(fits).await.unwrap().duplicate);
}

pub async fn the_same_content_is_the_same_version_and_the_latest_again(batches: Batches) {
    let first = Dag::check(graph("d", &[("a", &[])])).unwrap();
    let second = Dag::check(graph("d", &[("a", &[]), ("b", &["a"])])).unwrap();
    let define = |dag: Dag| {
        let store = batches.store.clone();
        async move { store.define_dag(&dag).await.unwrap() }
    };
    let defined = define(first.clone()).await;
    assert_eq!((defined.known, defined.version.number, defined.version.latest), (false, 1, true));
    let defined = define(second.clone()).await;
    assert_eq!((defined.known, defined.version.number, defined.version.depth), (false, 2, 2));
    let again = define(first.clone()).await;
    assert_eq!((again.known, again.version.number, again.version.version), (true, 1, first.version()));
    let versions = batches.store.dag_versions("d").await.unwrap();
    let told: Vec<_> = versions.iter().map(|version| (version.number, version.latest)).collect();
    assert_eq!(told, [(2, false), (1, true)]);
    assert_eq!(batches.store.dags().await.unwrap()[0].number, 1);
    let (view, content) = batches.store.dag("d", Some(second.version())).await.unwrap();
    assert_eq!((view.tasks, view.edges, &content), (2, 1, second.definition()));
    let (latest, _) = batches.store.dag("d", None).await.unwrap();
    assert_eq!(latest.number, 1);
    assert!(matches!(invalid(batches.store.dag("x", None).await), InvalidBatch::NoSuchDag { .. }));
}

pub async fn a_definition_that_changes_during_a_run_changes_nothing_in_it(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    batches
        .define(
            Definition::new("d")
                .task("a", job())
                .task("b", job().when("false").after(["a"]))
                .task("c", job()),
        )
        .await;
    batches.step(batch, &["a"], done()).await;
    batches.step(batch, &["b"], done()).await;
    batches.assert_states(batch, "a succeeded, b succeeded").await;
    assert_eq!((batches.state(batch).await, batches.view(batch).await.number), (BatchState::Done, 1));
    let next = batches.start("d", json!({})).await;
    assert_eq!(batches.tasks(next).await.len(), 3);
}

pub async fn a_batch_has_the_version_that_it_names(batches: Batches) {
    let old = batches.define(graph("d", &[("a", &[])])).await;
    batches.define(graph("d", &[("a", &[]), ("b", &[])])).await;
    let batch = NewBatch::new("d", &json!({})).unwrap().version(old.version());
    let batch = batches.store.start_batch(&batch).await.unwrap().batch;
    assert_eq!(batches.states(batch).await.into_values().collect::<Vec<_>>(), [TaskState::Active]);
    assert_eq!(batches.view(batch).await.version, old.version());
}

pub async fn batches_are_listed_newest_first_in_pages(batches: Batches) {
    batches.define(graph("d", &[("a", &[])])).await;
    let first = batches.start("d", json!({})).await;
    batches.step(first, &["a"], done()).await;
    let second = batches.start("d", json!({})).await;
    batches.define(graph("e", &[("a", &[])])).await;
    let third = NewBatch::new("e", &json!({})).unwrap().key("k");
    let third = batches.store.start_batch(&third).await.unwrap().batch;
    let list = |filter: BatchFilter| {
        let store = batches.store.clone();
        async move { store.batches(&filter).await.unwrap().iter().map(|batch| batch.id).collect::<Vec<_>>() }
    };
    let all = BatchFilter::default;
    assert_eq!(list(all()).await, [third, second, first]);
    assert_eq!(list(BatchFilter { limit: 1, before: Some(third), ..all() }).await, [second]);
    assert_eq!(list(BatchFilter { dag: Some("d".to_owned()), ..all() }).await, [second, first]);
    assert_eq!(list(BatchFilter { state: Some(BatchState::Done), ..all() }).await, [first]);
    assert_eq!(list(BatchFilter { key: Some("k".to_owned()), ..all() }).await, [third]);
    let mut counts = batches.store.count_batches().await.unwrap();
    counts.sort_by_key(|(_, count)| *count);
    assert_eq!(counts, [(BatchState::Done, 1), (BatchState::Running, 2)]);
}

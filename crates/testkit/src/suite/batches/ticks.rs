//! Schedules that start batches.

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::BatchView;
use milepost_core::batch::start::NewBatch;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use milepost_core::schedule::{
    InvalidSchedule, Made, Misfire, Schedule, ScheduleView, Source, Spec, Ticked, schedule_of_key,
};
use serde_json::{Value, json};

use super::{Batches, graph, job};
use crate::scene::KIND;

/// The interval of schedules here: so long that no tick comes while a test runs.
const PERIOD: SignedDuration = SignedDuration::from_hours(24 * 100);

fn rare(name: &str, input: Value) -> Schedule {
    let every = Spec::every(PERIOD.unsigned_abs()).expect("an interval");
    Schedule::new(name, every, NewBatch::new("d", &input).expect("JSON"))
}

async fn now(batches: &Batches) -> Timestamp {
    batches.store.clock().await.unwrap().now
}

/// Stores a schedule that was due so many periods before its last tick. Answers its ticks since then.
async fn stand(batches: &Batches, schedule: &Schedule, periods: i32) -> Vec<Timestamp> {
    let last_s = now(batches).await.as_second() / PERIOD.as_secs() * PERIOD.as_secs();
    let last = Timestamp::from_second(last_s).unwrap();
    let ticks: Vec<Timestamp> = (0..=periods).rev().map(|ago| last - PERIOD * ago).collect();
    batches.store.write_schedule(schedule, Source::Operator, Some(ticks[0])).await.unwrap();
    ticks
}

async fn view(batches: &Batches) -> ScheduleView {
    batches.store.schedule("s").await.unwrap().expect("there is such a schedule")
}

/// Lets the schedule tick once, if it is due and nobody was faster.
async fn tick(store: &dyn Store) -> Option<Ticked> {
    let view = store.schedule("s").await.unwrap()?;
    let tick = view.tick(store.clock().await.unwrap().now)?;
    store.tick_schedule(&tick).await.unwrap()
}

/// All batches, oldest first.
async fn all(batches: &Batches) -> Vec<BatchView> {
    let mut all = batches.all().await;
    all.reverse();
    all
}

pub async fn a_tick_starts_one_batch_whoever_looks(batches: Batches) {
    batches.define(graph("d", &[("a", &[]), ("b", &["a"])]).task("c", job().when("input.n == 1"))).await;
    let ticks = stand(&batches, &rare("s", json!({ "n": 1 })), 0).await;
    let lookers = (0..6).map(|_| {
        let store = batches.store.clone();
        tokio::spawn(async move { tick(store.as_ref()).await.map_or(0, |ticked| ticked.new_ones()) })
    });
    let made: usize = join_all(lookers).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(made, 1);
    let started = all(&batches).await;
    assert_eq!(started.len(), 1);
    let batch = &started[0];
    assert_eq!((batch.dag.as_str(), batch.nominal_at), ("d", Some(ticks[0])));
    assert_eq!(batch.key.as_deref(), Some(format!("schedule/s/{}", ticks[0]).as_str()));
    assert_eq!(batch.key.as_deref().and_then(schedule_of_key), Some("s"));
    batches.advance().await;
    batches.assert_states(batch.id, "a active, b waiting, c active").await;
    let after = view(&batches).await;
    assert_eq!((after.last_at, after.next_at), (Some(ticks[0]), Some(ticks[0] + PERIOD)));
    assert_eq!((after.fired, after.dropped, after.refused), (1, 0, None));

    // A schedule that is made anew and ticks again finds the batch of its tick.
    batches.store.remove_schedule("s", Source::Operator).await.unwrap();
    stand(&batches, &rare("s", json!({ "n": 1 })), 0).await;
    let again = tick(batches.store.as_ref()).await.unwrap();
    assert_eq!(again.new_ones(), 0);
    assert!(matches!(again.made[..], [Made::Batch(known)] if known.duplicate && known.batch == batch.id));
    assert_eq!(all(&batches).await.len(), 1);
}

pub async fn jobs_of_a_tick_know_it(batches: Batches) {
    batches.define(graph("inner", &[("x", &[])])).await;
    let each = Task::each(KIND, "input.list");
    let dag = graph("d", &[("a", &[])]).task("b", job().when("true")).task("l", each);
    batches.define(dag.task("i", Task::batch("inner"))).await;
    let ticks = stand(&batches, &rare("s", json!({ "list": [1] })), 0).await;
    assert_eq!(tick(batches.store.as_ref()).await.unwrap().new_ones(), 1);
    batches.advance().await;
    let claimed = batches.scene.claim(10).await;
    let known: Vec<_> = claimed.iter().map(|job| job.nominal_at).collect();
    assert_eq!(known, [Some(ticks[0]); 4], "plain, worked out, of a list, of an inner batch");
}

pub async fn ticks_that_were_missed_start_their_batches_in_order(batches: Batches) {
    batches.define(graph("d", &[("a", &[])])).await;
    let ticks = stand(&batches, &rare("s", json!({})).misfire(Misfire::All { max: 3 }), 4).await;
    for fired in 1..=3 {
        assert_eq!(tick(batches.store.as_ref()).await.unwrap().new_ones(), 1, "one batch a step");
        let after = view(&batches).await;
        assert_eq!((after.fired, after.dropped), (fired, 2), "those over the limit are dropped once");
    }
    assert!(tick(batches.store.as_ref()).await.is_none(), "nothing is due any more");
    let started: Vec<_> = all(&batches).await.iter().filter_map(|batch| batch.nominal_at).collect();
    assert_eq!(started, ticks[2..]);
    assert_eq!(view(&batches).await.next_at, Some(ticks[4] + PERIOD));
}

pub async fn a_batch_that_cannot_start_does_not_stop_its_schedule(batches: Batches) {
    let ticks = stand(&batches, &rare("s", json!({ "n": "x" })).misfire(Misfire::All { max: 9 }), 3).await;
    let ticked = tick(batches.store.as_ref()).await.unwrap();
    assert_eq!(ticked.refused, Some(InvalidBatch::NoSuchDag { name: "d".to_owned() }));
    assert_eq!(ticked.made, []);
    let after = view(&batches).await;
    assert_eq!((after.last_at, after.next_at), (None, Some(ticks[1])), "it goes on");
    assert_eq!((after.fired, after.dropped), (0, 1));
    let refused = after.refused.unwrap();
    assert_eq!(refused.at, ticks[0]);
    assert!(refused.why.contains("there is no DAG \"d\""), "{}", refused.why);

    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let dag = Definition { input_schema: Some(schema), ..graph("d", &[("a", &[])]) };
    batches.define(dag).await;
    let ticked = tick(batches.store.as_ref()).await.unwrap();
    assert!(matches!(ticked.refused, Some(InvalidBatch::Input { .. })), "{ticked:?}");
    let refused = view(&batches).await.refused.unwrap();
    assert_eq!(refused.at, ticks[1]);
    assert!(refused.why.contains("integer"), "{}", refused.why);

    let mended = rare("s", json!({ "n": 2 })).misfire(Misfire::All { max: 9 });
    batches.store.put_schedule(&mended, Source::Operator).await.unwrap();
    assert!(view(&batches).await.refused.is_some(), "told until a tick succeeds");
    assert_eq!(tick(batches.store.as_ref()).await.unwrap().new_ones(), 1);
    let after = view(&batches).await;
    assert_eq!((after.refused, after.last_at), (None, Some(ticks[2])));
    assert_eq!((after.fired, after.dropped), (1, 2));
    assert_eq!(all(&batches).await.len(), 1);
}

pub async fn a_schedule_of_batches_comes_back_as_it_was_put(batches: Batches) {
    let schedule = rare("s", json!({ "n": [1, "é"] })).misfire(Misfire::Skip);
    batches.store.put_schedule(&schedule, Source::Config).await.unwrap();
    let kept = serde_json::to_value(&view(&batches).await.schedule).unwrap();
    assert_eq!(kept, serde_json::to_value(&schedule).unwrap());
    assert_eq!(kept["batch"], json!({ "dag": "d", "input": { "n": [1, "é"] } }));
    assert_eq!(kept["job"], Value::Null);
    let mut of_jobs = schedule;
    of_jobs.makes = crate::scene::Scene::job().into();
    batches.store.put_schedule(&of_jobs, Source::Config).await.unwrap();
    let kept = serde_json::to_value(&view(&batches).await.schedule).unwrap();
    assert_eq!(kept, serde_json::to_value(&of_jobs).unwrap(), "nothing of the DAG is left");

    let every = Spec::every(PERIOD.unsigned_abs()).unwrap();
    let nameless = Schedule::new("s", every, NewBatch::new("", &json!({})).unwrap());
    let refused = batches.store.put_schedule(&nameless, Source::Operator).await;
    assert!(
        matches!(&refused, Err(StoreError::InvalidSchedule { invalid: InvalidSchedule::Batch(_), .. })),
        "{refused:?}"
    );
}

pub async fn run_now_starts_a_batch_beside_the_ticks(batches: Batches) {
    batches.define(graph("d", &[("a", &[])])).await;
    batches.store.put_schedule(&rare("s", json!({})), Source::Operator).await.unwrap();
    batches.store.pause_schedule("s").await.unwrap();
    let before = view(&batches).await;
    for _ in 0..2 {
        let made = batches.store.run_schedule_now("s", None).await.unwrap();
        let Made::Batch(started) = made else { panic!("not a batch: {made:?}") };
        assert!(!started.duplicate);
        let batch = batches.view(started.batch).await;
        assert_eq!(batch.key.as_deref().and_then(schedule_of_key), Some("s"));
        assert!(batch.nominal_at.is_some(), "the time it was asked for");
    }
    let after = view(&batches).await;
    assert_eq!((after.next_at, after.fired), (before.next_at, 0));
    assert_eq!(all(&batches).await.len(), 2);
}

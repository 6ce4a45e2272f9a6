//! Schedules that start batches.

use futures::future::join_all;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::BatchView;
use milepost_core::batch::start::NewBatch;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::TaskState;
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use milepost_core::precedence::Over;
use milepost_core::schedule::{
    BatchTemplate, InvalidSchedule, Made, Makes, Misfire, Schedule, ScheduleView, Source, Spec, Ticked,
    schedule_of_key,
};
use serde_json::{Value, json};

use super::{Batches, graph, job};
use milepost_testkit::scene::KIND;

/// The interval of schedules in these tests: so long that no tick occurs during a test.
const PERIOD: SignedDuration = SignedDuration::from_hours(24 * 100);

fn rare(name: &str, input: Value) -> Schedule {
    let every = Spec::every(PERIOD.unsigned_abs()).expect("invalid interval");
    Schedule::new(name, every, NewBatch::new("d", &input).expect("JSON"))
}

/// Returns a schedule in a time zone whose ticks are far apart.
fn yearly(spec: &str, zone: &str, input: Value) -> Schedule {
    Schedule::new("s", Spec::cron(spec, zone).expect("a schedule"), NewBatch::new("d", &input).expect("JSON"))
}

/// Executes the last tick of a schedule before now. Returns that tick.
async fn tick_last(batches: &Batches, schedule: &Schedule) -> Timestamp {
    let now = now(batches).await;
    let year_ago = now - SignedDuration::from_hours(24 * 366);
    let last =
        std::iter::successors(schedule.spec.next_after(year_ago), |tick| schedule.spec.next_after(*tick))
            .take_while(|tick| *tick <= now)
            .last()
            .expect("a tick within a year");
    batches.store.write_schedule(schedule, Source::Operator, Some(last), Over::Any).await.unwrap();
    assert_eq!(tick(batches.store.as_ref()).await.unwrap().new_ones(), 1);
    batches.advance().await;
    last
}

/// Returns the payloads of all jobs that can be claimed, in order.
async fn payloads(batches: &Batches) -> Vec<Value> {
    let claimed = batches.scene.claim(100).await;
    let mut payloads: Vec<String> = claimed.into_iter().map(|job| job.payload).collect();
    payloads.sort();
    payloads.iter().map(|payload| serde_json::from_str(payload).expect("JSON")).collect()
}

async fn now(batches: &Batches) -> Timestamp {
    batches.store.clock().await.unwrap().now
}

/// Stores a schedule that has been due for this number of periods before its last tick. Returns its ticks since then.
async fn stand(batches: &Batches, schedule: &Schedule, periods: i32) -> Vec<Timestamp> {
    let last_s = now(batches).await.as_second() / PERIOD.as_secs() * PERIOD.as_secs();
    let last = Timestamp::from_second(last_s).unwrap();
    let ticks: Vec<Timestamp> = (0..=periods).rev().map(|ago| last - PERIOD * ago).collect();
    batches.store.write_schedule(schedule, Source::Operator, Some(ticks[0]), Over::Any).await.unwrap();
    ticks
}

async fn view(batches: &Batches) -> ScheduleView {
    batches.store.schedule("s").await.unwrap().expect("the schedule does not exist")
}

/// Executes a tick of the schedule, if it is due and no other caller was faster.
async fn tick(store: &dyn Store) -> Option<Ticked> {
    let view = store.schedule("s").await.unwrap()?;
    let tick = view.tick(store.clock().await.unwrap().now)?;
    store.tick_schedule(&tick).await.unwrap()
}

/// Returns all batches, oldest first.
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

    // A schedule that is removed, created again and ticks again finds the existing batch of its tick.
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
    assert_eq!(
        known,
        [Some(ticks[0]); 4],
        "a plain task, a task with expressions, an item of a list, a task of an inner batch"
    );
}

pub async fn ticks_that_were_missed_start_their_batches_in_order(batches: Batches) {
    batches.define(graph("d", &[("a", &[])])).await;
    let ticks = stand(&batches, &rare("s", json!({})).misfire(Misfire::All { max: 3 }), 4).await;
    for fired in 1..=3 {
        assert_eq!(tick(batches.store.as_ref()).await.unwrap().new_ones(), 1, "one batch per step");
        let after = view(&batches).await;
        assert_eq!((after.fired, after.dropped), (fired, 2), "the ticks over the limit are dropped once");
    }
    assert!(tick(batches.store.as_ref()).await.is_none(), "no tick is due any more");
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
    assert_eq!((after.last_at, after.next_at), (None, Some(ticks[1])), "the schedule continues");
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
    assert!(view(&batches).await.refused.is_some(), "the error is shown until a tick succeeds");
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
    of_jobs.makes = milepost_testkit::scene::Scene::job().into();
    batches.store.put_schedule(&of_jobs, Source::Config).await.unwrap();
    let kept = serde_json::to_value(&view(&batches).await.schedule).unwrap();
    assert_eq!(kept, serde_json::to_value(&of_jobs).unwrap(), "the schedule no longer contains the DAG");

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
        assert!(batch.nominal_at.is_some(), "the nominal time is the time of the request");
    }
    let after = view(&batches).await;
    assert_eq!((after.next_at, after.fired), (before.next_at, 0));
    assert_eq!(all(&batches).await.len(), 2);
}

/// Defines a DAG whose tasks of all types read the tick.
async fn define_readers(batches: &Batches) {
    let inner = Definition::new("inner").task("x", job().payload(json!(["inner", "${ tick.date }"])));
    batches.define(inner).await;
    let each = Task::each(KIND, "[tick.previous_date, tick.date]");
    let dag = Definition::new("d")
        .task("all", job().payload(json!(["all", "${ tick }"])))
        .task("each", each.payload(json!(["each", "${ item } of ${ tick.date }"])))
        .task("inner", Task::batch("inner"))
        .task("not", job().when("tick.zone == 'UTC'"));
    batches.define(dag).await;
}

pub async fn expressions_know_the_tick_and_its_date(batches: Batches) {
    define_readers(&batches).await;
    // Late in the evening in New York, the date in UTC is the next day.
    let schedule = yearly("30 23 31 10 *", "America/New_York", json!({}));
    let last = tick_last(&batches, &schedule).await;
    let year = last.to_zoned(TimeZone::UTC).year();
    assert_eq!(last.to_string(), format!("{year}-11-01T03:30:00Z"));
    let (date, before) = (format!("{year}-10-31"), format!("{year}-10-30"));
    let tick = json!({
        "time": last.to_string(), "date": date, "previous_date": before, "zone": "America/New_York"
    });
    let expected = [
        json!(["all", tick]),
        json!(["each", format!("{before} of {date}")]),
        json!(["each", format!("{date} of {date}")]),
        json!(["inner", date]),
    ];
    assert_eq!(payloads(&batches).await, expected);
    let started = all(&batches).await;
    assert_eq!(started.len(), 3, "the batch, its list and its inner batch");
    for batch in &started {
        assert_eq!((batch.nominal_at, batch.nominal_zone.as_deref()), (Some(last), Some("America/New_York")));
    }
    assert_eq!(batches.task(started[0].id, "not").await.state, TaskState::Skipped);
}

pub async fn a_batch_without_a_tick_has_none_in_expressions(batches: Batches) {
    let dag = Definition::new("d")
        .task("if", job().when("has(tick.date)"))
        .task("reads", job().payload(json!("${ tick.date }")))
        .task("asks", job().payload(json!("${ has(tick.date) ? tick.date : input.day }")));
    let batch = batches.run(dag, json!({ "day": "2026-11-22" })).await;
    batches.assert_states(batch, "asks active, if skipped, reads failed").await;
    let error = batches.task(batch, "reads").await.error.expect("the task has no error");
    assert!(error.starts_with("expression: "), "{error}");
    assert_eq!(payloads(&batches).await, [json!("2026-11-22")]);
    let view = batches.view(batch).await;
    assert_eq!((view.nominal_at, view.nominal_zone), (None, None));
}

pub async fn a_batch_that_an_operator_starts_can_have_a_tick(batches: Batches) {
    define_readers(&batches).await;
    let at: Timestamp = "2026-10-31T23:30:00Z".parse().unwrap();
    let of = |zone: &str| NewBatch::new("d", &json!({})).unwrap().nominal_at(at, zone);
    let started = batches.store.start_batch(&of("Europe/Berlin")).await.unwrap();
    batches.advance().await;
    let view = batches.view(started.batch).await;
    assert_eq!((view.nominal_at, view.nominal_zone.as_deref()), (Some(at), Some("Europe/Berlin")));
    let seen = payloads(&batches).await;
    assert_eq!(seen[0][1]["date"], "2026-11-01");
    assert_eq!(seen[3], json!(["inner", "2026-11-01"]));
    let refused = batches.store.start_batch(&of("Europe/Berlim")).await;
    let refused = super::invalid(refused);
    assert!(matches!(&refused, InvalidBatch::NominalTime { .. }), "{refused:?}");
    assert!(refused.to_string().contains("Europe/Berlin"), "{refused}");
}

/// A settlement of every day, with two ticks.
pub async fn a_daily_settlement_knows_its_day(batches: Batches) {
    let required =
        json!({ "type": "object", "required": ["day"], "properties": { "day": { "type": "string" } } });
    let split = job().payload(json!({ "day": "${ input.day }" }));
    let each = Task::each(KIND, "tasks.split.output.countries").after(["split"]);
    let dag = Definition { input_schema: Some(required), ..Definition::new("d") }
        .task("split", split)
        .task("count", each.payload(json!({ "country": "${ item }", "day": "${ tick.date }" })));
    batches.define(dag).await;
    let spec = Spec::cron("30 0 * * *", "Europe/Berlin").unwrap();
    let template = NewBatch::new("d", &json!({ "day": "${ tick.date }" })).unwrap();
    let daily = Schedule::new("s", spec, template).misfire(Misfire::All { max: 3 });
    let now = now(&batches).await;
    let first = daily.spec.next_after(now - SignedDuration::from_hours(51)).unwrap();
    let second = daily.spec.next_after(first).unwrap();
    batches.store.write_schedule(&daily, Source::Operator, Some(first), Over::Any).await.unwrap();
    let date = |tick: Timestamp| tick.to_zoned(TimeZone::get("Europe/Berlin").unwrap()).date().to_string();
    assert_ne!(date(first), date(second));
    for tick_at in [first, second] {
        assert_eq!(tick(batches.store.as_ref()).await.unwrap().new_ones(), 1);
        batches.advance().await;
        let claimed = batches.scene.claim(10).await;
        assert_eq!(claimed.len(), 1, "split");
        let payload: Value = serde_json::from_str(&claimed[0].payload).unwrap();
        assert_eq!(payload, json!({ "day": date(tick_at) }));
        batches.finish(&claimed[0], super::gives(&json!({ "countries": ["DE"] }))).await;
        batches.advance().await;
        assert_eq!(payloads(&batches).await, [json!({ "country": "DE", "day": date(tick_at) })]);
        let started = all(&batches).await;
        let root = started.iter().rfind(|batch| batch.parent.is_none()).unwrap();
        let detail = batches.store.batch(root.id).await.unwrap().unwrap();
        let input: Value = serde_json::from_str(detail.input.get()).unwrap();
        assert_eq!(input, json!({ "day": date(tick_at) }));
    }
}

pub async fn an_input_of_a_schedule_keeps_the_digits_of_its_numbers(batches: Batches) {
    batches.define(Definition::new("d").task("a", job().payload(json!("${ input.n }")))).await;
    let input = r#"{"n": 100000000000000000001, "day": "${ tick.zone }"}"#.to_owned();
    let input = serde_json::value::RawValue::from_string(input).unwrap();
    let template = BatchTemplate { dag: "d".to_owned(), input };
    let schedule = Schedule { makes: Makes::Batch(template), ..rare("s", json!({})) };
    stand(&batches, &schedule, 0).await;
    tick(batches.store.as_ref()).await.unwrap();
    batches.advance().await;
    let claimed = batches.scene.claim(10).await;
    assert_eq!(claimed.iter().map(|job| job.payload.as_str()).collect::<Vec<_>>(), ["100000000000000000001"]);
}

pub async fn an_input_of_a_schedule_reads_its_tick_and_nothing_else(batches: Batches) {
    batches.define(graph("d", &[("a", &[])])).await;
    for bad in
        ["${ input.day }", "${ tasks.a.output }", "${ item }", "${ tick.nothing }", "${ tick. }", "${ tick"]
    {
        let refused = batches.store.put_schedule(&rare("s", json!({ "day": bad })), Source::Operator).await;
        let Err(StoreError::InvalidSchedule { invalid: InvalidSchedule::Batch(invalid), .. }) = &refused
        else {
            panic!("{bad}: {refused:?}");
        };
        assert!(matches!(invalid, InvalidBatch::Input { .. }), "{invalid}");
    }
    // An expression that has a value when the schedule is stored, but none at the tick.
    let sometimes = json!({ "day": "${ tick.date == '1970-01-01' ? tick.date : input.day }" });
    let refused = batches.store.put_schedule(&rare("s", sometimes), Source::Operator).await;
    assert!(refused.is_err(), "{refused:?}");
    let sometimes = json!({ "n": "${ tick.date == '1970-01-01' ? 1 : 1 / 0 }", "text": "$${ tick }" });
    let schedule = rare("s", sometimes.clone());
    let ticks = stand(&batches, &schedule, 0).await;
    let ticked = tick(batches.store.as_ref()).await.unwrap();
    assert!(matches!(&ticked.refused, Some(InvalidBatch::Input { .. })), "{ticked:?}");
    let after = view(&batches).await;
    assert_eq!((after.fired, after.dropped, after.last_at), (0, 1, None));
    assert_eq!(after.refused.map(|refused| refused.at), Some(ticks[0]));
    let kept = serde_json::to_value(&after.schedule).unwrap();
    assert_eq!(kept["batch"]["input"], sometimes, "the schedule is unchanged");
}

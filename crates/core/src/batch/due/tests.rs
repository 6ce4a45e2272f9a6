use serde_json::json;

use super::*;

fn due(spec: Task) -> DueTask {
    let read = |key: &str, state, output: Value| ReadTask {
        key: key.to_owned(),
        state,
        output: Arc::new(output.into()),
    };
    DueTask {
        batch: BatchId::new(),
        task: 0,
        spec: Arc::new(spec),
        input: Arc::new(json!({"day": "2026-11-01", "to": ["a", "b"]}).into()),
        nominal: None,
        predecessors: Arc::new([
            read("count", Outcome::Succeeded, json!({"rows": 3})),
            read("load", Outcome::Skipped, Value::Null),
        ]),
        item: None,
        schema: None,
    }
}

#[test]
fn a_condition_decides_before_the_payload_is_made() {
    let broken = Task::job("mail").payload(json!("${ input.nothing }"));
    assert_eq!(
        due(broken.clone().when("tasks.count.output.rows > 5")).becomes(Effort::Full).unwrap(),
        Becomes::Skipped
    );
    let Becomes::Failed(failure) =
        due(broken.when("tasks.count.output.rows == 3")).becomes(Effort::Full).unwrap()
    else {
        panic!("the payload has no value");
    };
    assert_eq!(failure.code, EXPRESSION);
    assert!(failure.message.starts_with("payload: "), "{}", failure.message);
}

#[test]
fn a_payload_sees_what_predecessors_left() {
    let spec = Task::job("mail").payload(json!({
        "day": "${ input.day }",
        "text": "${ tasks.count.output.rows } rows, load was ${ tasks.load.state }",
    }));
    let expected = json!({"day": "2026-11-01", "text": "3 rows, load was skipped"});
    assert_eq!(due(spec).becomes(Effort::Full).unwrap(), Becomes::Job(expected.into()));
}

#[test]
fn an_item_is_as_small_as_what_its_payload_reads() {
    let large: Value = (0..100_000).collect::<Vec<u32>>().into();
    let item = |payload: &str| DueTask {
        input: Arc::new(json!({ "items": large }).into()),
        predecessors: Arc::new([ReadTask {
            key: "a".to_owned(),
            state: Outcome::Succeeded,
            output: Arc::new(large.clone().into()),
        }]),
        item: Some((json!(7).into(), 0)),
        ..due(Task::each("mail", "input.items + tasks.a.output").payload(json!({ "n": payload })))
    };
    assert_eq!(item("${ item }").becomes(Effort::Little), Some(Becomes::Job(json!({"n": 7}).into())));
    assert_eq!(item("${ size(input.items) }").becomes(Effort::Little), None);
    assert_eq!(item("${ size(tasks.a.output) }").becomes(Effort::Little), None);
}

#[test]
fn expressions_see_the_tick_of_the_batch() {
    let at = "2026-11-01T23:30:00Z".parse().unwrap();
    let nominal = NominalTime { at, zone: "Europe/Berlin".to_owned() };
    let with_tick = |spec| DueTask { nominal: Some(nominal.clone()), ..due(spec) };
    let dates = Task::job("mail").payload(json!("${ tick.previous_date } to ${ tick.date }"));
    assert_eq!(
        with_tick(dates.clone()).becomes(Effort::Full).unwrap(),
        Becomes::Job(json!("2026-11-01 to 2026-11-02").into())
    );
    let Becomes::Failed(failure) = due(dates.clone()).becomes(Effort::Full).unwrap() else {
        panic!("the batch has no tick")
    };
    assert_eq!(failure.code, EXPRESSION);
    let if_any = |when: &str| dates.clone().payload(json!(1)).when(when);
    for when in ["size(tick) == 0", "!has(tick.date)"] {
        assert_eq!(due(if_any(when)).becomes(Effort::Full).unwrap(), Becomes::Job(json!(1).into()), "{when}");
        assert_eq!(with_tick(if_any(when)).becomes(Effort::Full).unwrap(), Becomes::Skipped, "{when}");
    }
    let either = json!("${ has(tick.date) ? tick.date : input.day }");
    assert_eq!(
        due(dates.clone().payload(either)).becomes(Effort::Full).unwrap(),
        Becomes::Job(json!("2026-11-01").into())
    );
}

#[test]
fn a_list_becomes_items_and_each_item_a_job() {
    let spec = Task::each("mail", "input.to").payload(json!({"to": "${ item }", "n": "${ index }"}));
    assert_eq!(
        due(spec.clone()).becomes(Effort::Full).unwrap(),
        Becomes::Items(vec![json!("a").into(), json!("b").into()])
    );
    let item = DueTask { item: Some((json!("b").into(), 1)), ..due(spec) };
    assert_eq!(item.becomes(Effort::Full).unwrap(), Becomes::Job(json!({"to": "b", "n": 1}).into()));
}

#[test]
fn an_expression_without_a_value_says_which_one() {
    let Becomes::Failed(failure) =
        due(Task::job("mail").when("input.day > 3")).becomes(Effort::Full).unwrap()
    else {
        panic!("a string cannot be compared with a number");
    };
    assert!(failure.message.starts_with("when = \"input.day > 3\": "), "{}", failure.message);
    for (list, why) in [
        ("[[[input]], 1]", "item 0 is nested 121 levels deep"),
        (r#"[1, "a\u0000b"]"#, "item 1 holds a NUL character"),
        (r#"[{"a\u0000b": 1}]"#, "item 0 holds a NUL character"),
        (r#"[{"$serde_json::private::RawValue": "{}"}]"#, "item 0 has a member"),
    ] {
        let mut task = due(Task::each("mail", list));
        task.input = Arc::new((0..119).fold(json!(1), |value, _| json!([value])).into());
        let Becomes::Failed(failure) = task.becomes(Effort::Full).unwrap() else {
            panic!("no store keeps an item of {list}");
        };
        assert!(failure.message.contains(why), "{list}: {}", failure.message);
    }
    let Becomes::Failed(failure) = due(Task::each("mail", "input.day")).becomes(Effort::Full).unwrap() else {
        panic!("a string is not a list");
    };
    assert!(failure.message.contains("a list"), "{}", failure.message);
}

#[test]
fn bulk_jobs_and_batches_get_their_payload_too() {
    let payload = json!({"day": "${ input.day }"});
    let expected = json!({"day": "2026-11-01"});
    assert_eq!(
        due(Task::bulk("push").payload(payload.clone())).becomes(Effort::Full).unwrap(),
        Becomes::Bulk(expected.clone().into())
    );
    assert_eq!(
        due(Task::batch("etl").payload(payload)).becomes(Effort::Full).unwrap(),
        Becomes::Batch(expected.into())
    );
}

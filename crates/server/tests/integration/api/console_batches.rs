//! Tests of batch pages of the console.

use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_testkit::wait;
use reqwest::StatusCode;
use serde_json::json;

use crate::api::console::start;
use crate::api::place::Place;

pub(crate) async fn a_batch_is_stopped_goes_on_and_runs_again(place: Place) {
    let store = place.store.as_ref();
    let batch = start(store).await;
    let page = format!("/batches/{batch}");
    let drawn = async || {
        let html = place.page(&page).await.1;
        html.contains("<svg class=\"dag\"") && html.contains("g-active")
    };
    wait::until("the graph of its tasks is shown", drawn).await;
    let generation = store.batch(batch).await.unwrap().unwrap().row.generation.to_string();
    let operate = |operation: &'static str| {
        let fields =
            [("operation", operation), ("generation", &*generation), ("reason", "night"), ("back", &*page)];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let place = &place;
        async move {
            let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
            place.form(&format!("/batches/{batch}/operate"), &fields).await.1
        }
    };
    let said = operate("abort").await;
    assert!(said.starts_with("done"), "{said}");
    assert!(store.batch(batch).await.unwrap().unwrap().row.stopped);
    let preview = place.page(&format!("{page}/rerun?what=failed")).await.1;
    assert!(preview.contains("Rerun 1 task") && preview.contains("aborted"), "{preview}");
    let again = [("what", "failed"), ("generation", &*generation), ("reason", "again"), ("back", &*page)];
    let said = place.form(&format!("{page}/rerun"), &again).await.1;
    assert!(said.contains("Rerun 1: 1 task reset"), "{said}");
    assert!(operate("resume").await.starts_with("refused"), "the page is older than the rerun");
}

pub(crate) async fn a_long_history_begins_with_what_happened_last(place: Place) {
    let store = place.store.as_ref();
    let batch = start(store).await;
    for n in 0..51 {
        for operation in ["abort", "resume"] {
            let body = json!({"operation": operation, "reason": format!("{operation} no. {n}.")});
            let done = place.post(&format!("/v1/batches/{batch}/operate"), &body).await;
            assert_eq!(done.status, StatusCode::OK, "{done:?}");
        }
    }
    let html = place.page(&format!("/batches/{batch}")).await.1;
    assert!(html.contains("resume no. 50.") && !html.contains("abort no. 0."), "{html}");
    assert!(html.contains("Only the newest are shown"), "{html}");
}

pub(crate) async fn a_preview_of_a_rerun_of_many_tasks_is_no_longer_than_people_read(place: Place) {
    let store = place.store.as_ref();
    let define = async |name: &str, tasks: std::ops::Range<u32>| {
        let tasks = tasks.map(|n| (format!("{name}{n:03}"), Task::job("mail")));
        let definition = tasks.fold(Definition::new("many"), |all, (key, task)| all.task(&key, task));
        store.define_dag(&Dag::check(definition).unwrap()).await.unwrap();
    };
    define("t", 0..300).await;
    let many = place.post("/v1/batches", &json!({"dag": "many"})).await.body;
    let path = format!("/batches/{}", many["id"].as_str().unwrap());
    // The first transaction is short; the remaining jobs are created in further ones.
    while store.advance_batches().await.unwrap() > 0 {}
    let abort = place.post(&format!("/v1{path}/operate"), &json!({"operation": "abort"})).await;
    assert_eq!(abort.status, StatusCode::OK, "{abort:?}");
    let told =
        async || place.page(&path).await.1.contains("<h2>Tasks that need attention, the first 100</h2>");
    wait::until("its tasks are listed", told).await;
    let preview = place.page(&format!("{path}/rerun?what=failed")).await.1;
    assert!(preview.contains("Rerun 300 tasks"), "{preview}");
    assert!(preview.contains("t199 and 100 more") && !preview.contains("t200"), "{preview}");
    define("u", 0..250).await;
    let preview = place.page(&format!("{path}/rerun?what=failed&version=latest")).await.1;
    assert!(preview.contains("u199 and 50 more") && !preview.contains("u200"), "{preview}");
    assert!(preview.contains("t199 and 100 more") && !preview.contains("t200"), "{preview}");
}

pub(crate) async fn a_batch_is_started_in_the_console_with_its_input(place: Place) {
    let schema = json!({"type": "object", "required": ["day"]});
    let dag = json!({"name": "settlement", "input_schema": schema, "tasks": {"a": {"kind": "k"}}});
    let defined = place.post("/v1/dags", &dag).await;
    assert!(defined.status.is_success(), "{defined:?}");
    let html = place.page("/batches").await.1;
    assert!(html.contains(r#"action="/batches/start""#), "{html}");
    let start = async |input: &str| {
        let fields = [
            ("dag", "settlement"),
            ("input", input),
            ("key", "monday"),
            ("reason", "late"),
            ("back", "/batches"),
        ];
        place.form("/batches/start", &fields).await
    };
    for (input, fault) in [("{", "no JSON"), ("{}", "day")] {
        let (back, said) = start(input).await;
        assert!(back == "/batches" && said.contains(fault), "{said}");
    }
    let (page, said) = start(r#"{"day": "2026-11-28"}"#).await;
    let batch = page.strip_prefix("/batches/").expect(&said);
    let view = place.get(&format!("/v1/batches/{batch}")).await.body;
    assert_eq!((&view["key"], &view["input"]), (&json!("monday"), &json!({"day": "2026-11-28"})));
    assert_eq!(start(r#"{"day": "2026-11-29"}"#).await.0, page, "its key exists");
}

//! Tests of batch pages of the console.

use std::time::Duration;

use milepost_core::batch::listing::TaskFilter;
use milepost_core::batch::start::NewBatch;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::TaskState;
use milepost_core::dag::wait::{OnTimeout, Wait};
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

pub(crate) async fn a_wait_is_decided_on_the_page_of_its_batch(place: Place) {
    let schema = json!({"properties": {"amount": {"type": "integer", "title": "Limit in francs"}}, "required": ["amount"]});
    let wait = Wait::signal("decided").choices(["approve", "reject"]).schema(schema);
    let wait = wait.timeout(Duration::from_hours(72), OnTimeout::Skip);
    let tasks = Definition::new("loan").task("ask", Task::wait(wait));
    place.store.define_dag(&Dag::check(tasks).unwrap()).await.unwrap();
    let batch = place.store.start_batch(&NewBatch::new("loan", &json!({})).unwrap()).await.unwrap().batch;
    while place.store.advance_batches().await.unwrap() > 0 {}
    let page = format!("/batches/{batch}");
    let shown = async || {
        let html = place.page(&page).await.1;
        html.contains("<h2>Waits</h2>") && html.contains("the signal decided")
    };
    wait::until("the wait is shown", shown).await;
    let html = place.page(&page).await.1;
    for part in ["Approve…", "Reject…", "Limit in francs", "then the task is skipped", "name=\"reason\""]
    {
        assert!(html.contains(part), "{part} is missing: {html}");
    }
    let fields = [
        ("operation", "signal"),
        ("name", "decided"),
        ("text:choice", "approve"),
        ("number:amount", "1200"),
        ("form", "0199c6f07a1e7c3b9d430d5f5e0a1b2c"),
        ("reason", "checked"),
        ("back", &*page),
    ];
    let url = format!("{page}/signal");
    let unfit = fields.map(|(name, value)| (name, if name == "text:choice" { "maybe" } else { value }));
    let said = place.form(&url, &unfit).await.1;
    assert!(said.starts_with("refused") && said.contains("approve, reject"), "{said}");
    let said = place.form(&url, &fields).await.1;
    assert!(said.starts_with("done"), "{said}");
    let said = place.form(&url, &fields).await.1;
    assert!(said.contains("submitted before"), "{said}");
    while place.store.advance_batches().await.unwrap() > 0 {}
    let task = place.store.batch_tasks(batch, &TaskFilter::default()).await.unwrap().remove(0);
    assert_eq!(task.state, TaskState::Succeeded);
    let audit = place.get(&format!("/v1/audit?subject={batch}")).await.body;
    assert_eq!(
        (&audit["items"][0]["what"], &audit["items"][0]["why"]),
        (&json!("batch.signal"), &json!("checked"))
    );
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
    let listed =
        async || place.page(&path).await.1.contains("<h2>Tasks that need attention, the first 100</h2>");
    wait::until("its tasks are listed", listed).await;
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
    assert!(html.contains(r#"href="/dags/settlement#act-start""#), "{html}");
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

pub(crate) async fn the_page_of_a_dag_has_a_field_for_each_property_of_its_input(place: Place) {
    let properties = json!({
        "day": {"type": "string", "format": "date", "title": "Day"}, "shops": {"type": "integer"}, "dry": {"type": "boolean"},
        "mode": {"enum": ["full", "part"], "default": "full"}, "items": {"type": "array"},
    });
    let schema = json!({"type": "object", "required": ["day"], "properties": properties});
    let dag = json!({"name": "settlement", "input_schema": schema, "tasks": {"a": {"kind": "k"}}});
    assert!(place.post("/v1/dags", &dag).await.status.is_success());
    let html = place.page("/dags/settlement").await.1;
    for field in [
        r#"<input type="date" name="text:day" value="" placeholder="date" required"#,
        r#"<input inputmode="decimal" name="number:shops""#,
        r#"<select name="json:dry"><option value="">not set</option><option value="true">true</option>"#,
        r#"<option value="&#34;full&#34;" selected>full</option>"#,
        r#"<textarea name="json:items""#,
        r#"<textarea name="input""#,
    ] {
        assert!(html.contains(field), "{field} {html}");
    }
    let start = async |others: &str, shops: &str| {
        let fields = [
            ("dag", "settlement"),
            ("text:day", "2026-11-28"),
            ("number:shops", shops),
            ("json:dry", ""),
            ("json:mode", "\"part\""),
            ("input", others),
            ("reason", "late"),
            ("back", "/dags/settlement"),
        ];
        place.form("/batches/start", &fields).await
    };
    for (others, shops, fault) in [
        ("", "many", "shops is"),
        ("[]", "1", "a JSON object"),
        (r#"{"day": 1}"#, "1", "given twice"),
        ("", "1.5", "shops"),
    ] {
        let (back, said) = start(others, shops).await;
        assert!(back == "/dags/settlement" && said.contains(fault), "{said}");
    }
    let (page, said) = start(r#"{"note": [1]}"#, "100000000000000000001").await;
    let batch = page.strip_prefix("/batches/").expect(&said);
    let stored = place.page(&format!("/v1/batches/{batch}")).await.1;
    let input = r#""input":{"day":"2026-11-28","mode":"part","note":[1],"shops":100000000000000000001}"#;
    assert!(stored.replace(": ", ":").replace(", ", ",").contains(input), "{stored}");
}

pub(crate) async fn the_page_of_a_dag_shows_its_tasks_versions_and_batches(place: Place) {
    let define = async |tasks: serde_json::Value| {
        let dag = json!({"name": "nightly <b>", "tasks": tasks});
        assert!(place.post("/v1/dags", &dag).await.status.is_success());
    };
    define(
        json!({"load": {"kind": "load"}, "old": {"kind": "k"}, "mail": {"kind": "mail", "after": ["load"]}}),
    )
    .await;
    define(json!({"load": {"kind": "load", "queue": "slow"}, "mail": {"kind": "mail", "after": ["load"]}, "sum": {"dag": "sums", "when": "size(tasks) > 0"}}))
        .await;
    let started = place.post("/v1/batches", &json!({"dag": "nightly <b>", "key": "monday"})).await.body;
    let html = place.page("/dags/nightly%20%3Cb%3E").await.1;
    for part in [
        "<svg class=\"dag\"",
        "version 2, the latest: 3 tasks, 1 edge",
        "<dt>added</dt><dd>sum</dd><dt>removed</dt><dd>old</dd>",
        "<dt>changed</dt><dd>load <span class=\"sub\">queue</span></dd>",
        "when size(tasks) &#62; 0",
        &format!("<a href=\"/batches/{}\">monday</a>", started["id"].as_str().unwrap()),
    ] {
        assert!(html.contains(part), "{part} {html}");
    }
    assert!(!html.contains("nightly <b>"), "names are escaped");
    let first = place.page("/dags/nightly%20%3Cb%3E?version=1&task=old").await.1;
    assert!(first.contains("This is an older version") && !first.contains("Changes since"), "{first}");
    assert!(first.contains("All tasks") && !first.contains("<td class=\"wide\">mail</td>"), "{first}");
    assert_eq!(place.page("/dags/none").await.0, StatusCode::NOT_FOUND);
}

//! Tests of DAGs and batches: definition, start, reads and operations.

use milepost_testkit::wait;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::{Answer, Place};

/// Returns the DAG a → b → c, whose input contains a day.
fn definition() -> Value {
    json!({
        "name": "etl", "description": "each day",
        "input_schema": {"type": "object", "required": ["day"]},
        "tasks": {
            "a": {"kind": "k", "payload": {"day": "${input.day}"}, "timeout": "2m", "priority": 1},
            "b": {"kind": "k", "after": ["a"]},
            "c": {"kind": "k", "after": ["b"], "rule": "all_done"},
        },
    })
}

async fn define(place: &Place, definition: Value) -> Answer {
    place.ask(Method::POST, "/v1/dags", definition).await
}

/// Starts a batch and returns its path.
async fn started(place: &Place) -> String {
    assert_eq!(define(place, definition()).await.status, StatusCode::CREATED);
    let body = json!({"dag": "etl", "key": "day-1", "input": {"day": "2026-11-01"}});
    let answer = place.ask(Method::POST, "/v1/batches", body.clone()).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    let again = place.ask(Method::POST, "/v1/batches", body).await;
    assert_eq!((again.status, &again.body["id"]), (StatusCode::OK, &answer.body["id"]));
    format!("/v1/batches/{}", answer.body["id"].as_str().unwrap())
}

async fn operate(place: &Place, batch: &str, body: Value) -> Answer {
    place.ask(Method::POST, &format!("{batch}/operate"), body).await
}

async fn state(place: &Place, batch: &str, task: usize) -> Value {
    place.get(&format!("{batch}/tasks")).await.body["items"][task]["state"].clone()
}

pub(crate) async fn dags_are_defined_and_have_versions(place: Place) {
    let first = define(&place, definition()).await;
    assert_eq!((first.status, &first.body["number"]), (StatusCode::CREATED, &json!(1)), "{first:?}");
    let again = define(&place, definition()).await;
    assert_eq!((again.status, &again.body["known"]), (StatusCode::OK, &json!(true)));
    let mut mended = definition();
    mended["tasks"]["d"] = json!({"kind": "k", "after": ["c"]});
    assert_eq!(define(&place, mended.clone()).await.body["number"], 2);
    let dags = place.ask(Method::GET, "/v1/dags", Value::Null).await.body;
    assert_eq!((&dags[0]["dag"], &dags[0]["tasks"], &dags[1]), (&json!("etl"), &json!(4), &Value::Null));
    let latest = place.ask(Method::GET, "/v1/dags/etl", Value::Null).await.body;
    assert_eq!(latest["definition"], mended, "the definition is unchanged");
    let versions = place.ask(Method::GET, "/v1/dags/etl/versions", Value::Null).await.body;
    assert_eq!((&versions[0]["number"], &versions[1]["latest"]), (&json!(2), &json!(false)));
    let digits = &first.body["version"].as_str().unwrap()[..8];
    for version in ["1", digits] {
        let path = format!("/v1/dags/etl?version={version}");
        assert_eq!(place.ask(Method::GET, &path, Value::Null).await.body["definition"], definition());
    }
}

/// Starts a batch that waits for the signal `approved`, and returns its path.
async fn waiting(place: &Place) -> String {
    let wait = json!({"signal": "approved", "timeout": "3days", "choices": ["yes", "no"]});
    let send = json!({"kind": "k", "payload": "${ tasks.ask.output.by }", "after": ["ask"]});
    let definition = json!({"name": "approval", "tasks": {"ask": {"wait": wait}, "send": send}});
    assert_eq!(define(place, definition).await.status, StatusCode::CREATED);
    let started = place.post("/v1/batches", &json!({"dag": "approval"})).await.body;
    advance(place).await;
    format!("/v1/batches/{}", started["id"].as_str().unwrap())
}

async fn advance(place: &Place) {
    while place.store.advance_batches().await.unwrap() > 0 {}
}

pub(crate) async fn a_batch_waits_for_a_signal(place: Place) {
    let batch = waiting(&place).await;
    let task = place.get(&format!("{batch}/tasks")).await.body["items"][0].clone();
    let wait = &task["wait"];
    assert_eq!((&task["state"], &wait["signal"]), (&json!("active"), &json!("approved")));
    assert_eq!((&wait["on_timeout"], &wait["choices"]), (&json!("fail"), &json!(["yes", "no"])));
    assert!(wait["until"].as_str() > wait["since"].as_str(), "{wait}");
    let path = format!("{batch}/signals");
    let payload = json!({"choice": "yes", "by": "ann"});
    let signal = json!({"name": "approved", "payload": payload, "id": "1", "reason": "checked"});
    for result in ["accepted", "duplicate"] {
        let sent = place.post(&path, &signal).await;
        assert_eq!((sent.status, &sent.body["result"]), (StatusCode::OK, &json!(result)), "{sent:?}");
    }
    advance(&place).await;
    assert_eq!(state(&place, &batch, 0).await, "succeeded");
    assert_eq!(state(&place, &batch, 1).await, "active");
    let late = place.post(&path, &json!({"name": "approved", "payload": {"choice": "no"}})).await;
    assert_eq!(late.body["result"], "late");
}

pub(crate) async fn a_signal_that_no_task_can_use_is_refused(place: Place) {
    let batch = waiting(&place).await;
    let path = format!("{batch}/signals");
    let refused = place.post(&path, &json!({"name": "aproved"})).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::NOT_FOUND, "no_such_task"), "{refused:?}");
    assert!(refused.body["detail"].as_str().unwrap().contains("its signals are: approved"), "{refused:?}");
    let unfit = place.post(&path, &json!({"name": "approved", "payload": {"choice": "maybe"}})).await;
    assert_eq!(
        (unfit.status, unfit.code()),
        (StatusCode::UNPROCESSABLE_ENTITY, "invalid_input"),
        "{unfit:?}"
    );
}

pub(crate) async fn a_definition_with_too_many_objects_is_refused(place: Place) {
    let payload = vec![json!({}); 300_000];
    let answer = place
        .post("/v1/dags", &json!({"name": "d", "tasks": {"t": {"kind": "k", "payload": payload}}}))
        .await;
    assert_eq!((answer.status, answer.code()), (StatusCode::PAYLOAD_TOO_LARGE, "too_many"), "{answer:?}");
}

pub(crate) async fn values_in_a_definition_that_no_store_keeps_are_refused(place: Place) {
    for (field, words) in [
        (r#""payload": {"$serde_json::private::RawValue": "{}"}"#, "are reserved"),
        (r#""payload": [{"$serde_json::private::Number": "1"}]"#, "are reserved"),
        (r#""when": "input.a == '\u0000'""#, "NUL"),
    ] {
        let definition = format!(r#"{{"name": "d", "tasks": {{"a": {{"kind": "k", {field}}}}}}}"#);
        let answer = place.post_text("/v1/dags", definition).await;
        let said = answer.body.to_string();
        assert!(answer.status.is_client_error() && said.contains(words), "{field}: {said}");
    }
    for schema in [r#"{"const": "\u0000"}"#, r#"{"const": {"$serde_json::private::RawValue": "1"}}"#] {
        let definition =
            format!(r#"{{"name": "d", "input_schema": {schema}, "tasks": {{"a": {{"kind": "k"}}}}}}"#);
        assert!(place.post_text("/v1/dags", definition).await.status.is_client_error(), "{schema}");
    }
    assert_eq!(place.get("/v1/dags").await.body, json!([]));
}

pub(crate) async fn definitions_that_cannot_be_tell_all_that_is_wrong(place: Place) {
    let faulty = json!({"name": "d", "tasks": {
        "a": {"kind": "k", "after": ["x"]},
        "b": {"after": ["a"]},
        "c": {"kind": "k", "when": "1 +"},
    }});
    let answer = define(&place, faulty).await;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::UNPROCESSABLE_ENTITY, "invalid_dag"),
        "{answer:?}"
    );
    let places: Vec<&Value> =
        answer.body["faults"].as_array().unwrap().iter().map(|fault| &fault["at"]).collect();
    for at in ["tasks.a", "tasks.b", "tasks.c"] {
        assert!(places.contains(&&json!(at)), "{at}: {answer:?}");
    }
    assert!(!answer.at().is_empty());
    for (body, at) in [
        (json!({"name": "d", "tasks": {"a": {"kind": "k", "afer": []}}}), "tasks.a.afer"),
        (json!({"name": "d", "tasks": []}), "tasks"),
        (json!({"tasks": {}}), ""),
    ] {
        let answer = define(&place, body.clone()).await;
        assert_eq!((answer.code(), answer.at()), ("invalid_body", at), "{body}: {answer:?}");
    }
    for body in [
        json!({"name": "\u{0}", "tasks": {"a": {"kind": "k"}}}),
        json!({"name": "d", "tasks": {}}),
        json!({"name": "d", "tasks": {"\u{0}": {"kind": "k"}}}),
        json!({"name": "d", "tasks": {"a": {"kind": "k", "payload": "\u{0}"}}}),
        json!({"name": "d", "input_schema": {"type": "sometimes"}, "tasks": {"a": {"kind": "k"}}}),
    ] {
        let answer = define(&place, body.clone()).await;
        assert!(answer.status.is_client_error(), "{body}: {answer:?}");
    }
    assert_eq!(place.get("/v1/dags").await.body, json!([]));
    for (path, code) in [
        ("/v1/dags/none", "no_such_dag"),
        ("/v1/dags/none/versions", "no_such_dag"),
        ("/v1/dags/none?version=1", "no_such_dag"),
        ("/v1/dags/%00", "invalid_parameter"),
    ] {
        assert_eq!(place.ask(Method::GET, path, Value::Null).await.code(), code, "{path}");
    }
    define(&place, definition()).await;
    for version in ["7", "abcdef0", "x"] {
        let path = format!("/v1/dags/etl?version={version}");
        assert_eq!(place.ask(Method::GET, &path, Value::Null).await.code(), "no_such_version");
    }
}

pub(crate) async fn a_batch_is_started_and_looked_at(place: Place) {
    let batch = started(&place).await;
    let shown = place.ask(Method::GET, &batch, Value::Null).await.body;
    assert_eq!((&shown["input"]["day"], &shown["counts"]["waiting"]), (&json!("2026-11-01"), &json!(2)));
    let list =
        place.ask(Method::GET, "/v1/batches?dag=etl&state=running&key=day-1&limit=1", Value::Null).await;
    assert_eq!((&list.body["items"][0]["id"], list.body.get("next_cursor")), (&shown["id"], None));
    let page = place.ask(Method::GET, &format!("{batch}/tasks?limit=2"), Value::Null).await.body;
    assert_eq!((&page["items"][1]["key"], &page["next_cursor"]), (&json!("b"), &json!("1")));
    let rest = place.ask(Method::GET, &format!("{batch}/tasks?limit=2&cursor=1"), Value::Null).await.body;
    assert_eq!((&rest["items"][0]["key"], rest.get("next_cursor")), (&json!("c"), None));
    let waiting = place.ask(Method::GET, &format!("{batch}/tasks?state=waiting"), Value::Null).await.body;
    assert_eq!(waiting["items"].as_array().unwrap().len(), 2);
    let graph = place.ask(Method::GET, &format!("{batch}/graph"), Value::Null).await.body;
    assert_eq!((&graph["levels"], &graph["links"]), (&json!([1, 1, 1]), &json!([[0, 1], [1, 2]])));
    assert_eq!((&graph["nodes"][2]["key"], &graph["nodes"][2]["level"]), (&json!("c"), &json!(2)));
    let part = place.ask(Method::GET, &format!("{batch}/graph?level=1&limit=1"), Value::Null).await.body;
    assert_eq!((&part["nodes"][0]["key"], &part["links"]), (&json!("b"), &json!([[0, 1]])));
    let last = place.ask(Method::GET, &format!("{batch}/graph?cursor=2"), Value::Null).await.body;
    assert_eq!((&part["next_cursor"], &last["nodes"][0]["key"]), (&json!("2"), &json!("c")));
    assert_eq!(last.get("next_cursor"), None);
}

pub(crate) async fn a_start_of_a_batch_is_repeated_under_its_idempotency_key(place: Place) {
    define(&place, definition()).await;
    let start = |day: u32| {
        let body = json!({"dag": "etl", "input": {"day": day}});
        place.send(place.request(Method::POST, "/v1/batches").header("Idempotency-Key", "s").json(&body))
    };
    let first = start(1).await;
    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(start(1).await.body, json!({"id": first.body["id"], "duplicate": true}));
    assert_eq!(start(2).await.code(), "idempotency_key_taken");
}

pub(crate) async fn a_batch_is_started_for_a_tick(place: Place) {
    let tasks = json!({"a": {"kind": "k", "payload": "${ tick.date } in ${ tick.zone }"}});
    define(&place, json!({"name": "daily", "tasks": tasks})).await;
    let start = |more: Value| {
        let mut body = json!({"dag": "daily"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        place.send(place.request(Method::POST, "/v1/batches").header("Idempotency-Key", "day").json(&body))
    };
    let at = "2026-11-21T23:30:00.123Z";
    let tick = json!({"nominal_at": at, "nominal_zone": "Europe/Berlin"});
    let started = start(tick.clone()).await;
    assert_eq!(started.status, StatusCode::CREATED, "{started:?}");
    let batch = format!("/v1/batches/{}", started.body["id"].as_str().unwrap());
    let shown = place.get(&batch).await.body;
    assert_eq!((&shown["nominal_at"], &shown["nominal_zone"]), (&json!(at), &json!("Europe/Berlin")));
    let task = place.get(&format!("{batch}/tasks")).await.body["items"][0].clone();
    let job = place.get(&format!("/v1/jobs/{}", task["job"].as_str().unwrap())).await.body;
    assert_eq!((&job["payload"], &job["nominal_at"]), (&json!("2026-11-22 in Europe/Berlin"), &json!(at)));
    let page = place.page(&format!("/batches/{}", started.body["id"].as_str().unwrap())).await.1;
    assert!(page.contains("2026-11-22 in Europe/Berlin"), "{page}");
    assert_eq!(start(tick).await.body["duplicate"], true);
    for other in [
        json!({"nominal_at": at}),
        json!({"nominal_at": "2026-11-22T23:30:00Z", "nominal_zone": "Europe/Berlin"}),
    ] {
        assert_eq!(start(other).await.code(), "idempotency_key_taken");
    }
    for (more, code, at) in [
        (json!({"nominal_zone": "UTC"}), "invalid_body", "nominal_zone"),
        (json!({"nominal_at": at, "nominal_zone": "Europe/Berlim"}), "invalid_batch", ""),
        (json!({"nominal_at": "yesterday"}), "invalid_body", "nominal_at"),
    ] {
        let refused = start(more).await;
        assert_eq!((refused.code(), refused.at()), (code, at), "{refused:?}");
    }
}

pub(crate) async fn an_operator_changes_a_batch(place: Place) {
    let batch = started(&place).await;
    let marked = json!({"operation": "mark", "tasks": ["b"], "state": "failed", "reason": "broken"});
    assert_eq!(operate(&place, &batch, marked).await.status, StatusCode::OK);
    let marked = json!({"operation": "mark", "tasks": ["a"], "state": "succeeded"});
    assert_eq!(operate(&place, &batch, marked).await.body["operated"]["changed"], 1);
    let dry = json!({"operation": "rerun", "failed": true, "dry": true});
    let said = operate(&place, &batch, dry).await.body;
    assert_eq!((&said["rerun"]["tasks"], said.get("operated")), (&json!(["b"]), None));
    assert_eq!(state(&place, &batch, 1).await, "failed", "a preview changes nothing");
    let rerun = operate(&place, &batch, json!({"operation": "rerun", "failed": true})).await.body;
    assert_eq!(rerun["operated"]["generation"], 2);
    assert_eq!(state(&place, &batch, 1).await, "active");
}

pub(crate) async fn a_batch_is_stopped_and_goes_on(place: Place) {
    let batch = started(&place).await;
    let stale = operate(&place, &batch, json!({"operation": "abort", "generation": 7})).await;
    assert_eq!((stale.status, stale.code()), (StatusCode::CONFLICT, "overtaken"));
    assert_eq!(
        operate(&place, &batch, json!({"operation": "abort", "reason": "broken"})).await.status,
        StatusCode::OK
    );
    assert_eq!(place.get(&batch).await.body["stopped"], true);
    assert_eq!(operate(&place, &batch, json!({"operation": "resume"})).await.status, StatusCode::OK);
    operate(&place, &batch, json!({"operation": "cancel", "tasks": ["c"]})).await;
    assert_eq!(state(&place, &batch, 2).await, "canceled");
    assert_eq!(
        operate(&place, &batch, json!({"operation": "cancel", "grace_ms": 0})).await.status,
        StatusCode::OK
    );
    assert_eq!(place.get(&batch).await.body["state"], "canceled");
    let history = place.ask(Method::GET, &format!("{batch}/history?limit=1000"), Value::Null).await.body;
    assert!(history["items"].as_array().unwrap().iter().any(|entry| entry["note"] == "broken"), "{history}");
}

pub(crate) async fn a_batch_goes_over_to_the_latest_version(place: Place) {
    let batch = started(&place).await;
    operate(&place, &batch, json!({"operation": "cancel", "grace_ms": 0})).await;
    let mut mended = definition();
    mended["tasks"]["d"] = json!({"kind": "k", "after": ["c"]});
    mended["tasks"].as_object_mut().unwrap().remove("c");
    mended["tasks"]["d"]["after"] = json!(["b"]);
    define(&place, mended).await;
    let again = |dry: bool| json!({"operation": "rerun", "tasks": ["a"], "downstream": true, "version": "latest", "dry": dry});
    let said = operate(&place, &batch, again(true)).await.body;
    let change = &said["rerun"]["change"];
    assert_eq!(
        (&change["new"], &change["gone"], &change["to"]["number"]),
        (&json!(["d"]), &json!(["c"]), &json!(2))
    );
    assert_eq!(said["rerun"]["tasks"], json!(["a", "b"]));
    assert_eq!(place.get(&batch).await.body["number"], 1);
    let done = operate(&place, &batch, again(false)).await;
    assert_eq!(done.status, StatusCode::OK, "{done:?}");
    assert_eq!(place.get(&batch).await.body["number"], 2);
}

pub(crate) async fn a_rerun_of_what_failed_counts_items(place: Place) {
    let list = json!({"kind": "k", "each": "[{'n': 1}, {}, {'n': 3}, {}]", "payload": "${ item.n }"});
    define(&place, json!({"name": "listed", "tasks": {"list": list}})).await;
    let started = place.post("/v1/batches", &json!({"dag": "listed"})).await;
    while place.store.advance_batches().await.unwrap() > 0 {}
    let id = started.body["id"].as_str().unwrap().to_owned();
    let batch = format!("/v1/batches/{id}");
    let said = operate(&place, &batch, json!({"operation": "rerun", "failed": true, "dry": true})).await.body;
    assert_eq!(said["rerun"]["tasks"], json!(["list/1", "list/3"]), "two of the items have no n");
    assert_eq!(said["rerun"]["counts"]["failed"], 2);
    let offered = async || place.page(&format!("/batches/{id}")).await.1.contains("rerun?what=failed");
    wait::until("the page offers the rerun, although only tasks of inner batches have failed", offered).await;
    let preview = place.page(&format!("/batches/{id}/rerun?what=failed")).await.1;
    assert!(preview.contains("Rerun 2 tasks") && preview.contains("list/1, list/3"), "{preview}");
    let done = operate(&place, &batch, json!({"operation": "rerun", "failed": true})).await.body;
    assert_eq!((&done["operated"]["changed"], &done["operated"]["generation"]), (&json!(2), &json!(2)));
}

pub(crate) async fn batches_that_cannot_be_are_refused(place: Place) {
    let batch = started(&place).await;
    for (body, code, at) in [
        (json!({"dag": "none"}), "no_such_dag", "dag"),
        (json!({"dag": "etl", "version": "9"}), "no_such_version", "version"),
        (json!({"dag": "etl"}), "invalid_input", "input"),
        (json!({"dag": "etl", "input": {"day": "\u{0}"}}), "invalid_input", ""),
        (json!({"dag": "\u{0}"}), "invalid_batch", ""),
        (json!({"dag": "etl", "key": ""}), "invalid_batch", ""),
        (json!({"dag": "etl", "biz_key": "x"}), "invalid_body", "biz_key"),
    ] {
        let answer = place.ask(Method::POST, "/v1/batches", body.clone()).await;
        assert!(answer.status.is_client_error(), "{body}: {answer:?}");
        assert_eq!((answer.code(), answer.at()), (code, at), "{body}: {answer:?}");
    }
    for (body, code, at) in [
        (json!({"operation": "mark", "state": "failed"}), "invalid_body", "tasks"),
        (json!({"operation": "mark", "tasks": ["a"]}), "invalid_body", "state"),
        (json!({"operation": "mark", "tasks": ["a"], "state": "waiting"}), "invalid_body", "state"),
        (json!({"operation": "mark", "tasks": ["x"], "state": "failed"}), "no_such_task", "tasks[0]"),
        (json!({"operation": "cancel", "tasks": ["a", "x"]}), "no_such_task", "tasks[1]"),
        (json!({"operation": "rerun"}), "invalid_body", "tasks"),
        (json!({"operation": "rerun", "tasks": ["x"]}), "no_such_task", "tasks"),
        (json!({"operation": "rerun", "tasks": ["a"], "failed": true}), "invalid_body", "tasks"),
        (json!({"operation": "rerun", "failed": true}), "batch_refused", ""),
        (json!({"operation": "abort", "tasks": ["a"]}), "invalid_body", "tasks"),
        (json!({"operation": "resume", "dry": true}), "invalid_body", "dry"),
        (json!({"operation": "resume"}), "illegal_transition", ""),
        (json!({"operation": "explode"}), "invalid_body", "operation"),
    ] {
        let answer = operate(&place, &batch, body.clone()).await;
        assert!(answer.status.is_client_error(), "{body}: {answer:?}");
        assert_eq!((answer.code(), answer.at()), (code, at), "{body}: {answer:?}");
    }
    let abort = json!({"operation": "abort", "grace_ms": u64::MAX, "reason": "\u{0}"});
    assert!(!operate(&place, &batch, abort).await.status.is_server_error());
    let absent = "/v1/batches/0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";
    for path in ["", "/tasks", "/history", "/graph"] {
        let answer = place.ask(Method::GET, &format!("{absent}{path}"), Value::Null).await;
        assert_eq!((answer.status, answer.code()), (StatusCode::NOT_FOUND, "no_such_batch"), "{path}");
    }
    assert_eq!(operate(&place, absent, json!({"operation": "abort"})).await.code(), "no_such_batch");
    for (path, at) in [
        ("/v1/batches?limit=0".to_owned(), "query limit"),
        ("/v1/batches?cursor=1".to_owned(), "query cursor"),
        ("/v1/batches?dag=%00".to_owned(), "query dag"),
        ("/v1/batches/1".to_owned(), "path id"),
        (format!("{batch}/tasks?state=gone"), "query state"),
        (format!("{batch}/tasks?cursor=-1"), "query cursor"),
        (format!("{batch}/history?limit=1000000"), "query limit"),
        (format!("{batch}/graph?level=1&cursor=1"), "query level"),
    ] {
        let answer = place.ask(Method::GET, &path, Value::Null).await;
        assert_eq!((answer.status, answer.at()), (StatusCode::BAD_REQUEST, at), "{path}: {answer:?}");
    }
    let past = place.ask(Method::GET, &format!("{batch}/graph?cursor=4294967295"), Value::Null).await.body;
    assert_eq!(past["nodes"], json!([]));
}

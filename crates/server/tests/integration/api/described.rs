//! Checks of responses against the OpenAPI document.

use boon::{Compiler, Schemas};
use milepost_core::actions::REASON_CHARS_MAX;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::{Answer, Place};

/// Sends a request and checks the response against the document. `Value::Null`: without a body.
pub(crate) async fn ask(place: &Place, method: Method, path: &str, body: &Value) -> Answer {
    let request = place.request(method.clone(), path);
    let answer = place.send(if body.is_null() { request } else { request.json(body) }).await;
    let document = place.get("/openapi.json").await.body;
    let method = method.as_str().to_lowercase();
    check(&document, &method, &template(&document, path), &answer);
    answer
}

/// Returns the path template of the document.
fn template(document: &Value, path: &str) -> String {
    let path = path.split('?').next().unwrap();
    let fits = |template: &str| {
        template.split('/').count() == path.split('/').count()
            && template.split('/').zip(path.split('/')).all(|(a, b)| a == b || a.starts_with('{'))
    };
    let templates = document["paths"].as_object().unwrap().keys();
    let found = templates.filter(|known| fits(known)).min_by_key(|known| known.matches('{').count());
    found.unwrap_or_else(|| panic!("the document does not contain {path}")).clone()
}

/// Checks a response against the document.
fn check(document: &Value, method: &str, path: &str, answer: &Answer) {
    let responses = &document["paths"][path][method]["responses"];
    let status = answer.status.as_u16().to_string();
    if answer.status == StatusCode::NO_CONTENT {
        assert!(responses.get(&status).is_some(), "{method} {path} does not document the status {status}");
        return;
    }
    let response = responses.get(&status).unwrap_or(&responses["default"]);
    let schema = &response["content"][&answer.content_type]["schema"];
    assert!(
        !schema.is_null(),
        "{method} {path} does not document the status {status} with content type {}",
        answer.content_type
    );
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    compiler.add_resource("http://document/", whole).unwrap();
    let index = compiler.compile("http://document/", &mut schemas).unwrap();
    if let Err(error) = schemas.validate(&answer.body, index) {
        panic!("{method} {path} returned {}: {error:#}", answer.body);
    }
}

pub(crate) async fn every_answer_is_as_the_document_says(place: Place) {
    let document = place.get("/openapi.json").await.body;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let full = json!({"kind": "k", "key": "a", "group": "g", "payload": {"a": [1, null]}, "queue": "q"});
    let created = place.post("/v1/jobs", &full).await;
    check(&document, "post", "/v1/jobs", &created);
    check(&document, "post", "/v1/jobs", &place.post("/v1/jobs", &full).await);
    check(&document, "post", "/v1/jobs", &place.post("/v1/jobs", &json!({})).await);
    let many = place.post("/v1/jobs/create-many?each=true", &json!({"jobs": [full, {"kind": ""}]})).await;
    check(&document, "post", "/v1/jobs/create-many", &many);
    let id = created.body["id"].as_str().unwrap();
    let operated = place.post(&format!("/v1/jobs/{id}/operate"), &json!({"operation": "abort"})).await;
    check(&document, "post", "/v1/jobs/{id}/operate", &operated);
    let event = json!({"aggregate_type": "a", "aggregate_id": "1", "event_type": "t", "headers": {"h": "v"}});
    let emitted = place.post("/v1/events", &json!({"events": [event]})).await;
    check(&document, "post", "/v1/events", &emitted);
    let worker = json!({"name": "w", "queues": ["q"], "kinds": ["k"]});
    let worker = place.post("/v1/workers", &worker).await;
    check(&document, "post", "/v1/workers", &worker);
    let worker = format!("/v1/workers/{}", worker.body["id"]);
    place.post("/v1/jobs", &json!({"kind": "k", "queue": "q"})).await;
    let claimed = place.post(&format!("{worker}/claim"), &json!({"queues": ["q"], "kinds": ["k"]})).await;
    check(&document, "post", "/v1/workers/{id}/claim", &claimed);
    let run = &claimed.body["jobs"][0]["run"];
    for (verb, body) in [
        ("heartbeat", json!({})),
        ("report", json!({"runs": [{"run": run, "checkpoint": 1}]})),
        ("finish", json!({"runs": [{"run": run, "outcome": "succeeded"}]})),
    ] {
        let answer = place.post(&format!("{worker}/{verb}"), &body).await;
        check(&document, "post", &format!("/v1/workers/{{id}}/{verb}"), &answer);
    }
    for (path, shown) in [
        (format!("{worker}/jobs"), "/v1/workers/{id}/jobs"),
        ("/v1/jobs".to_owned(), "/v1/jobs"),
        ("/v1/jobs?limit=x".to_owned(), "/v1/jobs"),
        (format!("/v1/jobs/{id}"), "/v1/jobs/{id}"),
        (format!("/v1/jobs/{id}/history"), "/v1/jobs/{id}/history"),
        (format!("/v1/jobs/{id}/attempts"), "/v1/jobs/{id}/attempts"),
        ("/v1/queues".to_owned(), "/v1/queues"),
        ("/v1/workers".to_owned(), "/v1/workers"),
        ("/v1/audit".to_owned(), "/v1/audit"),
        ("/v1/events".to_owned(), "/v1/events"),
        ("/v1/subscriptions".to_owned(), "/v1/subscriptions"),
        ("/v1/parked".to_owned(), "/v1/parked"),
        ("/v1/dead-events".to_owned(), "/v1/dead-events"),
    ] {
        check(&document, "get", shown, &place.get(&path).await);
    }
    let paused = place.send(place.request(Method::PUT, "/v1/queues/q").json(&json!({"paused": true}))).await;
    check(&document, "put", "/v1/queues/{name}", &paused);
}

pub(crate) async fn the_document_names_a_role_for_every_operation(place: Place) {
    let document = place.get("/openapi.json").await.body;
    let mut operations = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let role = operation["security"][0]["token"][0].as_str();
            assert!(
                matches!(role, Some("viewer" | "operator" | "admin" | "worker")),
                "{method} {path}: {operation}"
            );
            assert!(
                operation["summary"].is_string() && operation["operationId"].is_string(),
                "{method} {path}"
            );
            for (status, response) in operation["responses"].as_object().unwrap() {
                let description = response["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{method} {path} {status}");
            }
            operations += 1;
        }
    }
    assert!(operations > 8, "{operations}");
}

/// Returns the maximum length of the reason in the request, which is a member of the body or a parameter.
fn reason_max(document: &Value, operation: &Value) -> Value {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let name = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/components/schemas/"));
    let body = name.map_or(schema, |name| &document["components"]["schemas"][name]);
    let mut parameters = operation["parameters"].as_array().into_iter().flatten();
    let parameter = parameters.find(|parameter| parameter["name"] == "reason");
    let schema = parameter.map_or(&body["properties"]["reason"], |parameter| &parameter["schema"]);
    schema["maxLength"].clone()
}

pub(crate) async fn every_change_by_an_operator_can_have_a_reason(place: Place) {
    let document = place.get("/openapi.json").await.body;
    let mut changes = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let role = operation["security"][0]["token"][0].as_str();
            if method == "get" || !matches!(role, Some("operator" | "admin")) {
                continue;
            }
            assert_eq!(reason_max(&document, operation), REASON_CHARS_MAX, "{method} {path}: {operation}");
            changes += 1;
        }
    }
    assert!(changes > 20, "{changes}");
}

pub(crate) async fn an_operation_without_query_parameters_refuses_a_query(place: Place) {
    let document = place.get("/openapi.json").await.body;
    let mut operations = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let mut parameters = operation["parameters"].as_array().into_iter().flatten();
            if parameters.any(|parameter| parameter["in"] == "query") {
                continue;
            }
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let path = path.replace("{id}", "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c").replace("{name}", "x");
            let answer = place.request(method.clone(), &format!("{path}?limit=1")).send().await.unwrap();
            let status = answer.status();
            let problem: Value = answer.json().await.unwrap();
            assert_eq!(
                (status, &problem["code"]),
                (StatusCode::BAD_REQUEST, &"invalid_parameter".into()),
                "{method} {path}"
            );
            operations += 1;
        }
    }
    assert!(operations > 20, "{operations}");
}

pub(crate) async fn people_can_read_all_that_the_document_says(place: Place) {
    let document = place.get("/openapi.json").await.body;
    let (status, html) = place.page("/reference").await;
    assert_eq!(status, StatusCode::OK);
    let members = |value: &Value| value.as_object().unwrap().clone().into_iter();
    for (path, item) in members(&document["paths"]) {
        for (method, operation) in members(&item) {
            let shown = format!("<b>{}</b> {path}</p>", method.to_uppercase());
            assert!(html.contains(&shown), "{method} {path}");
            let id = operation["operationId"].as_str().unwrap();
            assert_eq!(html.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
            for param in operation["parameters"].as_array().into_iter().flatten() {
                let name = param["name"].as_str().unwrap();
                assert!(html.contains(&format!("<code>{name}</code>")), "{method} {path}: {name}");
            }
        }
    }
    for (name, _) in members(&document["components"]["schemas"]) {
        assert!(html.contains(&format!("id=\"type-{name}\"")), "{name}");
    }
    for link in html.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(html.contains(&format!("id=\"{link}\"")), "#{link} has no target");
    }
}

//! Tests of hidden data: users see it only with permission and a reason.

use std::time::Duration;

use milepost_core::claim::Claim;
use milepost_core::event::{Aggregate, NewEvent};
use milepost_core::finish::{End, Failure, Finish};
use milepost_core::hide::{Hidden, HideRule};
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::schedule::{Schedule, Source, Spec};
use milepost_core::token::{NewToken, Role, Secret, TokenScope};
use milepost_core::worker::{NewWorker, Progress, Report};
use milepost_server::Options;
use milepost_testkit::wait;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::{Answer, Place, secret};

/// The value that is hidden everywhere in these tests.
const SECRET: &str = "ada-at-example";
/// A value beside it, which is not hidden.
const OPEN: &str = "lovelace";

fn data() -> Value {
    json!({"customer": {"email": SECRET, "name": OPEN}, "cards": [{"number": SECRET}]})
}

fn hiding() -> Options {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let paths = owned(&["customer.email", "cards[*].number"]);
    let rule = HideRule { kinds: owned(&["mail.*", "order"]), paths };
    let hidden = Hidden::new(&[rule], &[Role::Admin]).unwrap();
    Options { hidden, ..Options::default() }
}

/// Returns a server on the same store that hides data, and the job: it has failed, with the data wherever a job can have some.
async fn hiding_server(place: &Place) -> (Place, JobId) {
    let store = place.store.as_ref();
    let made = store.enqueue(&NewJob::new("mail.send", &data()).unwrap()).await.unwrap().job;
    let (queues, kinds) = (vec!["default".to_owned()], vec!["mail.send".to_owned()]);
    let worker = NewWorker {
        name: "w".to_owned(),
        queues: queues.clone(),
        kinds: kinds.clone(),
        lease: Duration::from_secs(600),
        ..NewWorker::default()
    };
    let worker = store.register_worker(&worker).await.unwrap();
    let claim = Claim { worker, claim_id: 1, queues, kinds, limit: 1, thorough: true };
    let claimed = store.claim(&claim).await.unwrap();
    assert!(claimed[0].payload.contains(SECRET), "workers get the real value");
    let run = claimed[0].run;
    let progress = Progress { done: 1, total: None, message: Some(data().to_string()) };
    let report = Report { run, progress: Some(progress), checkpoint: Some(data().to_string()) };
    assert_eq!(store.report_many(&[report]).await.unwrap(), [true]);
    let failure = Failure { code: "refused".to_owned(), message: data().to_string() };
    let finish = Finish { run, end: End::Fail { failure }, grouped: false, task: false };
    store.finish_many(worker, &[finish]).await.unwrap();
    let event = NewEvent::new(Aggregate::new("order", "1"), "order.placed", &data()).unwrap();
    store.emit_many(&[event]).await.unwrap();
    let hourly = Spec::every(Duration::from_secs(3600)).unwrap();
    let schedule = Schedule::new("daily", hourly, NewJob::new("mail.send", &data()).unwrap());
    store.put_schedule(&schedule, Source::Operator).await.unwrap();
    (place.beside(hiding()).await, made)
}

async fn ask(place: &Place, token: &Secret, method: Method, path: &str, body: &Value) -> Answer {
    let request = place.request(method.clone(), path).bearer_auth(token.reveal());
    place.send(if method == Method::GET { request } else { request.json(body) }).await
}

pub(crate) async fn the_placeholder_is_never_stored_as_a_payload(place: Place) {
    let (hiding, job) = hiding_server(&place).await;
    let edit = |payload: Value| {
        let request =
            hiding.request(Method::PATCH, &format!("/v1/jobs/{job}")).json(&json!({ "payload": payload }));
        hiding.send(request)
    };
    let seen = hiding.get(&format!("/v1/jobs/{job}")).await.body["payload"].clone();
    let refused = edit(seen).await;
    assert!(
        refused.status.is_client_error() && refused.body.to_string().contains("in place of a hidden value"),
        "{refused:?}"
    );
    let edited = edit(data()).await;
    assert_eq!(edited.status, StatusCode::OK, "{edited:?}");
    assert!(!edited.body.to_string().contains(SECRET));
    let audit = hiding.get(&format!("/v1/audit?subject={job}")).await.body.to_string();
    assert!(audit.contains("job.edit") && !audit.contains(SECRET), "{audit}");
}

pub(crate) async fn hidden_values_are_in_no_answer_and_the_others_are(place: Place) {
    let (hiding, job) = hiding_server(&place).await;
    for (path, shows_others) in [
        (format!("/v1/jobs/{job}"), true),
        (format!("/v1/jobs/{job}/history"), true),
        (format!("/v1/jobs/{job}/attempts"), true),
        (format!("/jobs/{job}"), true),
        ("/".to_owned(), false),
        ("/kinds/mail.send".to_owned(), false),
        ("/jobs?state=failed".to_owned(), false),
        ("/events".to_owned(), true),
        ("/v1/events".to_owned(), true),
        ("/v1/schedules".to_owned(), true),
        ("/v1/schedules/daily".to_owned(), true),
        ("/schedules/daily".to_owned(), true),
        ("/audit".to_owned(), false),
        ("/v1/audit".to_owned(), false),
        ("/v1/status".to_owned(), false),
    ] {
        let answer = hiding.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let text = answer.text().await.unwrap();
        assert!(!text.contains(SECRET), "{path} shows it: {text}");
        assert!(!shows_others || (text.contains("[hidden]") && text.contains(OPEN)), "{path}: {text}");
    }
    let shown = place.get(&format!("/v1/jobs/{job}")).await.body;
    assert_eq!(shown["payload"], data(), "a server without rules hides nothing");
}

pub(crate) async fn a_schedule_of_hidden_data_keeps_and_uses_the_real_values(place: Place) {
    let (hiding, _) = hiding_server(&place).await;
    let run =
        hiding.post("/v1/schedules/daily/operate", &json!({"operation": "run_now", "reason": "test"})).await;
    assert!(run.status.is_success(), "{run:?}");
    let jobs = place.get("/v1/jobs").await.body;
    let newest = jobs["items"][0]["id"].as_str().unwrap();
    assert_eq!(place.get(&format!("/v1/jobs/{newest}")).await.body["payload"], data());
    let mut hidden = data();
    hidden["customer"]["email"] = json!("[hidden]");
    let body = json!({"every": "2h", "kind": "mail.send", "payload": hidden});
    let refused = hiding.ask(Method::PUT, "/v1/schedules/daily", body).await;
    assert_eq!(
        (refused.status, refused.code()),
        (StatusCode::UNPROCESSABLE_ENTITY, "hidden_data"),
        "{refused:?}"
    );
    assert_eq!(place.get("/v1/schedules/daily").await.body["job"]["payload"], data());
}

pub(crate) async fn a_search_is_no_way_to_guess_hidden_values(place: Place) {
    let (hiding, job) = hiding_server(&place).await;
    for path in ["customer.email=ada-at-example", "customer.email=x", "cards.0.number=1"] {
        for query in [format!("/v1/jobs?payload={path}"), format!("/v1/jobs?kind=mail.send&payload={path}")] {
            let refused = hiding.get(&query).await;
            assert_eq!(refused.code(), "hidden_data", "{query}");
        }
        let filter = json!({"state": "failed", "payload": path});
        let body = json!({"filter": filter, "operation": "retry", "reason": "test", "dry": true});
        let refused = hiding.post("/v1/jobs/operate-many", &body).await;
        assert_eq!(refused.code(), "hidden_data", "{path}");
    }
    let found = async |query: &str| hiding.get(&format!("/v1/jobs?{query}")).await.body["items"].to_string();
    assert!(found(&format!("payload=customer.name%3D{OPEN}")).await.contains(&job.to_string()));
    assert!(found(&format!("error={OPEN}")).await.contains(&job.to_string()));
    assert_eq!(found(&format!("error={SECRET}")).await, "[]");
    assert_eq!(found("kind=other&payload=customer.email%3Dx").await, "[]", "it is not hidden in this kind");
}

pub(crate) async fn hidden_values_are_revealed_to_those_who_may_and_say_why(place: Place) {
    let (hiding, job) = hiding_server(&place).await;
    let (admin, operator) = (hiding.token(Role::Admin).await, hiding.token(Role::Operator).await);
    let locked = async || hiding.get("/v1/queues").await.status == StatusCode::UNAUTHORIZED;
    wait::until("tokens are required", locked).await;
    let path = format!("/v1/jobs/{job}/reveal");
    let reveal = async |token: &Secret, path: &str, reason: &str| {
        ask(&hiding, token, Method::POST, path, &json!({"reason": reason})).await
    };
    let refused = reveal(&operator, &path, "ticket 7").await;
    assert_eq!((refused.status, refused.code()), (StatusCode::FORBIDDEN, "reveal_refused"));
    for empty in [" ", "\u{200b}"] {
        assert_eq!(reveal(&admin, &path, empty).await.code(), "invalid_body");
    }
    let audited = async || {
        let found = ask(&hiding, &admin, Method::GET, "/v1/audit?what=job.reveal", &Value::Null).await;
        found.body["items"].as_array().unwrap().clone()
    };
    assert_eq!(audited().await.len(), 0);
    let revealed = reveal(&admin, &path, "ticket 7").await;
    assert_eq!((revealed.status, &revealed.body["payload"]), (StatusCode::OK, &data()), "{revealed:?}");
    let entries = audited().await;
    assert_eq!(entries.len(), 1);
    assert_eq!((&entries[0]["who"], &entries[0]["why"]), (&json!("token:admin"), &json!("ticket 7")));
    assert_eq!(entries[0]["subject"], json!(job.to_string()));
    // Only of own jobs.
    let scope = TokenScope { queues: Vec::new(), kinds: vec!["billing.*".to_owned()] };
    let other = NewToken { scope: Some(scope), ..NewToken::new("other", Role::Admin, &secret(), "tester") };
    let other = hiding.token_of(other).await;
    assert_eq!(reveal(&other, &path, "curious").await.status, StatusCode::NOT_FOUND);
    let missing = format!("/v1/jobs/{}/reveal", JobId::new());
    assert_eq!(reveal(&admin, &missing, "ticket 7").await.status, StatusCode::NOT_FOUND);
    assert_eq!(audited().await.len(), 1, "nothing else was revealed");
}

pub(crate) async fn a_definition_is_no_way_to_copy_hidden_values(place: Place) {
    let (hiding, _) = hiding_server(&place).await;
    let (admin, operator) = (hiding.token(Role::Admin).await, hiding.token(Role::Operator).await);
    let locked = async || hiding.get("/v1/queues").await.status == StatusCode::UNAUTHORIZED;
    wait::until("tokens are required", locked).await;
    let dag = |text: &str| json!({"name": "order", "tasks": {"a": {"kind": "k", "payload": {"x": text}}}});
    let define = async |token: &Secret, dag: Value| ask(&hiding, token, Method::POST, "/v1/dags", &dag).await;
    let copies = dag("${ input.customer.email }");
    let refused = define(&operator, copies.clone()).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::FORBIDDEN, "reveal_refused"), "{refused:?}");
    assert_eq!(define(&operator, dag("plain")).await.status, StatusCode::CREATED);
    assert_eq!(define(&admin, copies.clone()).await.status, StatusCode::CREATED);
    assert_eq!(define(&operator, copies).await.status, StatusCode::OK, "the version exists");
    // A refusal does not quote the stored input either.
    let schema = json!({"properties": {"customer": {"type": "string"}}});
    let strict = json!({"name": "order", "input_schema": schema, "tasks": {"a": {"kind": "k"}}});
    let body = json!({"dag": "order", "input": data()});
    let started = ask(&hiding, &operator, Method::POST, "/v1/batches", &body).await;
    assert_eq!(started.status, StatusCode::CREATED, "{started:?}");
    assert_eq!(define(&operator, strict.clone()).await.code(), "reveal_refused");
    assert_eq!(define(&admin, strict).await.status, StatusCode::CREATED);
    let batch = started.body["id"].as_str().unwrap();
    let path = format!("/v1/batches/{batch}/operate");
    let rerun = json!({"operation": "rerun", "version": "latest", "tasks": ["a"], "reason": "test"});
    let refused = ask(&hiding, &operator, Method::POST, &path, &rerun).await;
    assert!(refused.status.is_client_error(), "{refused:?}");
    assert!(!format!("{refused:?}").contains(SECRET), "{refused:?}");
}

pub(crate) async fn a_button_reveals_hidden_values_on_a_page_of_their_own(place: Place) {
    let (hiding, job) = hiding_server(&place).await;
    let (_, html) = hiding.page(&format!("/jobs/{job}")).await;
    assert!(html.contains("Reveal hidden values"), "{html}");
    let url = format!("http://{}", hiding.address());
    let send = async |reason: &str| {
        let request = hiding.request(Method::POST, &format!("/jobs/{job}/reveal"));
        let body = form_urlencoded::Serializer::new(String::new()).append_pair("reason", reason).finish();
        let request =
            request.header("origin", &url).header("content-type", "application/x-www-form-urlencoded");
        request.body(body).send().await.unwrap()
    };
    assert_eq!(send("").await.status(), StatusCode::SEE_OTHER, "a form without a reason is refused");
    let revealed = send("ticket 7").await;
    assert_eq!(revealed.status(), StatusCode::OK);
    assert_eq!(revealed.headers()["cache-control"], "no-store");
    assert!(revealed.text().await.unwrap().contains(SECRET));
    let (_, html) = place.page(&format!("/jobs/{job}")).await;
    assert!(!html.contains("Reveal hidden values"), "a server without rules has nothing to reveal");
}

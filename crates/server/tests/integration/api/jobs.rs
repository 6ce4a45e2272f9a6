//! Tests of jobs: creation, reads and operations.

use std::time::Duration;

use milepost_core::claim::Claim;
use milepost_core::finish::{End, Failure, Finish};
use milepost_core::ident::JobId;
use milepost_core::port::Operation;
use milepost_core::transition::Verb;
use milepost_core::worker::NewWorker;
use milepost_testkit::wait;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::{Answer, Place};

pub(crate) async fn a_job_that_is_created_can_be_looked_at(place: Place) {
    let id = place
        .created(&json!({
            "kind": "mail", "payload": {"to": ["ada"], "n": 1.50}, "queue": "post", "priority": 3, "max_attempts": 7,
            "timeout_ms": 1500, "delay_ms": 3_600_000, "group": "g", "key": "k",
        }))
        .await;
    let job = place.get(&format!("/v1/jobs/{id}")).await.body;
    for (field, value) in [
        ("kind", json!("mail")),
        ("queue", json!("post")),
        ("priority", json!(3)),
        ("max_attempts", json!(7)),
        ("payload", json!({"to": ["ada"], "n": 1.5})),
        ("group", json!("g")),
        ("key", json!("k")),
    ] {
        assert_eq!(job[field], value, "{field} of {job}");
    }
    assert_eq!(job["waiting_for"]["reason"], "time");
    let history = place.get(&format!("/v1/jobs/{id}/history")).await.body;
    assert_eq!(history[0]["verb"], "create");
    let listed = place.get("/v1/jobs?kind=mail&queue=post&key=k").await.body;
    assert_eq!(listed["items"][0]["id"], id.as_str());
    assert_eq!(listed.get("next_cursor"), None);
}

pub(crate) async fn a_key_that_is_asked_for_again_is_the_same_job(place: Place) {
    let body = json!({"kind": "mail", "key": "order-1", "payload": 1});
    let first = place.created(&body).await;
    let again = place.post("/v1/jobs", &json!({"kind": "mail", "key": "order-1", "payload": 2})).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.body, json!({"id": first, "duplicate": true, "outcome": "kept"}));
}

pub(crate) async fn a_rule_for_duplicates_says_what_happened(place: Place) {
    let ask = async |payload: u32, rule: Value| {
        let body = json!({"kind": "mail", "key": "k", "payload": payload, "on_duplicate": rule});
        place.post("/v1/jobs", &body).await
    };
    let first = ask(1, json!({"action": "replace"})).await;
    assert_eq!((first.status, &first.body["outcome"]), (StatusCode::CREATED, &json!("created")));
    let id = first.body["id"].clone();
    let second = ask(2, json!({"action": "replace"})).await;
    let replaced = json!({"id": id, "duplicate": true, "outcome": "replaced"});
    assert_eq!((second.status, &second.body), (StatusCode::OK, &replaced));
    let moved = ask(3, json!({"action": "debounce", "delay_ms": 600_000, "max_delay_ms": 600_001})).await;
    assert_eq!(moved.body["outcome"], "moved");
    assert_eq!(ask(4, json!({"action": "throttle", "period_ms": 600_000})).await.body["outcome"], "dropped");
    let job = place.get(&format!("/v1/jobs/{}", id.as_str().unwrap())).await.body;
    assert_eq!((&job["payload"], &job["waiting_for"]["reason"]), (&json!(3), &json!("time")));

    let both = json!([
        {"kind": "mail", "key": "k", "payload": 5, "on_duplicate": {"action": "replace"}},
        {"kind": "mail", "on_duplicate": {"action": "replace"}},
        {"kind": "mail"},
    ]);
    let each = place.post("/v1/jobs/create-many?each=true", &json!({ "jobs": both })).await.body;
    assert_eq!(each["jobs"][0], replaced);
    assert_eq!(each["jobs"][1]["problem"]["at"], "jobs[1].on_duplicate", "{each}");
    assert_eq!(each["jobs"][2]["outcome"], "created");

    let bad = ask(6, json!({"action": "debounce", "delay_ms": 1})).await;
    assert_eq!(
        (bad.status, bad.body["at"].as_str()),
        (StatusCode::UNPROCESSABLE_ENTITY, Some("on_duplicate")),
        "{bad:?}"
    );
    let unknown = ask(7, json!({"action": "replace", "delay": 1})).await;
    assert!(unknown.body["at"].as_str().unwrap().starts_with("on_duplicate"), "{unknown:?}");
}

pub(crate) async fn many_clients_that_debounce_a_key_make_one_job(place: Place) {
    let rule = json!({"action": "debounce", "delay_ms": 600_000, "max_delay_ms": 600_000});
    let body = |n: u32| json!({"kind": "mail", "key": "k", "payload": n, "on_duplicate": rule});
    let bodies: Vec<Value> = (0..20).map(body).collect();
    let answers = futures::future::join_all(bodies.iter().map(|body| place.post("/v1/jobs", body))).await;
    let created = answers.iter().filter(|answer| answer.body["outcome"] == "created").count();
    let moved = answers.iter().filter(|answer| answer.body["outcome"] == "moved").count();
    assert_eq!((created, moved), (1, 19), "{answers:?}");
    assert!(answers.iter().all(|answer| answer.body["id"] == answers[0].body["id"]));
}

pub(crate) async fn a_request_is_repeated_under_its_idempotency_key(place: Place) {
    let ask = |payload: u32| {
        let body = json!({"kind": "mail", "payload": {"n": payload}});
        place.send(place.request(Method::POST, "/v1/jobs").header("Idempotency-Key", "r-1").json(&body))
    };
    let first = ask(1).await;
    assert_eq!((first.status, &first.body["duplicate"]), (StatusCode::CREATED, &json!(false)));
    let again = ask(1).await;
    assert_eq!((again.status, &again.body["id"]), (StatusCode::OK, &first.body["id"]));
    let other = ask(2).await;
    assert_eq!((other.status, other.code()), (StatusCode::CONFLICT, "idempotency_key_taken"));
    let many = |payload: u32| {
        let body = json!({"jobs": [{"kind": "mail", "payload": payload}, {"kind": "mail", "payload": 7}]});
        place.send(
            place.request(Method::POST, "/v1/jobs/create-many").header("Idempotency-Key", "r-2").json(&body),
        )
    };
    let first = many(1).await;
    assert_eq!(first.status, StatusCode::CREATED, "{first:?}");
    let again = many(1).await;
    assert_eq!(again.body["jobs"][1]["id"], first.body["jobs"][1]["id"]);
    assert_eq!(many(2).await.code(), "idempotency_key_taken");
    let jobs = place.get("/v1/jobs").await.body;
    assert_eq!(jobs["items"].as_array().unwrap().len(), 3, "{jobs}");
}

pub(crate) async fn of_two_lists_that_are_created_at_once_under_a_key_one_is_refused_completely(
    place: Place,
) {
    let jobs = async || place.get("/v1/jobs?limit=1000").await.body["items"].as_array().unwrap().len();
    for round in 0..8 {
        let key = format!("many-{round}");
        let many = |count: usize| {
            let jobs: Vec<Value> = (0..count).map(|n| json!({"kind": "mail", "payload": n})).collect();
            let request = place.request(Method::POST, "/v1/jobs/create-many").header("Idempotency-Key", &key);
            place.send(request.json(&json!({ "jobs": jobs })))
        };
        let before = jobs().await;
        let (one, other) = tokio::join!(many(20), many(25));
        let (created, refused, count) =
            if one.status == StatusCode::CREATED { (one, other, 20) } else { (other, one, 25) };
        assert_eq!(
            (created.status, refused.code()),
            (StatusCode::CREATED, "idempotency_key_taken"),
            "{created:?}"
        );
        assert_eq!(jobs().await - before, count);
        assert_eq!(many(count).await.status, StatusCode::CREATED, "the request is repeatable");
        assert_eq!(jobs().await - before, count);
    }
}

pub(crate) async fn nothing_is_created_under_a_key_that_other_jobs_have(place: Place) {
    let many = |path: &'static str, payloads: &'static [u32]| {
        let jobs: Vec<Value> = payloads.iter().map(|n| json!({"kind": "mail", "payload": n})).collect();
        let request = place.request(Method::POST, path).header("Idempotency-Key", "r-1");
        place.send(request.json(&json!({ "jobs": jobs })))
    };
    let (all, each) = ("/v1/jobs/create-many", "/v1/jobs/create-many?each=true");
    assert_eq!(many(all, &[1, 2]).await.status, StatusCode::CREATED);
    for other in [&[1, 7, 3][..], &[7, 2, 3], &[1, 2, 3], &[1]] {
        let refused = many(all, other).await;
        assert_eq!(
            (refused.status, refused.code()),
            (StatusCode::CONFLICT, "idempotency_key_taken"),
            "{other:?}"
        );
    }
    let count = async || place.get("/v1/jobs").await.body["items"].as_array().unwrap().len();
    assert_eq!(count().await, 2, "all or none");
    let answer = many(each, &[1, 7, 3]).await.body;
    assert_eq!(answer["jobs"][0]["duplicate"], true);
    assert_eq!(answer["jobs"][1]["problem"]["code"], "idempotency_key_taken", "{answer}");
    assert_eq!(answer["jobs"][1]["problem"]["at"], "jobs[1]");
    assert_eq!((answer["jobs"][2]["duplicate"].as_bool(), count().await), (Some(false), 3));
}

pub(crate) async fn a_key_of_jobs_of_which_some_were_refused_is_of_these(place: Place) {
    let many = |path: &'static str, kinds: [&'static str; 2]| {
        let jobs = kinds.map(|kind| json!({ "kind": kind }));
        let request = place.request(Method::POST, path).header("Idempotency-Key", "r-1");
        place.send(request.json(&json!({ "jobs": jobs })))
    };
    let answer = many("/v1/jobs/create-many?each=true", ["", "mail"]).await.body;
    assert_eq!(answer["jobs"][0]["problem"]["code"], "invalid_job", "{answer}");
    let refused = many("/v1/jobs/create-many", ["mail", "mail"]).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::CONFLICT, "idempotency_key_taken"));
    let jobs = place.get("/v1/jobs").await.body;
    assert_eq!(jobs["items"].as_array().unwrap().len(), 1, "{jobs}");
}

pub(crate) async fn many_jobs_are_created_in_the_order_of_the_request(place: Place) {
    let jobs: Vec<Value> = (0..700).map(|n| json!({"kind": "k", "payload": n})).collect();
    let answer = place.post("/v1/jobs/create-many", &json!({ "jobs": jobs })).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    let created = answer.body["jobs"].as_array().unwrap();
    assert_eq!(created.len(), 700);
    for n in [0, 499, 500, 699] {
        let id = created[n]["id"].as_str().unwrap();
        assert_eq!(place.get(&format!("/v1/jobs/{id}")).await.body["payload"], json!(n));
    }
}

pub(crate) async fn a_list_goes_on_where_its_page_ended(place: Place) {
    let jobs: Vec<Value> = (0..25).map(|n| json!({"kind": "k", "payload": n})).collect();
    place.post("/v1/jobs/create-many", &json!({ "jobs": jobs })).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = place.get(&format!("/v1/jobs?limit=10{cursor}")).await.body;
        seen.extend(page["items"].as_array().unwrap().iter().map(|job| job["id"].clone()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen.len(), 25);
    let mut distinct = seen.clone();
    distinct.sort_by_key(ToString::to_string);
    distinct.dedup();
    assert_eq!(distinct.len(), 25, "each once");
}

pub(crate) async fn what_one_of_many_callers_gives_wrong_is_refused_alone(place: Place) {
    // Only some stores refuse NUL, and some of them only late.
    let answers = futures::future::join_all((0..40).map(|n| {
        let place = &place;
        async move {
            let payload =
                if n % 10 == 3 { "{\"kind\": \"k\", \"payload\": \"\\u0000\"}" } else { "{\"kind\": \"k\"}" };
            let request = place.request(Method::POST, "/v1/jobs").header("content-type", "application/json");
            place.send(request.body(payload)).await
        }
    }))
    .await;
    for (n, answer) in answers.iter().enumerate() {
        if n % 10 == 3 {
            assert_eq!(
                (answer.status, answer.code()),
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid_job"),
                "{n}"
            );
        } else {
            assert_eq!(answer.status, StatusCode::CREATED, "{n}: {answer:?}");
        }
    }
}

pub(crate) async fn each_of_many_is_answered_when_asked_for(place: Place) {
    let jobs = json!({"jobs": [{"kind": "k"}, {"kind": ""}, {"kind": "k", "priority": 4}, {"kind": "k", "priority": 9}, null]});
    let all = place.post("/v1/jobs/create-many", &jobs).await;
    assert_eq!(
        (all.status, &all.body["at"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("jobs[1].kind")),
        "{all:?}"
    );
    let answer = place.post("/v1/jobs/create-many?each=true", &jobs).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    assert_eq!(answer.body["jobs"][3]["problem"]["at"], "jobs[3].priority", "{answer:?}");
    assert_eq!(answer.body["jobs"][4]["problem"]["code"], "invalid_body", "{answer:?}");
    let jobs = &answer.body["jobs"];
    assert_eq!(jobs[1]["problem"]["code"], "invalid_job");
    assert_eq!(jobs[1]["problem"]["at"], "jobs[1].kind");
    assert!(jobs[0]["id"].is_string() && jobs[2]["id"].is_string(), "{jobs}");
    assert_eq!(place.get("/v1/jobs").await.body["items"].as_array().unwrap().len(), 2);
}

pub(crate) async fn one_that_a_database_cannot_keep_does_not_touch_its_neighbours(place: Place) {
    // Only PostgreSQL refuses the number, without reporting which job contains it.
    let jobs: Vec<String> = (0..9)
        .map(|n| format!("{{\"kind\": \"k\", \"payload\": {}}}", if n == 6 { "1e-999999" } else { "1" }))
        .collect();
    let body = format!("{{\"jobs\": [{}]}}", jobs.join(","));
    let request = place.request(Method::POST, "/v1/jobs/create-many?each=true");
    let answer = place.send(request.header("content-type", "application/json").body(body)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    for (n, job) in answer.body["jobs"].as_array().unwrap().iter().enumerate() {
        let refused =
            n == 6 && job["problem"]["at"] == "jobs[6].payload" && job["problem"]["code"] == "invalid_job";
        assert!(job["id"].is_string() || refused, "{n}: {job}");
    }
}

pub(crate) async fn large_jobs_of_many_callers_are_all_created(place: Place) {
    let payload = "x".repeat(1_000_000);
    let answers = futures::future::join_all((0..12).map(|_| {
        let (place, body) = (&place, json!({"kind": "k", "payload": &payload}));
        async move {
            // On a busy machine, storing a megabyte can take longer than the server waits for the store.
            wait::until("the job is created", async || {
                let answer = place.send(place.request(Method::POST, "/v1/jobs").json(&body)).await;
                let is_busy = answer.status == StatusCode::SERVICE_UNAVAILABLE;
                assert!(is_busy || answer.status == StatusCode::CREATED, "{answer:?}");
                !is_busy
            })
            .await;
        }
    }));
    answers.await;
}

/// Lets a job of kind `k` fail, once for each message. The last failure is permanent.
pub(crate) async fn fail(place: &Place, messages: &[String]) {
    let store = place.store.as_ref();
    let worker = NewWorker {
        name: "w".into(),
        queues: vec!["default".into()],
        kinds: vec!["k".into()],
        lease: Duration::from_secs(60),
        ..NewWorker::default()
    };
    let worker = store.register_worker(&worker).await.unwrap();
    for (claim_id, message) in (1..).zip(messages) {
        let claim = Claim {
            worker,
            claim_id,
            queues: vec!["default".into()],
            kinds: vec!["k".into()],
            limit: 1,
            thorough: true,
        };
        let run = store.claim(&claim).await.unwrap()[0].run;
        let failure = Failure { code: "boom".into(), message: message.clone() };
        let is_last = claim_id == i32::try_from(messages.len()).unwrap();
        let end = if is_last { End::Fail { failure } } else { End::Retry { delay: Duration::ZERO, failure } };
        store.finish_many(worker, &[Finish { run, end, grouped: false, task: false }]).await.unwrap();
    }
}

pub(crate) async fn attempts_are_told_with_their_ends(place: Place) {
    let id = place.created(&json!({"kind": "k", "max_attempts": 2})).await;
    fail(&place, &["no. 1", "no. 2"].map(str::to_owned)).await;
    let attempts = place.get(&format!("/v1/jobs/{id}/attempts")).await.body;
    assert_eq!(attempts.as_array().unwrap().len(), 2);
    assert_eq!((&attempts[0]["outcome"], &attempts[1]["outcome"]), (&json!("retry"), &json!("fail")));
    assert_eq!(attempts[1]["error_message"], "no. 2");
    assert_eq!(place.get("/v1/workers").await.body[0]["name"], "w");
    assert_eq!(place.get(&format!("/v1/jobs/{id}")).await.body["state"], "failed");
}

/// Reads a list and the pages that its `Link` headers lead to. Returns the rows of each page.
async fn linked_pages(place: &Place, path: String) -> Vec<Vec<Value>> {
    let (mut pages, mut next) = (Vec::new(), Some(path));
    while let Some(path) = next {
        let response = place.request(Method::GET, &path).send().await.unwrap();
        let link = response.headers().get("link").map(|link| link.to_str().unwrap().to_owned());
        next = link
            .map(|link| link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap().to_owned());
        pages.push(response.json().await.unwrap());
    }
    pages
}

pub(crate) async fn a_long_history_and_its_attempts_have_pages(place: Place) {
    let id = place.created(&json!({"kind": "k", "max_attempts": 9})).await;
    // Two messages fill a page of 4 MiB.
    let messages: Vec<String> = (1..=5).map(|n| format!("{n} {}", "x".repeat(2_200_000))).collect();
    fail(&place, &messages).await;
    let pages = linked_pages(&place, format!("/v1/jobs/{id}/history?limit=2")).await;
    let verbs: Vec<&str> = pages.iter().flatten().map(|entry| entry["verb"].as_str().unwrap()).collect();
    let attempt = ["claim", "retry"];
    assert_eq!(verbs[0], "create");
    assert_eq!(verbs[1..9], [attempt; 4].concat());
    assert_eq!(verbs[9..], ["claim", "fail"]);
    assert!(pages[..5].iter().all(|page| page.len() == 2), "pages of {:?}", pages.iter().map(Vec::len));

    let pages = linked_pages(&place, format!("/v1/jobs/{id}/attempts")).await;
    assert!(pages.len() > 1, "the messages of all attempts do not fit one page");
    let attempts: Vec<_> = pages.iter().flatten().collect();
    assert_eq!(attempts.len(), 5);
    for (attempt, message) in attempts.iter().zip(&messages) {
        assert_eq!(attempt["error_message"], message.as_str(), "each has its end");
    }
    // A job that has waited for years without a claim: its attempts are not looked for in its whole history.
    let waiting = place.created(&json!({"kind": "other"})).await;
    let waiting_id: JobId = waiting.parse().unwrap();
    for _ in 0..600 {
        for verb in [Verb::Abort, Verb::Resume] {
            place.store.operate(waiting_id, &Operation::new(verb)).await.unwrap();
        }
    }
    let pages = linked_pages(&place, format!("/v1/jobs/{waiting}/attempts")).await;
    assert_eq!(pages, [Vec::<Value>::new(), Vec::new()]);
    let absent = place.get("/v1/jobs/0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c/attempts?after=3").await;
    assert_eq!(absent.code(), "no_such_job");
}

/// Returns the ids of the jobs in a response, newest first.
fn listed(answer: &Answer) -> Vec<&str> {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.body["items"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect()
}

pub(crate) async fn jobs_are_found_by_what_is_in_them(place: Place) {
    let one = place.created(&json!({ "kind": "mail", "payload": { "to": { "id": 42 } } })).await;
    let two = place.created(&json!({ "kind": "mail", "payload": { "to": { "id": 43 } } })).await;
    assert_eq!(listed(&place.get("/v1/jobs?payload=to.id%3D42").await), [one.as_str()]);
    let all = place.get("/v1/jobs?created_from=2026-01-01T00:00:00Z").await;
    assert_eq!(listed(&all), [two.as_str(), &one]);
    assert!(listed(&place.get("/v1/jobs?created_before=2026-01-01T00:00:00Z").await).is_empty());
    assert!(listed(&place.get("/v1/jobs?error=disk").await).is_empty());
    let refused = place.get("/v1/jobs?payload=to.id").await;
    assert_eq!((refused.status, refused.at()), (StatusCode::BAD_REQUEST, "query payload"));
}

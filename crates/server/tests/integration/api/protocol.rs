//! Tests of the worker protocol.

use std::time::Duration;

use jiff::Timestamp;
use milepost_core::retry::RetryPolicy;
use milepost_testkit::wait;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::{Answer, Place};

/// A worker for kind `k` in the queue `default`.
struct Worker<'a> {
    place: &'a Place,
    id: i64,
}

impl<'a> Worker<'a> {
    async fn register(place: &'a Place) -> Self {
        let request = json!({"name": "w", "queues": ["default"], "kinds": ["k"], "lease_ms": 60_000});
        let answer = place.post("/v1/workers", &request).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        Self { place, id: answer.body["id"].as_i64().unwrap() }
    }

    async fn tell(&self, verb: &str, body: Value) -> Answer {
        self.place.post(&format!("/v1/workers/{}/{verb}", self.id), &body).await
    }

    /// Returns the jobs of one claim.
    async fn claim(&self, more: Value) -> Vec<Value> {
        let mut request = json!({"queues": ["default"], "kinds": ["k"], "limit": 10});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.tell("claim", request).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.body["jobs"].as_array().unwrap().clone()
    }

    async fn claim_one(&self) -> Value {
        let jobs = self.claim(json!({"wait_ms": 20_000})).await;
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        jobs[0].clone()
    }

    /// Reports the end of a run and returns the result.
    async fn finish(&self, run: &Value, mut end: Value) -> String {
        end["run"] = run.clone();
        let answer = self.tell("finish", json!({"runs": [end]})).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.body["runs"][0].as_str().unwrap().to_owned()
    }
}

async fn state(place: &Place, id: &str) -> Value {
    place.get(&format!("/v1/jobs/{id}")).await.body["state"].clone()
}

pub(crate) async fn a_job_is_run_by_a_worker_that_speaks_http(place: Place) {
    let id = place.created(&json!({"kind": "k", "payload": {"n": 1}, "timeout_ms": 900})).await;
    let worker = Worker::register(&place).await;
    let job = worker.claim_one().await;
    assert_eq!((&job["id"], &job["payload"]["n"], &job["timeout_ms"]), (&json!(id), &json!(1), &json!(900)));
    let report = json!({"run": job["run"], "progress": {"done": 1, "total": 2, "message": "half"}});
    assert_eq!(worker.tell("report", json!({"runs": [report]})).await.body, json!({"accepted": [true]}));
    let view = place.get(&format!("/v1/jobs/{id}")).await.body;
    assert_eq!((&view["state"], &view["progress"]["message"]), (&json!("running"), &json!("half")));
    let end = json!({"outcome": "succeeded", "result": {"sent": true}});
    assert_eq!(worker.finish(&job["run"], end.clone()).await, "accepted");
    assert_eq!(worker.finish(&job["run"], end).await, "repeated", "its response may have been lost");
    let view = place.get(&format!("/v1/jobs/{id}")).await.body;
    assert_eq!((&view["state"], &view["result"]), (&json!("succeeded"), &json!({"sent": true})));
    let gone = place.send(place.request(Method::DELETE, &format!("/v1/workers/{}", worker.id))).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    assert_eq!(worker.tell("heartbeat", json!({})).await.code(), "worker_lost");
}

pub(crate) async fn a_result_that_cannot_be_stored_fails_its_run_alone(place: Place) {
    let bad = place.created(&json!({"kind": "k"})).await;
    let good = place.created(&json!({"kind": "k"})).await;
    let worker = Worker::register(&place).await;
    let jobs = worker.claim(json!({"wait_ms": 20_000})).await;
    let run = |id: &str| jobs.iter().find(|job| job["id"] == id).unwrap()["run"].as_str().unwrap().to_owned();
    let path = format!("/v1/workers/{}", worker.id);
    let report = format!(
        r#"{{"runs": [{{"run": "{}", "checkpoint": 1e400}}, {{"run": "{}", "progress": {{"done": 3}}, "checkpoint": 7}}]}}"#,
        run(&bad),
        run(&good)
    );
    let answer = place.post_text(&format!("{path}/report"), report).await;
    assert_eq!((answer.code(), &answer.body["at"]), ("invalid_checkpoint", &json!("runs[0].checkpoint")));
    let view = place.get(&format!("/v1/jobs/{good}")).await.body;
    assert_eq!((&view["progress"]["done"], &view["checkpoint"]), (&json!(3), &json!(7)), "it is stored");
    let ends = format!(
        r#"{{"runs": [{{"run": "{}", "outcome": "succeeded", "result": [1e400]}}, {{"run": "{}", "outcome": "succeeded", "result": 7}}]}}"#,
        run(&bad),
        run(&good)
    );
    let answer = place.post_text(&format!("{path}/finish"), ends).await;
    assert_eq!(answer.body["runs"], json!(["accepted", "accepted"]), "{answer:?}");
    assert_eq!(state(&place, &bad).await, "failed");
    assert_eq!(state(&place, &good).await, "succeeded");
}

pub(crate) async fn a_claim_waits_until_there_is_a_job(place: Place) {
    let worker = Worker::register(&place).await;
    assert!(worker.claim(json!({})).await.is_empty(), "it waits only on request");
    let later = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        place.created(&json!({"kind": "k"})).await
    };
    let (job, id) = futures::join!(worker.claim_one(), later);
    assert_eq!(job["id"], id.as_str());
}

pub(crate) async fn a_failed_run_is_tried_again_until_its_attempts_are_spent(place: Place) {
    let id = place.created(&json!({"kind": "k", "max_attempts": 2})).await;
    let worker = Worker::register(&place).await;
    let first = worker.claim_one().await;
    let checkpoint = json!({"run": first["run"], "checkpoint": {"row": 17}});
    worker.tell("report", json!({"runs": [checkpoint]})).await;
    let boom = json!({"outcome": "failed", "error_code": "boom", "message": "no. 1"});
    assert_eq!(worker.finish(&first["run"], boom.clone()).await, "accepted");
    assert_eq!(state(&place, &id).await, "retry_wait");
    place.post(&format!("/v1/jobs/{id}/operate"), &json!({"operation": "retry"})).await;
    let second = worker.claim_one().await;
    assert_eq!((&second["attempt"], &second["checkpoint"]), (&json!(2), &json!({"row": 17})));
    assert_eq!(
        worker.finish(&first["run"], json!({"outcome": "succeeded"})).await,
        "fenced",
        "another run holds the job"
    );
    assert_eq!(state(&place, &id).await, "running");
    assert_eq!(worker.finish(&second["run"], boom).await, "accepted");
    assert_eq!(state(&place, &id).await, "failed");
    let again = place.created(&json!({"kind": "k"})).await;
    let job = worker.claim_one().await;
    worker.finish(&job["run"], json!({"outcome": "failed", "retryable": false})).await;
    assert_eq!(state(&place, &again).await, "failed", "failures that are not retryable are not retried");
}

pub(crate) async fn a_failed_run_waits_for_the_backoff_that_its_worker_states(place: Place) {
    let worker = Worker::register(&place).await;
    let began = Timestamp::now();
    // Longer than the default, which is at most an hour.
    let hours = |hours: i64| json!({"base_ms": hours * 3_600_000, "cap_ms": hours * 3_600_000, "jitter": 0});
    let wait = async |end: Value| {
        let id = place.created(&json!({"kind": "k"})).await;
        let job = worker.claim_one().await;
        assert_eq!(worker.finish(&job["run"], end).await, "accepted");
        let job = place.get(&format!("/v1/jobs/{id}")).await.body;
        let ready_at: Timestamp = job["ready_at"].as_str().unwrap().parse().unwrap();
        ready_at.duration_since(began).as_secs() / 3600
    };
    assert_eq!(wait(json!({"outcome": "failed"})).await, 0);
    assert_eq!(wait(json!({"outcome": "failed", "backoff": hours(2)})).await, 2);
    assert_eq!(wait(json!({"outcome": "failed", "backoff": hours(2), "delay_ms": 10_800_000})).await, 3);
}

pub(crate) async fn a_rescued_job_waits_for_the_backoff_of_its_lost_worker(place: Place) {
    let id = place.created(&json!({"kind": "k"})).await;
    let hours = json!({"base_ms": 7_200_000, "cap_ms": 7_200_000, "jitter": 0});
    let request = json!({"name": "w", "queues": ["default"], "kinds": ["k"], "lease_ms": 1_000, "backoffs": {"k": hours}});
    let answer = place.post("/v1/workers", &request).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    let worker = Worker { place: &place, id: answer.body["id"].as_i64().unwrap() };
    worker.claim_one().await;
    let began = Timestamp::now();
    wait::until("the job was taken from the lost worker", || async {
        let delay = |_: &str, attempt: u32, policy: Option<&RetryPolicy>| {
            policy.copied().unwrap_or_default().delay(attempt, 0.5)
        };
        place.store.rescue_expired(10, &delay).await.unwrap();
        state(&place, &id).await == "retry_wait"
    })
    .await;
    let job = place.get(&format!("/v1/jobs/{id}")).await.body;
    let ready_at: Timestamp = job["ready_at"].as_str().unwrap().parse().unwrap();
    assert!(ready_at.duration_since(began).as_secs() >= 7_200, "{job}");
}

pub(crate) async fn a_backoff_that_contradicts_itself_is_refused(place: Place) {
    let worker = Worker::register(&place).await;
    let run = json!("0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c.1.1.25.--");
    for (backoff, words) in [
        (json!({"base_ms": 2, "cap_ms": 1}), "longer than the cap"),
        (json!({"jitter": 1.5}), "the jitter must be 0 to 1"),
        (json!({"base_ms": 3_600_001}), "longer than the cap"),
    ] {
        let register = json!({"name": "w", "queues": ["q"], "kinds": ["k"], "backoffs": {"k": backoff}});
        let refused = place.post("/v1/workers", &register).await;
        assert_eq!((refused.code(), refused.at()), ("invalid_backoff", "backoffs.k"), "{refused:?}");
        assert!(refused.body["detail"].as_str().unwrap().contains(words), "{refused:?}");
        let end = json!({"runs": [{"run": run, "outcome": "failed", "backoff": backoff}]});
        let refused = worker.tell("finish", end).await;
        assert_eq!((refused.code(), refused.at()), ("invalid_backoff", "runs[0].backoff"), "{refused:?}");
    }
    let register = json!({"name": "w", "queues": ["q"], "kinds": ["k"], "backoffs": {"mail": {}}});
    let refused = place.post("/v1/workers", &register).await;
    assert_eq!((refused.code(), refused.at()), ("invalid_backoff", "backoffs.mail"), "{refused:?}");
}

pub(crate) async fn a_heartbeat_tells_what_to_stop(place: Place) {
    let id = place.created(&json!({"kind": "k"})).await;
    let worker = Worker::register(&place).await;
    let job = worker.claim_one().await;
    assert_eq!(worker.tell("heartbeat", json!({})).await.body, json!({"stops": []}));
    let asked = place
        .post(&format!("/v1/jobs/{id}/operate"), &json!({"operation": "cancel", "grace_ms": 60_000}))
        .await;
    assert_eq!(asked.body["outcome"], "stop_requested");
    let told = worker.tell("heartbeat", json!({})).await.body;
    assert_eq!((&told["stops"][0]["job"], &told["stops"][0]["verb"]), (&json!(id), &json!("cancel")));
    assert_eq!(worker.finish(&job["run"], json!({"outcome": "canceled"})).await, "accepted");
    assert_eq!(state(&place, &id).await, "canceled");
}

pub(crate) async fn the_end_of_a_run_hands_its_groups_slot_on(place: Place) {
    for _ in 0..2 {
        place.created(&json!({"kind": "k", "group": "g"})).await;
    }
    let worker = Worker::register(&place).await;
    let first = worker.claim_one().await;
    assert!(worker.claim(json!({})).await.is_empty(), "one job of a group runs at a time");
    assert_eq!(
        worker.finish(&first["run"], json!({"outcome": "snoozed", "delay_ms": 3_600_000})).await,
        "accepted"
    );
    assert!(worker.claim(json!({})).await.is_empty(), "a snoozed job keeps the slot");
    let id = first["id"].as_str().unwrap();
    place.post(&format!("/v1/jobs/{id}/operate"), &json!({"operation": "cancel"})).await;
    let second = worker.claim_one().await;
    assert_ne!(second["id"], first["id"]);
}

pub(crate) async fn what_a_worker_holds_can_be_asked_for(place: Place) {
    place.created(&json!({"kind": "k"})).await;
    let worker = Worker::register(&place).await;
    let claimed = worker.claim(json!({"claim_id": 41})).await;
    let held = place.get(&format!("/v1/workers/{}/jobs", worker.id)).await.body;
    assert_eq!((&held["jobs"][0], &held["jobs"][0]["claim_id"]), (&claimed[0], &json!(41)));
}

pub(crate) async fn what_a_worker_says_wrong_is_told(place: Place) {
    let worker = Worker::register(&place).await;
    let run = json!("0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c.1.1.25.--");
    assert_eq!(worker.finish(&run, json!({"outcome": "succeeded"})).await, "fenced", "there is no such job");
    let twice = json!({"runs": [{"run": run, "outcome": "succeeded"}, {"run": run, "outcome": "succeeded"}]});
    assert_eq!(worker.tell("finish", twice).await.at(), "runs[1]");
    let no_run = worker.tell("finish", json!({"runs": [{"run": "x", "outcome": "succeeded"}]})).await;
    assert_eq!((no_run.code(), no_run.at()), ("invalid_body", "runs[0].run"));
    let nobody = place.post("/v1/workers/2000000000/heartbeat", &json!({})).await;
    assert_eq!((nobody.status, nobody.code()), (StatusCode::CONFLICT, "worker_lost"));
    for (body, at) in [
        (json!({"name": "w", "queues": [], "kinds": ["k"]}), "queues"),
        (json!({"name": "w", "queues": ["q"], "kinds": ["a\u{0}"]}), "kinds[0]"),
        (json!({"name": "w", "queues": ["q"], "kinds": ["k"], "lease_ms": 1}), "lease_ms"),
    ] {
        let answer = place.post("/v1/workers", &body).await;
        assert_eq!((answer.status, answer.at()), (StatusCode::UNPROCESSABLE_ENTITY, at), "{answer:?}");
    }
    let greedy = worker.tell("claim", json!({"queues": ["q"], "kinds": ["k"], "limit": 100_000})).await;
    assert_eq!(greedy.at(), "limit");
}

pub(crate) async fn of_a_long_failure_the_beginning_is_kept(place: Place) {
    let id = place.created(&json!({"kind": "k"})).await;
    let worker = Worker::register(&place).await;
    let run = worker.claim_one().await["run"].clone();
    let end = json!({"outcome": "failed", "retryable": false, "error_code": "é".repeat(300), "message": "ü".repeat(20_000)});
    assert_eq!(worker.finish(&run, end).await, "accepted");
    let attempt = &place.get(&format!("/v1/jobs/{id}/attempts")).await.body[0];
    assert_eq!(attempt["error_code"], "é".repeat(200));
    assert_eq!(attempt["error_message"], "ü".repeat(10_000));
}

pub(crate) async fn a_worker_serves_no_more_pairs_than_a_claim_can_look_for(place: Place) {
    let names = |count: usize| (0..count).map(|n| format!("n{n}")).collect::<Vec<_>>();
    let refused =
        place.post("/v1/workers", &json!({"name": "w", "queues": names(1000), "kinds": names(1000)})).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::UNPROCESSABLE_ENTITY, "invalid_worker"));
    let worker = Worker::register(&place).await;
    let claim = worker.tell("claim", json!({"queues": names(3), "kinds": names(1000)})).await;
    assert_eq!((claim.status, claim.at()), (StatusCode::UNPROCESSABLE_ENTITY, "queues"));
    let most = json!({"name": "w", "queues": names(2), "kinds": names(1000)});
    assert_eq!(place.post("/v1/workers", &most).await.status, StatusCode::CREATED);
}

pub(crate) async fn a_job_is_spoken_of_once_in_a_request(place: Place) {
    place.created(&json!({"kind": "k"})).await;
    let worker = Worker::register(&place).await;
    let run = worker.claim_one().await["run"].clone();
    let twice = json!({"runs": [{"run": run, "checkpoint": 1}, {"run": run, "checkpoint": 2}]});
    let refused = worker.tell("report", twice).await;
    assert_eq!(
        (refused.status, refused.code(), refused.at()),
        (StatusCode::UNPROCESSABLE_ENTITY, "run_twice", "runs[1]")
    );
    let end = json!({"run": run, "outcome": "succeeded"});
    let refused = worker.tell("finish", json!({"runs": [end, end]})).await;
    assert_eq!((refused.code(), refused.at()), ("run_twice", "runs[1]"));
}

pub(crate) async fn what_workers_that_speak_http_do_is_counted(place: Place) {
    for _ in 0..2 {
        place.created(&json!({"kind": "k"})).await;
    }
    let worker = Worker::register(&place).await;
    let jobs = worker.claim(json!({"wait_ms": 20_000, "limit": 2})).await;
    worker.finish(&jobs[0]["run"], json!({"outcome": "succeeded"})).await;
    worker.finish(&jobs[0]["run"], json!({"outcome": "succeeded"})).await;
    let cancel = json!({"operation": "cancel", "grace_ms": 0});
    let path = format!("/v1/jobs/{}/operate", jobs[1]["id"].as_str().unwrap());
    assert!(place.post(&path, &cancel).await.status.is_success());
    assert_eq!(worker.finish(&jobs[1]["run"], json!({"outcome": "failed"})).await, "fenced");
    place.send(place.request(Method::DELETE, &format!("/v1/workers/{}", worker.id))).await;
    worker.tell("heartbeat", json!({})).await;
    let told = place.get("/metrics").await;
    let told = told.body.as_str().unwrap();
    for line in [
        "milepost_worker_claimed_jobs_total 2",
        "milepost_worker_claim_jobs_count 1",
        "milepost_worker_claim_jobs_sum 2.0",
        "milepost_worker_end_jobs_count 3",
        "milepost_worker_runs_total{outcome=\"succeeded\"} 1",
        "milepost_worker_repeated_ends_total 1",
        "milepost_worker_fenced_ends_total 1",
        "milepost_worker_leases_lost_total 1",
        "milepost_worker_run_seconds_count{kind=\"k\"} 2",
        "milepost_job_wait_seconds_count{queue=\"default\",kind=\"k\"} 2",
    ] {
        assert!(
            told.lines().any(|its| its.trim_end_matches(".0") == line.trim_end_matches(".0")),
            "{line} is not in\n{told}"
        );
    }
}

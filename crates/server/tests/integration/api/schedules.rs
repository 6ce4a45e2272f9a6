//! Tests of schedules: store, read, run and remove.

use milepost_core::job::NewJob;
use milepost_core::schedule::{Schedule, Source, Spec};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::Place;

pub(crate) async fn a_schedule_is_stored_shown_run_and_removed(place: Place) {
    let nightly = json!({
        "cron": "30 3 * * *", "zone": "Europe/Berlin", "kind": "report", "payload": {"n": 1}, "queue": "low", "priority": 3,
        "max_attempts": 2, "group": "g", "timeout_ms": 90_000, "misfire": "all", "misfire_max": 7, "misfire_grace_ms": 5_000,
    });
    let path = "/v1/schedules/night%20ly";
    let stored = place.ask(Method::PUT, path, nightly).await;
    assert_eq!(stored.status, StatusCode::OK, "{stored:?}");
    let shown = place.ask(Method::GET, path, Value::Null).await.body;
    assert_eq!(shown["ticks"].as_array().unwrap().len(), 5);
    assert_eq!((&shown["spec"], &shown["zone"]), (&json!("30 3 * * *"), &json!("Europe/Berlin")));
    assert_eq!((&shown["name"], &shown["source"]), (&json!("night ly"), &json!("operator")));
    assert_eq!((&shown["job"]["kind"], &shown["job"]["timeout_ms"]), (&json!("report"), &json!(90_000)));
    assert_eq!(shown["misfire"], json!({"policy": "all", "max": 7}));
    assert_eq!(shown["next_at"], shown["ticks"][0]);
    let listed = place.ask(Method::GET, "/v1/schedules", Value::Null).await.body;
    assert_eq!(listed[0]["name"], "night ly");
    let operate = format!("{path}/operate");
    let operated = |operation: &str| place.ask(Method::POST, &operate, json!({"operation": operation}));
    assert_eq!(operated("pause").await.body, json!({"changed": true}));
    assert_eq!(operated("pause").await.body, json!({"changed": false}));
    assert!(place.get(path).await.body["paused_at"].is_string());
    let made = operated("run_now").await.body;
    let job = place.get(&format!("/v1/jobs/{}", made["made"]["job"].as_str().unwrap())).await.body;
    assert_eq!(
        (&job["kind"], &job["payload"], &job["queue"]),
        (&json!("report"), &json!({"n": 1}), &json!("low"))
    );
    assert_eq!(operated("resume").await.body, json!({"changed": true}));
    assert_eq!(place.ask(Method::DELETE, path, Value::Null).await.status, StatusCode::NO_CONTENT);
}

pub(crate) async fn schedules_are_listed_in_pages(place: Place) {
    for name in ["a", "b/ü", "c"] {
        let schedule =
            Schedule::new(name, Spec::cron("@daily", "UTC").unwrap(), NewJob::new("k", &()).unwrap());
        place.store.put_schedule(&schedule, Source::Operator).await.unwrap();
    }
    let request = |path: &str| place.request(Method::GET, path).send();
    let first = request("/v1/schedules?limit=2").await.unwrap();
    let link = first.headers()["link"].to_str().unwrap().to_owned();
    let names = |page: &Value| -> Vec<String> {
        page.as_array().unwrap().iter().map(|view| view["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&first.json().await.unwrap()), ["a", "b/ü"]);
    let next = link.strip_prefix('<').unwrap().split('>').next().unwrap();
    let second = request(next).await.unwrap();
    assert!(second.headers().get("link").is_none());
    assert_eq!(names(&second.json().await.unwrap()), ["c"]);
}

pub(crate) async fn run_now_that_is_repeated_under_its_key_makes_one_job(place: Place) {
    let path = "/v1/schedules/nightly";
    place.ask(Method::PUT, path, json!({"cron": "@daily", "zone": "UTC", "kind": "report"})).await;
    let run_now = async |key: &str| {
        let request = place.request(Method::POST, &format!("{path}/operate")).header("Idempotency-Key", key);
        place.send(request.json(&json!({"operation": "run_now"}))).await.body
    };
    let (first, again, other) = (run_now("a").await, run_now("a").await, run_now("b").await);
    assert_eq!([&first["changed"], &again["changed"], &other["changed"]], [true, false, true]);
    assert_eq!(first["made"]["job"], again["made"]["job"]);
    assert_ne!(first["made"]["job"], other["made"]["job"]);
}

pub(crate) async fn a_schedule_that_there_is_not_is_not_found(place: Place) {
    let (path, operate) = ("/v1/schedules/absent", "/v1/schedules/absent/operate");
    for (method, path, body) in [
        (Method::GET, path, Value::Null),
        (Method::DELETE, path, Value::Null),
        (Method::POST, operate, json!({"operation": "pause"})),
        (Method::POST, operate, json!({"operation": "resume"})),
        (Method::POST, operate, json!({"operation": "run_now"})),
    ] {
        let answer = place.ask(method, path, body).await;
        assert_eq!((answer.status, answer.code()), (StatusCode::NOT_FOUND, "no_such_schedule"));
    }
}

pub(crate) async fn a_schedule_of_a_configuration_is_not_removed(place: Place) {
    let schedule = Schedule::new("s", Spec::parse("@hourly", "UTC").unwrap(), NewJob::new("k", &()).unwrap());
    place.store.put_schedule(&schedule, Source::Config).await.unwrap();
    let refused = place.ask(Method::DELETE, "/v1/schedules/s", Value::Null).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::CONFLICT, "of_configuration"));
    let mine = place.ask(Method::PUT, "/v1/schedules/s", json!({"every": "90m", "kind": "k"})).await.body;
    assert_eq!((&mine["source"], &mine["spec"]), (&json!("operator"), &json!("@every 1h 30m")));
    assert_eq!(
        place.ask(Method::DELETE, "/v1/schedules/s", Value::Null).await.status,
        StatusCode::NO_CONTENT
    );
}

pub(crate) async fn schedules_that_cannot_be_are_refused(place: Place) {
    for (body, at) in [
        (json!({"kind": "k"}), "cron"),
        (json!({"cron": "@daily", "every": "1h", "kind": "k"}), "every"),
        (json!({"every": "soon", "kind": "k"}), "every"),
        (json!({"every": "1h", "zone": "UTC", "kind": "k"}), "zone"),
        (json!({"cron": "61 * * * *", "kind": "k"}), "cron"),
        (json!({"cron": "@daily", "zone": "Europe/Berlim", "kind": "k"}), "zone"),
        (json!({"cron": "@daily"}), "kind"),
        (json!({"cron": "@daily", "kind": "k", "dag": "d"}), "dag"),
        (json!({"cron": "@daily", "kind": "k", "input": {}}), "input"),
        (json!({"cron": "@daily", "dag": "d", "timeout_ms": 1}), "timeout_ms"),
        (json!({"cron": "@daily", "kind": "k", "misfire_max": 1}), "misfire_max"),
        (json!({"cron": "@daily", "kind": "k", "misfire": "all", "misfire_max": 1_000_000}), "misfire_max"),
        (json!({"cron": "@daily", "kind": "k\u{0}"}), ""),
        (json!({"cron": "@daily", "kind": "k", "payload": "\u{0}"}), ""),
    ] {
        let answer = place.ask(Method::PUT, "/v1/schedules/s", body.clone()).await;
        assert_eq!(
            (answer.status, answer.code(), answer.at()),
            (StatusCode::UNPROCESSABLE_ENTITY, "invalid_schedule", at),
            "{body}"
        );
    }
    let dag = json!({"name": "d", "tasks": {"a": {"kind": "x"}}, "input_schema": {"required": ["day"]}});
    assert!(place.post("/v1/dags", &dag).await.status.is_success());
    let unfit = json!({"cron": "@daily", "dag": "d", "input": {}});
    assert_eq!(place.ask(Method::PUT, "/v1/schedules/s", unfit).await.at(), "input");
    let body = json!({"cron": "@daily", "kind": "k"});
    assert_eq!(place.ask(Method::PUT, "/v1/schedules/%00", body.clone()).await.at(), "path name");
    assert_eq!(place.ask(Method::PUT, "/v1/schedules/%07", body).await.at(), "path name");
    assert_eq!(place.get("/v1/schedules").await.body, json!([]));
}

pub(crate) async fn ticks_are_previewed(place: Place) {
    let path = "/v1/ticks?cron=30%202%20*%20*%20*&zone=Europe/Berlin&from=2027-03-27T12:00:00Z&limit=2";
    let ticks = place.ask(Method::GET, path, Value::Null).await.body;
    assert_eq!(ticks.as_array().unwrap().len(), 2);
    assert!(ticks[0]["local"].as_str().unwrap().contains("[Europe/Berlin]"), "{ticks}");
    assert_eq!(
        place.ask(Method::GET, "/v1/ticks?every=1h", Value::Null).await.body.as_array().unwrap().len(),
        10
    );
    for (path, at) in [
        ("/v1/ticks", "query cron"),
        ("/v1/ticks?cron=x", "query cron"),
        ("/v1/ticks?cron=@daily&zone=x", "query zone"),
        ("/v1/ticks?every=1h&limit=1000000", "query limit"),
        ("/v1/ticks?every=1h&from=never", "query from"),
        ("/v1/ticks?cron=%00", "query cron"),
    ] {
        let answer = place.ask(Method::GET, path, Value::Null).await;
        assert!(answer.status.is_client_error(), "{path}: {answer:?}");
        assert_eq!(answer.at(), at, "{path}: {answer:?}");
    }
}

pub(crate) async fn a_schedule_that_is_removed_at_the_same_moment_was_stored(place: Place) {
    let path = "/v1/schedules/hourly";
    for _ in 0..10 {
        let pairs = (0..10).map(async |_| {
            let put = place.ask(Method::PUT, path, json!({"every": "1h", "kind": "report"}));
            let delete = place.send(place.request(Method::DELETE, path));
            let (stored, _) = tokio::join!(put, delete);
            // On a busy machine, some wait too long for the lock of the schedule.
            assert!(stored.status == StatusCode::OK || stored.code() == "held", "{stored:?}");
        });
        futures::future::join_all(pairs).await;
    }
}

//! Tests of tokens that are limited to queues and kinds: two teams on one store, of which one never sees the other.

use std::collections::BTreeSet;

use milepost_core::batch::listing::BatchFilter;
use milepost_core::bulk::listing::BulkFilter;
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::token::{NewToken, Role, Secret, TokenScope};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use milepost_testkit::database::Database;
use milepost_testkit::inbox::Desk;
use milepost_testkit::wait;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::corpus::{self, text};
use crate::api::place::{Answer, Place, secret};

/// The team that a limited token belongs to, and the other one. All their names begin with these words.
const OURS: &str = "mail";
const OTHERS: &str = "zebra";

/// Makes a test for each store from a function.
macro_rules! on_both {
    ($($test:ident)+) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let folder = tempfile::tempdir().unwrap();
                let store = super::SqliteStore::open(folder.path().join("jobs.db"), super::SqliteOptions::default()).unwrap();
                store.migrate().await.unwrap();
                super::$test(super::Teams::on(super::Desk::sqlite(store)).await).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let (_database, store) = super::Database::with_store().await;
                super::$test(super::Teams::on(super::Desk::postgres(store, false).await).await).await;
            })+
        }
    };
}

on_both! {
    no_route_shows_a_limited_token_anything_of_another_team
    a_limited_token_finds_everything_of_its_team
    a_limited_token_changes_nothing_of_another_team
    what_belongs_to_another_team_is_answered_as_if_it_did_not_exist
    names_of_another_team_are_answered_as_if_they_did_not_exist
    nothing_of_another_team_is_started_or_found
    an_operation_on_many_jobs_changes_only_own_ones
    a_limited_worker_runs_only_jobs_of_its_queues_and_kinds
    a_limited_stream_shows_only_own_changes
    who_signs_in_with_a_limited_token_stays_limited
}

/// A server on a store with all that two teams can have.
struct Teams {
    place: Place,
    /// Ids of all jobs, runs and batches of the other team.
    others: BTreeSet<String>,
    /// The same of the own team.
    ours: BTreeSet<String>,
}

impl Teams {
    async fn on(desk: Desk) -> Self {
        let place = Place::serve(desk.store.clone()).await;
        corpus::fill(&desk, OTHERS).await;
        let others = ids(desk.store.as_ref()).await;
        corpus::fill(&desk, OURS).await;
        let ours = ids(desk.store.as_ref()).await.difference(&others).cloned().collect();
        Self { place, others, ours }
    }

    /// Creates a token of this role that is limited to the names of the own team: to its kinds, which all its jobs have.
    async fn token(&self, role: Role) -> Secret {
        self.limited(role, &[], &["mail~*"]).await
    }

    async fn limited(&self, role: Role, queues: &[&str], kinds: &[&str]) -> Secret {
        let owned = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let scope = TokenScope { queues: owned(queues), kinds: owned(kinds) };
        let name = format!("limited {role} to {scope}");
        let token = NewToken { scope: Some(scope), ..NewToken::new(name, role, &secret(), "tester") };
        let secret = self.place.token_of(token).await;
        let asked = async || self.place.get("/v1/queues").await.status == StatusCode::UNAUTHORIZED;
        wait::until("tokens are required", asked).await;
        secret
    }

    async fn ask(&self, token: &Secret, method: Method, path: &str, body: &Value) -> Answer {
        let mut request = self.place.request(method.clone(), path).bearer_auth(token.reveal());
        if matches!(method, Method::POST | Method::PUT | Method::PATCH) {
            request = request.json(body);
        }
        self.place.send(request).await
    }

    async fn get(&self, token: &Secret, path: &str) -> Answer {
        self.ask(token, Method::GET, path, &Value::Null).await
    }
}

async fn ids(store: &dyn Store) -> BTreeSet<String> {
    let jobs = store.jobs(&JobFilter { limit: 1_000, ..JobFilter::default() }).await.unwrap();
    let runs = store.bulks(&BulkFilter { limit: 1_000, ..BulkFilter::default() }).await.unwrap();
    let batches =
        store.batches(&BatchFilter { limit: 1_000, inner: true, ..BatchFilter::default() }).await.unwrap();
    let jobs = jobs.iter().map(|job| job.id.to_string());
    let runs = runs.iter().map(|run| run.id.to_string());
    jobs.chain(runs).chain(batches.iter().map(|batch| batch.id.to_string())).collect()
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Returns every route: method and path.
async fn routes(teams: &Teams, token: &Secret) -> Vec<(Method, String)> {
    let document = teams.get(token, "/openapi.json").await.body;
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            routes.push((Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(), path.clone()));
        }
    }
    let others = milepost_server::other_routes();
    routes.extend(others.into_iter().map(|(method, path, _)| (method, path.to_owned())));
    routes
}

/// Returns the requests that a route is tried with: with the ids and names of both teams, where the path has one.
fn requests(teams: &Teams, path: &str) -> Vec<String> {
    if path == "/v1/workers/{id}" || path.starts_with("/v1/workers/{id}/") {
        return (1..=6).map(|id| path.replace("{id}", &id.to_string())).collect();
    }
    if path.contains("{id}") {
        return teams.ours.iter().chain(&teams.others).map(|id| path.replace("{id}", id)).collect();
    }
    if path.contains("{name}") {
        let names = ["dag", "schedule", "bulk job", "kind", "limited kind", "queue"];
        let mut paths: Vec<String> =
            names.iter().map(|name| path.replace("{name}", &encoded(&text(OURS, name)))).collect();
        paths.push(path.replace("{name}", "x"));
        return paths;
    }
    vec![path.to_owned()]
}

/// Fails if an answer contains anything of the other team, except for the id in the request.
fn check(teams: &Teams, what: &str, answer: &str) {
    assert!(!answer.contains(OTHERS), "{what} shows the other team: {answer}");
    for id in teams.others.iter().filter(|id| !what.contains(id.as_str())) {
        assert!(!answer.contains(id.as_str()), "{what} shows the id {id} of the other team: {answer}");
    }
}

async fn no_route_shows_a_limited_token_anything_of_another_team(teams: Teams) {
    let mut tokens = Vec::new();
    for role in [Role::Viewer, Role::Admin, Role::Worker] {
        tokens.push((role, teams.token(role).await));
    }
    tokens.push((Role::Operator, teams.limited(Role::Operator, &["mail~*"], &[]).await));
    let (mut reached, mut refused) = (0, 0);
    for (method, path) in routes(&teams, &tokens[0].1).await {
        for (role, token) in &tokens {
            for path in requests(&teams, &path) {
                let mut request = teams.place.request(method.clone(), &path).bearer_auth(token.reveal());
                if matches!(method, Method::POST | Method::PUT | Method::PATCH) {
                    request = request.json(&json!({}));
                }
                let answer = request.send().await.unwrap();
                let status = answer.status();
                let is_stream =
                    answer.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
                let answer = if is_stream { String::new() } else { answer.text().await.unwrap() };
                let what = format!("{method} {path} for {role}");
                check(&teams, &what, &answer);
                assert!(!status.is_server_error(), "{what}: {status} {answer}");
                reached += u32::from(status.is_success());
                refused += u32::from(answer.contains("outside_scope"));
            }
        }
    }
    assert!(reached > 100 && refused > 30, "{reached} answers, {refused} refusals");
}

async fn a_limited_token_finds_everything_of_its_team(teams: Teams) {
    let token = teams.token(Role::Operator).await;
    let of = async |path: &str| teams.get(&token, path).await.body;
    let count = |list: &Value| list["items"].as_array().or_else(|| list.as_array()).unwrap().len();
    let jobs = teams.place.store.jobs(&JobFilter { limit: 1_000, ..JobFilter::default() }).await.unwrap();
    let own = jobs.iter().filter(|job| job.kind.starts_with(OURS)).count();
    assert!(own > 5 && own < jobs.len());
    assert_eq!(count(&of("/v1/jobs?limit=1000").await), own);
    for (path, expected) in [
        ("/v1/jobs?state=failed", 1),
        ("/v1/batches", 1),
        ("/v1/dags", 1),
        ("/v1/bulk-definitions", 1),
        ("/v1/bulk-runs", 3),
        ("/v1/schedules", 1),
        ("/v1/limits", 1),
    ] {
        assert_eq!(count(&of(path).await), expected, "{path}");
    }
    let queues = of("/v1/queues").await;
    let names: Vec<&str> =
        queues.as_array().unwrap().iter().map(|queue| queue["name"].as_str().unwrap()).collect();
    // The task of the own batch is in the default queue.
    assert_eq!(names, ["default", "mail~queue", "mail~queue of bulk jobs"]);
    assert!(count(&of("/v1/workers").await) >= 2);
    assert!(count(&of("/v1/audit").await) >= 5);
    for id in &teams.ours {
        let found = async |noun: &str| teams.get(&token, &format!("/v1/{noun}/{id}")).await.status;
        assert!(found("jobs").await == StatusCode::OK || found("batches").await == StatusCode::OK, "{id}");
    }
}

async fn a_limited_token_changes_nothing_of_another_team(teams: Teams) {
    let token = teams.limited(Role::Admin, &["mail~*"], &["mail~*"]).await;
    let before = state(&teams).await;
    let why = "test";
    for (method, path, body) in [
        (Method::POST, "/v1/jobs", json!({"kind": "zebra~kind", "queue": "mail~queue", "payload": {}})),
        (Method::POST, "/v1/jobs", json!({"kind": "mail~kind", "queue": "zebra~queue", "payload": {}})),
        (Method::POST, "/v1/jobs", json!({"kind": "mail~kind", "payload": {}})),
        (
            Method::POST,
            "/v1/jobs/create-many",
            json!({"jobs": [{"kind": "mail~kind", "queue": "mail~queue"}, {"kind": "zebra~kind"}]}),
        ),
        (Method::PUT, "/v1/queues/zebra~queue", json!({"paused": false, "reason": why})),
        (Method::PUT, "/v1/limits", json!({"kind": "zebra~limited kind", "rate": "5/s", "reason": why})),
        (Method::PUT, "/v1/limits", json!({"group": "mail~limited group", "concurrency": 1, "reason": why})),
        (
            Method::PUT,
            "/v1/schedules/zebra~schedule",
            json!({"every": "1h", "kind": "mail~kind", "queue": "mail~queue", "payload": {}}),
        ),
        (Method::PUT, "/v1/schedules/new", json!({"every": "1h", "kind": "zebra~kind", "payload": {}})),
        (Method::POST, "/v1/dags", json!({"name": "new", "tasks": {"one": {"kind": "zebra~kind"}}})),
        (
            Method::POST,
            "/v1/dags",
            json!({"name": "zebra~dag", "tasks": {"one": {"kind": "mail~kind", "queue": "mail~queue"}}}),
        ),
        (Method::POST, "/v1/events", json!({"events": []})),
        (Method::POST, "/v1/doctor/repair", json!({"check": "x", "reason": why})),
    ] {
        let answer = teams.ask(&token, method.clone(), path, &body).await;
        let what = format!("{method} {path} {body}: {answer:?}");
        let is_refused = answer.status == StatusCode::FORBIDDEN && answer.code() == "outside_scope";
        assert!(is_refused, "{what}");
        assert!(answer.body["detail"].as_str().unwrap().contains("mail~*"), "{what}");
    }
    assert_eq!(state(&teams).await, before);
    let own = json!({"kind": "mail~kind", "queue": "mail~queue", "payload": {}});
    assert_eq!(teams.ask(&token, Method::POST, "/v1/jobs", &own).await.status, StatusCode::CREATED);
    let pause = json!({"paused": false, "reason": why});
    let path = format!("/v1/queues/{}", encoded("mail~queue"));
    assert_eq!(teams.ask(&token, Method::PUT, &path, &pause).await.status, StatusCode::OK);
}

/// Returns what the tests try to change.
async fn state(teams: &Teams) -> Value {
    let store = teams.place.store.as_ref();
    let jobs = store.jobs(&JobFilter { limit: 1_000, ..JobFilter::default() }).await.unwrap();
    let schedules: Vec<String> =
        store.schedules().await.unwrap().into_iter().map(|view| view.schedule.name).collect();
    let dags: Vec<String> =
        store.dags().await.unwrap().into_iter().map(|view| format!("{} {}", view.dag, view.number)).collect();
    let limits = store.limits().await.unwrap().len();
    let paused = store.queues().await.unwrap().iter().filter(|queue| queue.paused_at.is_some()).count();
    let batches = store.batches(&BatchFilter::default()).await.unwrap();
    let batches: Vec<&str> = batches.iter().map(|batch| batch.state.as_str()).collect();
    let jobs: Vec<String> = jobs.iter().map(|job| format!("{} {}", job.id, job.state)).collect();
    json!([jobs, schedules, dags, limits, paused, batches])
}

async fn what_belongs_to_another_team_is_answered_as_if_it_did_not_exist(teams: Teams) {
    let token = teams.token(Role::Operator).await;
    let before = state(&teams).await;
    let missing = "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";
    let reason = |operation: &str| json!({"operation": operation, "reason": "test"});
    let changes = [
        (Method::GET, "/v1/jobs/{}", Value::Null),
        (Method::GET, "/v1/jobs/{}/history", Value::Null),
        (Method::GET, "/v1/jobs/{}/attempts", Value::Null),
        (Method::POST, "/v1/jobs/{}/operate", reason("cancel")),
        (Method::GET, "/v1/batches/{}", Value::Null),
        (Method::GET, "/v1/batches/{}/tasks", Value::Null),
        (Method::GET, "/v1/batches/{}/graph", Value::Null),
        (Method::GET, "/v1/batches/{}/history", Value::Null),
        (Method::POST, "/v1/batches/{}/operate", reason("cancel")),
        (Method::GET, "/v1/bulk-runs/{}", Value::Null),
        (Method::GET, "/v1/bulk-runs/{}/failures", Value::Null),
        (Method::POST, "/v1/bulk-runs/{}/operate", reason("abort")),
        (Method::POST, "/v1/bulk-runs/{}/retry-failures", Value::Null),
        (Method::PATCH, "/v1/bulk-runs/{}/settings", json!({"reason": "test"})),
        (Method::GET, "/jobs/{}", Value::Null),
        (Method::GET, "/batches/{}", Value::Null),
        (Method::GET, "/bulk/{}", Value::Null),
    ];
    for (method, path, body) in &changes {
        let ask = async |id: &str| {
            let answer = teams.ask(&token, method.clone(), &path.replace("{}", id), body).await;
            (answer.status, answer.body.to_string().replace(id, "ID"))
        };
        let (status, expected) = ask(missing).await;
        for id in &teams.others {
            let (its, answer) = ask(id).await;
            assert_eq!(its, status, "{method} {path} {id}: {answer}");
            if path.starts_with("/v1/") {
                assert_eq!(answer, expected, "{method} {path} {id}");
            }
        }
    }
    let after = state(&teams).await;
    for part in 0..5 {
        assert_eq!(after[part], before[part], "nothing of the other team was changed");
    }
}

async fn names_of_another_team_are_answered_as_if_they_did_not_exist(teams: Teams) {
    let token = teams.token(Role::Operator).await;
    for (path, name) in [
        ("/v1/schedules/{}", "schedule"),
        ("/v1/dags/{}", "dag"),
        ("/v1/dags/{}/versions", "dag"),
        ("/v1/bulk-definitions/{}", "bulk job"),
    ] {
        let ask = async |name: &str| {
            let answer = teams.get(&token, &path.replace("{}", &encoded(name))).await;
            (answer.status, answer.body.to_string().replace(name, "NAME"))
        };
        let expected = ask("no such name").await;
        assert_eq!(expected.0, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(ask(&text(OTHERS, name)).await, expected, "{path}");
        assert_eq!(ask(&text(OURS, name)).await.0, StatusCode::OK, "{path}");
    }
}

async fn nothing_of_another_team_is_started_or_found(teams: Teams) {
    let token = teams.token(Role::Operator).await;
    let start = async |path: &str, body: Value| teams.ask(&token, Method::POST, path, &body).await;
    let of = async |name: &str| start("/v1/batches", json!({"dag": name, "input": {}})).await.status;
    assert_eq!((of("zebra~dag").await, of("mail~dag").await), (StatusCode::NOT_FOUND, StatusCode::CREATED));
    let none = start("/v1/bulk-runs", json!({"name": "no such name"})).await.status;
    assert_eq!(start("/v1/bulk-runs", json!({"name": "zebra~bulk job"})).await.status, none);
    for query in ["queue=zebra~queue", "kind=zebra~kind", "key=zebra~key", "error=zebra"] {
        let found = teams.get(&token, &format!("/v1/jobs?{query}")).await;
        assert_eq!(found.body["items"], json!([]), "{query}");
    }
    for id in teams.others.iter().take(3) {
        let found = teams.get(&token, &format!("/v1/audit?subject={id}")).await;
        assert_eq!(found.body["items"], json!([]), "{id}");
    }
}

async fn an_operation_on_many_jobs_changes_only_own_ones(teams: Teams) {
    let token = teams.token(Role::Operator).await;
    let body = json!({"filter": {"state": "failed"}, "operation": "retry", "reason": "test"});
    let answer = teams.ask(&token, Method::POST, "/v1/jobs/operate-many", &body).await;
    assert_eq!((answer.status, &answer.body["jobs"]), (StatusCode::ACCEPTED, &json!(1)), "{answer:?}");
    let some = answer.body["some"][0].as_str().unwrap();
    assert!(teams.ours.contains(some));
    // The run is its own, because the token has started it.
    let run = answer.body["bulk"].as_str().unwrap();
    let path = format!("/v1/bulk-runs/{run}");
    assert_eq!(teams.get(&token, &path).await.status, StatusCode::OK);
    let another = teams.limited(Role::Operator, &[], &["mail~*", "other"]).await;
    assert_eq!(teams.get(&another, &path).await.status, StatusCode::NOT_FOUND);
}

async fn a_limited_worker_runs_only_jobs_of_its_queues_and_kinds(teams: Teams) {
    let token = teams.limited(Role::Worker, &["mail~*"], &["mail~*"]).await;
    let store = teams.place.store.as_ref();
    for (queue, kind) in [("mail~new", "mail~new"), ("zebra~new", "zebra~new"), ("mail~new", "zebra~new")] {
        store.enqueue(&NewJob::new(kind, &json!({})).unwrap().queue(queue)).await.unwrap();
    }
    let ask = async |path: &str, body: Value| teams.ask(&token, Method::POST, path, &body).await;
    let worker = |queue: &str, kind: &str| json!({"name": "w", "queues": [queue], "kinds": [kind]});
    for (queue, kind) in [("zebra~new", "mail~new"), ("mail~new", "zebra~new")] {
        let refused = ask("/v1/workers", worker(queue, kind)).await;
        assert_eq!((refused.status, refused.code()), (StatusCode::FORBIDDEN, "outside_scope"));
    }
    let made = ask("/v1/workers", worker("mail~new", "mail~new")).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let id = made.body["id"].as_i64().unwrap();
    let claim = |queue: &str, kind: &str| json!({"queues": [queue], "kinds": [kind], "limit": 10});
    let path = format!("/v1/workers/{id}/claim");
    let refused = ask(&path, claim("zebra~new", "zebra~new")).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::FORBIDDEN, "outside_scope"));
    let claimed = ask(&path, claim("mail~new", "mail~new")).await;
    let jobs = claimed.body["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 1, "{claimed:?}");
    let end = json!({"runs": [{"run": jobs[0]["run"], "result": "succeeded"}]});
    let ended = ask(&format!("/v1/workers/{id}/finish"), end).await;
    assert!(!ended.status.is_server_error() && ended.status != StatusCode::FORBIDDEN, "{ended:?}");
    // A worker of another team is answered like one that does not exist.
    let of = async |id: i64| {
        let answer = ask(&format!("/v1/workers/{id}/heartbeat"), json!({})).await;
        (answer.status, answer.body.to_string().replace(&id.to_string(), "ID"))
    };
    let other =
        store.workers().await.unwrap().into_iter().find(|worker| worker.name == "zebra~worker").unwrap();
    assert_eq!(of(i64::from(other.id.0)).await, of(999_999).await);
    assert_eq!(of(id).await.0, StatusCode::OK);
}

async fn a_limited_stream_shows_only_own_changes(teams: Teams) {
    let token = teams.token(Role::Viewer).await;
    let store = teams.place.store.as_ref();
    let start = teams.place.request(Method::GET, "/v1/stream").bearer_auth(token.reveal());
    let mut stream = start.send().await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    let mut read = String::new();
    while !read.contains("id:") {
        read += &String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap());
    }
    let other = store.enqueue(&NewJob::new("zebra~kind", &json!({})).unwrap()).await.unwrap().job;
    let own = store.enqueue(&NewJob::new("mail~kind", &json!({})).unwrap()).await.unwrap().job;
    let reading = async {
        while !read.contains(&own.to_string()) {
            read += &String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap());
        }
    };
    tokio::time::timeout(wait::LIMIT, reading).await.expect("the own change is shown");
    assert!(!read.contains(&other.to_string()) && !read.contains(OTHERS), "{read}");
}

async fn who_signs_in_with_a_limited_token_stays_limited(teams: Teams) {
    let token = teams.token(Role::Operator).await;
    let form = format!("token={}&next=%2F", token.reveal());
    let origin = format!("http://{}", teams.place.address());
    let signed = teams.place.request(Method::POST, "/sign-in").header("origin", origin);
    let signed = signed.header("content-type", "application/x-www-form-urlencoded").body(form);
    let answer = signed.send().await.unwrap();
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = async |path: &str| {
        let answer = teams.place.request(Method::GET, path).header("cookie", &cookie).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    for path in ["/", "/jobs", "/queues", "/kinds", "/workers", "/schedules", "/bulk", "/batches", "/audit"] {
        let (status, html) = page(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {html}");
        check(&teams, path, &html);
        assert!(html.contains("kinds mail~*"), "{path} shows the limits");
        let links = ["<a href=\"/settings\" data-key", "<a href=\"/events\" data-key"];
        assert!(links.iter().all(|link| !html.contains(link)), "{path}");
    }
    assert!(page("/jobs").await.1.contains("mail~kind"));
    for path in ["/settings", "/events"] {
        let (status, html) = page(path).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {html}");
        check(&teams, path, &html);
    }
    // Servers of earlier releases compare the digest of the cookie alone, and do not find the session.
    assert!(cookie.contains("=limited."), "{cookie}");
    let failed = JobFilter { state: Some(JobState::Failed), limit: 10, ..JobFilter::default() };
    let found = teams.place.store.jobs(&failed).await.unwrap();
    let other: JobId = found.iter().find(|job| job.kind.starts_with(OTHERS)).unwrap().id;
    assert_eq!(page(&format!("/jobs/{other}")).await.0, StatusCode::NOT_FOUND);
}

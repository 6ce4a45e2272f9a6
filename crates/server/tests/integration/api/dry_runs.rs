//! Tests of dry runs that are started with a request or in the console.

use std::time::Duration;

use milepost_core::bulk::chunk::Load;
use milepost_core::bulk::definition::{Definition, Effects};
use milepost_core::bulk::dry_run::{self, Bill};
use milepost_core::bulk::run::{Rehearsal, Total};
use milepost_core::claim::Claim;
use milepost_core::finish::{End, Finish};
use milepost_core::schedule::Source;
use milepost_core::token::Role;
use milepost_core::worker::NewWorker;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::bulk_files::{form, with_a_bulk_job};
use crate::api::place::Place;
use crate::api::sessions::begun;

const PATH: &str = "/v1/bulk-runs/dry-run";

async fn payload(place: &Place, job: &str, bulk: &str) -> Value {
    let job = place.store.job(job.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((job.row.kind.as_str(), job.row.queue.as_str()), (dry_run::kind(bulk).as_str(), "bulk"));
    serde_json::from_str(job.payload.get()).unwrap()
}

pub(crate) async fn a_dry_run_becomes_a_job_of_its_workers_queue(place: Place) {
    with_a_bulk_job(&place).await;
    let made = place.post(PATH, &json!({"name": "popular", "parameters": {"topic": 4}, "rows": 9})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let asked = payload(&place, made.body["id"].as_str().unwrap(), "popular").await;
    assert_eq!(asked, json!({"bulk": "popular", "parameters": {"topic": 4}, "rows": 9, "chunks": 3}));

    let push = Definition { effects: Effects::AtLeastOncePerChunk, ..Definition::new("push") };
    place.store.put_bulk(&push, Source::Operator).await.unwrap();
    for (request, words) in [
        (json!({"name": "popular", "rows": 0}), "rows is 0; it must be from 1"),
        (json!({"name": "popular", "chunks": 101}), "chunks is 101"),
        (json!({"name": "push"}), "cannot be rolled back"),
        (json!({"name": "letter"}), "from a file"),
        (json!({"name": "gone"}), "no bulk job"),
    ] {
        let refused = place.post(PATH, &request).await;
        assert!(
            refused.status.is_client_error() && refused.body["detail"].as_str().unwrap().contains(words),
            "{words}: {refused:?}"
        );
    }
}

pub(crate) async fn an_operator_starts_a_dry_run_over_a_file_in_the_console(place: Place) {
    with_a_bulk_job(&place).await;
    let html = place.page("/bulk-definitions/letter").await.1;
    assert!(html.contains("action=\"/bulk/dry-run\"") && html.contains("Dry run of letter"), "{html}");
    let token = place.token(Role::Operator).await;
    let (cookie, csrf) = begun(&place, &token).await;
    let send = async |content: &str| {
        let request = place.by_page(Method::POST, "/bulk/dry-run").header("cookie", &cookie);
        let request = request.header("content-type", "multipart/form-data; boundary=line");
        let answer = request.body(form(&csrf, "members.csv", content)).send().await.unwrap();
        let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        (header("location").unwrap_or_default(), header("set-cookie").unwrap_or_default())
    };
    let rows: String = (1..=2_000).map(|n| format!("{n},Ada\n")).collect();
    let (page, said) = send(&format!("id,name\n{rows}")).await;
    let asked = payload(&place, page.strip_prefix("/jobs/").expect(&said), "letter").await;
    assert_eq!(asked["file"]["total"], 2_000);
    assert_eq!(asked["file"]["first"].as_array().unwrap().len(), 1_500, "those of three chunks");
    assert_eq!(asked["file"]["first"][0], json!({"id": 1, "name": "Ada"}));
    let long = "x".repeat(2_000);
    let rows: String = (1..=1_000).map(|n| format!("{n},{long}\n")).collect();
    let (page, said) = send(&format!("id,name\n{rows}")).await;
    let asked = payload(&place, page.strip_prefix("/jobs/").expect(&said), "letter").await;
    let sampled = asked["file"]["first"].as_array().unwrap().len();
    assert!((200..300).contains(&sampled) && asked["file"]["total"] == 1_000, "{sampled}");
    let (back, said) = send("id,name\nx,a\n").await;
    assert!(back == "/bulk" && said.contains("line%202"), "{said}");
}

pub(crate) async fn the_page_of_a_dry_run_shows_what_it_costs(place: Place) {
    with_a_bulk_job(&place).await;
    let made = place.post(PATH, &json!({"name": "popular"})).await;
    let page = format!("/jobs/{}", made.body["id"].as_str().unwrap());
    let waiting = place.page(&page).await.1;
    assert!(waiting.contains("href=\"/bulk-definitions/popular\"") && !waiting.contains("milliseconds"));

    let (queues, kinds) = (vec!["bulk".to_owned()], vec![dry_run::kind("popular")]);
    let lease = Duration::from_secs(60);
    let worker = NewWorker { queues: queues.clone(), kinds: kinds.clone(), lease, ..NewWorker::default() };
    let worker = place.store.register_worker(&worker).await.unwrap();
    let claim = Claim { worker, claim_id: 1, queues, kinds, limit: 1, thorough: true };
    let run = place.store.claim(&claim).await.unwrap()[0].run;
    let rehearsal = Rehearsal {
        chunks: vec![(500, Duration::from_millis(50))],
        total: Some(Total { rows: 100_000, exact: true }),
        failure: None,
    };
    let bill = Bill::of(&rehearsal, Load { rows_per_s: Some(1_000.0), duty: 1.0 });
    let end = End::Succeed { result: Some(serde_json::to_string(&bill).unwrap()) };
    let finish = Finish { run, end, grouped: false, task: false };
    place.store.finish_many(worker, &[finish]).await.unwrap();
    let html = place.page(&page).await.1;
    for words in ["100,000", "10,000 rows/s", "100 s, with the pauses", "everything was rolled back"] {
        assert!(html.contains(words), "{words}: {html}");
    }
}

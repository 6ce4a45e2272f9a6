//! Tests of job pages of the console: time filters, counts of jobs, and long histories.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use milepost_core::claim::Claim;
use milepost_core::finish::{End, Failure, Finish};
use milepost_core::ident::{JobId, WorkerId};
use milepost_core::job::NewJob;
use milepost_core::port::{Operation, Store};
use milepost_core::transition::Verb;
use milepost_core::worker::NewWorker;
use milepost_testkit::wait;
use serde_json::json;

use crate::api::place::Place;

async fn worker(store: &dyn Store) -> WorkerId {
    let (queues, kinds) = (vec!["default".to_owned()], vec!["mail".to_owned()]);
    let worker = NewWorker {
        name: "w".into(),
        queues,
        kinds,
        lease: Duration::from_secs(600),
        ..NewWorker::default()
    };
    store.register_worker(&worker).await.unwrap()
}

async fn enqueued(store: &dyn Store) -> JobId {
    store.enqueue(&NewJob::new("mail", &1).unwrap()).await.unwrap().job
}

/// Makes the waiting job fail.
async fn fail(store: &dyn Store, worker: WorkerId, claim_id: i32) {
    let (queues, kinds) = (vec!["default".to_owned()], vec!["mail".to_owned()]);
    let claim = Claim { worker, claim_id, queues, kinds, limit: 1, thorough: true };
    let run = store.claim(&claim).await.unwrap()[0].run;
    let end = End::Fail { failure: Failure { code: "broken".into(), message: "no".into() } };
    store.finish_many(worker, &[Finish { run, end, grouped: false, task: false }]).await.unwrap();
}

/// Waits until a time after everything that has happened so far, and returns it.
async fn later() -> Timestamp {
    let at = Timestamp::now().checked_add(SignedDuration::from_millis(2)).unwrap();
    wait::until("the time has passed", async || Timestamp::now() > at).await;
    at
}

pub(crate) async fn jobs_that_failed_since_a_time_are_found_and_retried(place: Place) {
    let store = place.store.as_ref();
    let worker = worker(store).await;
    let before = enqueued(store).await;
    fail(store, worker, 1).await;
    let since = enqueued(store).await;
    let at = later().await;
    fail(store, worker, 2).await;
    let found = async |url: String| {
        let html = place.page(&url).await.1;
        let has = [before, since].map(|job| html.contains(&format!("href=\"/jobs/{job}\"")));
        (html, has)
    };
    let (html, has) = found(format!("/jobs?state=failed&since={at}")).await;
    assert!(html.contains("Failed since, UTC") && has == [false, true], "{html}");
    let (html, has) = found(format!("/jobs?since={at}")).await;
    assert!(html.contains("Created since, UTC") && has == [false, false], "{html}");
    assert!(html.contains(&format!("No job created since {at} matches the search")), "{html}");
    let (html, has) = found("/jobs?kind=mail&since=2020-01-01+00:00".to_owned()).await;
    assert!(html.contains("value=\"2020-01-01 00:00\"") && has == [true, true], "{html}");
    assert!(html.contains("created <time datetime="), "times are shown absolutely: {html}");
    assert!(found("/jobs?since=yesterday".to_owned()).await.0.contains("is not a time"));
    let chosen = format!("all=yes&operation=retry&state=failed&kind=mail&since={at}");
    let preview = place.page(&format!("/jobs/change?{chosen}")).await.1;
    assert!(preview.contains("Retry now: 1 job?"), "{preview}");
    assert!(preview.contains(&format!("Only jobs that failed since {at}.")), "{preview}");
    let fields = [("chosen", &*chosen), ("of", "1"), ("reason", "mended"), ("back", "/jobs")];
    let (to, said) = place.form("/jobs/change", &fields).await;
    assert!(to.starts_with("/bulk/") && said.contains("1 job"), "{to}: {said}");
}

pub(crate) async fn all_jobs_that_are_changed_are_counted_before(place: Place) {
    let jobs: Vec<NewJob> = (0..1_200).map(|n| NewJob::new("order", &n).unwrap()).collect();
    place.store.enqueue_many(&jobs).await.unwrap();
    let html = place.page("/jobs/change?all=yes&kind=order&operation=cancel").await.1;
    for part in ["Cancel: 1,200 jobs?", "name=\"of\" value=\"1200\"", "The first 20 jobs"] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

pub(crate) async fn of_a_long_history_the_newest_changes_are_drawn(place: Place) {
    let store = place.store.as_ref();
    let job = enqueued(store).await;
    for n in 0..60 {
        for verb in [Verb::Abort, Verb::Resume] {
            store.operate(job, &Operation::new(verb).note(format!("{verb} no. {n}."))).await.unwrap();
        }
    }
    let html = place.page(&format!("/jobs/{job}")).await.1;
    assert!(html.contains("The newest 100 changes"), "{html}");
    assert!(html.contains(&format!("href=\"/v1/jobs/{job}/history\"")), "{html}");
    assert!(html.contains("resume no. 59.") && !html.contains("abort no. 9."), "{html}");
    assert_eq!(html.matches(" no. ").count(), 100, "{html}");
}

pub(crate) async fn characters_that_reverse_text_are_replaced_in_pages(place: Place) {
    let job = NewJob::new("order", &"pay\u{202e}load").unwrap().key("key\u{202e}gpj.exe");
    let job = place.store.enqueue(&job).await.unwrap().job;
    for page in ["/jobs".to_owned(), format!("/jobs/{job}")] {
        let html = place.page(&page).await.1;
        assert!(html.contains("key\u{fffd}gpj.exe"), "{html}");
    }
    assert!(place.page(&format!("/jobs/{job}")).await.1.contains("pay\u{fffd}load"));
}

pub(crate) async fn a_job_is_created_in_the_console_once_under_its_key(place: Place) {
    let html = place.page("/jobs?kind=mail").await.1;
    assert!(
        html.contains(r#"action="/jobs/create""#) && html.contains(r#"name="kind" value="mail""#),
        "{html}"
    );
    let fields = [
        ("kind", "mail"),
        ("payload", r#"{"to": "ada"}"#),
        ("queue", "letters"),
        ("key", "order-1"),
        ("priority", "4"),
        ("wait", "2h"),
        ("reason", "asked by phone"),
        ("back", "/jobs?kind=mail"),
    ];
    let (page, said) = place.form("/jobs/create", &fields).await;
    let id = page.strip_prefix("/jobs/").expect(&page);
    assert!(said.contains("created"), "{said}");
    let job = place.get(&format!("/v1/jobs/{id}")).await.body;
    let made = [&job["kind"], &job["queue"], &job["key"], &job["payload"], &job["priority"], &job["state"]];
    assert_eq!(
        made,
        [
            &json!("mail"),
            &json!("letters"),
            &json!("order-1"),
            &json!({"to": "ada"}),
            &json!(4),
            &json!("pending")
        ]
    );
    let audit = place.page("/audit").await.1;
    assert!(audit.contains("asked by phone"), "{audit}");
    let (again, said) = place.form("/jobs/create", &fields).await;
    assert!(again == page && said.contains("exists already"), "{again}: {said}");
    for (name, value, fault) in [
        ("payload", "{", "JSON"),
        ("priority", "5", "from 1 (first) to 4 (last)"),
        ("wait", "soon", "soon"),
        ("kind", "", "kind is missing"),
        ("reason", "", "reason is missing"),
    ] {
        let wrong: Vec<_> =
            fields.iter().map(|&(field, its)| (field, if field == name { value } else { its })).collect();
        let (back, said) = place.form("/jobs/create", &wrong).await;
        assert!(back == "/jobs?kind=mail" && said.contains(fault), "{name}: {said}");
    }
    assert_eq!(place.get("/v1/jobs").await.body["items"].as_array().unwrap().len(), 1);
}

pub(crate) async fn a_form_that_is_submitted_twice_creates_one_job(place: Place) {
    let html = place.page("/jobs").await.1;
    let id = html.split(r#"name="form" value=""#).nth(1).unwrap().split('"').next().unwrap().to_owned();
    let create = async |payload: &str| {
        let fields = [
            ("kind", "mail"),
            ("payload", payload),
            ("queue", "letters"),
            ("key", ""),
            ("reason", "asked by phone"),
            ("form", &id),
        ];
        place.form("/jobs/create", &fields).await
    };
    let (page, _) = create(r#"{"to": "ada"}"#).await;
    let (again, said) = create(r#"{"to": "ada"}"#).await;
    assert!(again == page && said.contains("submitted before"), "{again}: {said}");
    let (other, said) = create(r#"{"to": "bea"}"#).await;
    assert!(other != page && said.contains("was created"), "edited after a step back: {said}");
    assert_eq!(place.get("/v1/jobs").await.body["items"].as_array().unwrap().len(), 2);
}

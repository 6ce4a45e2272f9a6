//! Tests of the console's pages of kinds.

use std::time::Duration;

use milepost_core::bulk::definition::Definition;
use milepost_core::claim::Claim;
use milepost_core::finish::{End, Failure, Finish};
use milepost_core::job::NewJob;
use milepost_core::limit::{Limit, Rate, Target};
use milepost_core::schedule::Source;
use milepost_core::worker::NewWorker;
use milepost_testkit::wait;
use reqwest::StatusCode;
use serde_json::json;

use crate::api::place::Place;

pub(crate) async fn a_kind_shows_its_workers_its_limit_and_why_its_jobs_failed(place: Place) {
    let store = place.store.as_ref();
    let job = |kind: &str| NewJob::new(kind, &json!({})).unwrap();
    let (queues, kinds) = (vec!["default".to_owned()], vec!["mail & co".to_owned()]);
    let worker = NewWorker {
        name: "mailer".to_owned(),
        queues: queues.clone(),
        kinds: kinds.clone(),
        lease: Duration::from_secs(60),
        ..NewWorker::default()
    };
    let worker = store.register_worker(&worker).await.unwrap();
    let failing = store.enqueue(&job("mail & co")).await.unwrap().job;
    let claim = Claim { worker, claim_id: 1, queues, kinds, limit: 1, thorough: true };
    let run = store.claim(&claim).await.unwrap()[0].run;
    let failure = Failure { code: "smtp".to_owned(), message: "no such mailbox".to_owned() };
    let finish = Finish { run, end: End::Fail { failure }, grouped: false, task: false };
    store.finish_many(worker, &[finish]).await.unwrap();
    store.enqueue(&job("orphan")).await.unwrap();
    store.put_bulk(&Definition::new("announce"), Source::Operator).await.unwrap();
    let rate = Rate::new(5.0, 5);
    for kind in ["mail & co", "announce"] {
        let limit = Limit { target: Target::Kind(kind.to_owned()), slots: None, rate: Some(rate) };
        store.put_limit(&limit, Source::Operator).await.unwrap();
    }

    let failed = "href=\"/jobs?kind=mail%20%26%20co&amp;state=failed\"";
    let unserved = "1 due, but no worker of their queue has a handler";
    wait::until("the jobs are counted", async || {
        let html = place.page("/kinds").await.1;
        html.contains(failed) && html.contains(unserved)
    })
    .await;
    let html = place.page("/kinds").await.1;
    for words in ["href=\"/kinds/mail%20%26%20co\"", "at most 5/s", "<span class=\"sub\">bulk job</span>"] {
        assert!(html.contains(words), "{words}: {html}");
    }
    let (status, html) = place.page("/kinds/mail%20%26%20co").await;
    assert_eq!(status, StatusCode::OK);
    for words in [
        "smtp: no such mailbox",
        &format!("href=\"/jobs/{failing}\""),
        "mailer",
        "at most 5/s",
        "Set limit…",
        "data-series=\"&#38;kind=mail%20%26%20co\"",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }
    let html = place.page("/kinds/orphan").await.1;
    assert!(
        html.contains("1 of its jobs are due") && html.contains("No active worker has a handler"),
        "{html}"
    );
    let html = place.page("/kinds/announce").await.1;
    assert!(html.contains("href=\"/bulk-definitions/announce\""), "{html}");
    assert!(
        !html.contains("action=\"/jobs/create\""),
        "a run is started on the page of the bulk job: {html}"
    );
}

//! Tests of the overview page and of lists with many problems and many running jobs.

use std::time::Duration;

use milepost_core::bulk::listing::BulkFilter;
use milepost_core::bulk::operation;
use milepost_core::claim::Claim;
use milepost_core::finish::{End, Failure, Finish};
use milepost_core::ident::{Run, WorkerId};
use milepost_core::job::{NewJob, StartAt};
use milepost_core::limit::{Limit, Rate};
use milepost_core::port::{Operation, Store};
use milepost_core::schedule::{Schedule, Source, Spec};
use milepost_core::transition::Verb;
use milepost_core::worker::NewWorker;
use milepost_testkit::wait;
use reqwest::StatusCode;
use serde_json::json;

use crate::api::console::start;
use crate::api::place::Place;

/// Registers a worker for these kinds.
async fn worker(store: &dyn Store, kinds: &[String]) -> WorkerId {
    let (queues, lease) = (vec!["default".to_owned()], Duration::from_secs(600));
    let worker = NewWorker { name: "w".into(), queues, kinds: kinds.to_vec(), lease, ..NewWorker::default() };
    store.register_worker(&worker).await.unwrap()
}

/// Claims up to `limit` waiting jobs.
async fn claimed(store: &dyn Store, worker: WorkerId, kinds: &[String], limit: u32) -> Vec<Run> {
    let (claim_id, queues) = (i32::try_from(limit).unwrap(), vec!["default".to_owned()]);
    let claim = Claim { worker, claim_id, queues, kinds: kinds.to_vec(), limit, thorough: true };
    store.claim(&claim).await.unwrap().into_iter().map(|job| job.run).collect()
}

async fn fail(store: &dyn Store, worker: WorkerId, runs: Vec<Run>) {
    let failed = |run| {
        let failure = Failure { code: "broken".into(), message: "no".into() };
        Finish { run, end: End::Fail { failure }, grouped: false, task: false }
    };
    let ends: Vec<Finish> = runs.into_iter().map(failed).collect();
    store.finish_many(worker, &ends).await.unwrap();
}

pub(crate) async fn a_store_in_which_nothing_was_done_tells_what_to_do(place: Place) {
    let store = place.store.as_ref();
    // The worker that a server runs for operations on many jobs.
    let own = NewWorker {
        name: "w (operations)".into(),
        queues: vec![operation::QUEUE.to_owned()],
        kinds: vec![operation::NAME.to_owned()],
        lease: Duration::from_secs(600),
        ..NewWorker::default()
    };
    store.register_worker(&own).await.unwrap();
    let told = async || place.page("/").await.1;
    wait::until("all counts are available", async || told().await.contains("No jobs yet")).await;
    assert!(told().await.contains("milepost enqueue hello"));
    store.enqueue(&NewJob::new("mail", &1).unwrap()).await.unwrap();
    wait::until("the alert for the job is shown", async || {
        told().await.contains("No worker serves queue default")
    })
    .await;
    assert!(!told().await.contains("No jobs yet"));
}

pub(crate) async fn kinds_that_no_worker_of_their_queue_runs_are_told(place: Place) {
    let store = place.store.as_ref();
    worker(store, &["mail".to_owned()]).await;
    let elsewhere = NewWorker {
        name: "elsewhere".into(),
        queues: vec!["night".to_owned()],
        kinds: vec!["invoice".to_owned()],
        lease: Duration::from_secs(600),
        ..NewWorker::default()
    };
    store.register_worker(&elsewhere).await.unwrap();
    let told = async || place.page("/").await.1;
    let job = |kind: &str| NewJob::new(kind, &1).unwrap();
    let later = NewJob { start: StartAt::After(Duration::from_secs(3600)), ..job("report") };
    let others = (0..10).map(|n| job(&format!("old-{n}")));
    let jobs: Vec<NewJob> =
        [job("mail"), job("invoice"), job("invoice"), later].into_iter().chain(others).collect();
    store.enqueue_many(&jobs).await.unwrap();
    wait::until("the alert for the kind is shown", async || {
        told().await.contains("No handler for kind invoice")
    })
    .await;
    let html = told().await;
    for part in ["2 jobs wait in queue default", "href=\"/kinds/invoice\"", "No handler for 3 more kinds"] {
        assert!(html.contains(part), "{part}: {html}");
    }
    for none in ["No worker serves queue", "No handler for kind mail", "No handler for kind report"] {
        assert!(!html.contains(none), "{none}: {html}");
    }
}

pub(crate) async fn all_is_well_only_where_nothing_failed_or_rests(place: Place) {
    let store = place.store.as_ref();
    let kinds: Vec<String> = (0..10).map(|n| format!("kind-{n}")).collect();
    let worker = worker(store, &kinds).await;
    let told = async || place.page("/").await.1;
    wait::until("all counts are available, without alerts", async || told().await.contains("No problems"))
        .await;
    let hourly = Spec::every(Duration::from_secs(3600)).unwrap();
    let schedule = Schedule::new("hourly", hourly, NewJob::new("mail", &1).unwrap());
    store.put_schedule(&schedule, Source::Operator).await.unwrap();
    store.pause_schedule("hourly").await.unwrap();
    let html = told().await;
    assert!(html.contains("Schedule hourly is paused") && html.contains("Resume hourly?"), "{html}");
    let batch = start(store).await;
    let abort = place.post(&format!("/v1/batches/{batch}/operate"), &json!({"operation": "abort"})).await;
    assert_eq!(abort.status, StatusCode::OK, "{abort:?}");
    let job = store.enqueue(&NewJob::new("mail", &1).unwrap()).await.unwrap().job;
    store.operate(job, &Operation::new(Verb::Abort)).await.unwrap();
    let jobs: Vec<NewJob> = kinds.iter().map(|kind| NewJob::new(kind, &1).unwrap()).collect();
    store.enqueue_many(&jobs).await.unwrap();
    let runs = claimed(store, worker, &kinds, 10).await;
    fail(store, worker, runs).await;
    let html = told().await;
    for part in [
        "is aborted: x&#60;script",
        "Resume this batch?",
        "href=\"/jobs?state=aborted\"",
        "failed for 2 more causes",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("No problems"), "{html}");
}

pub(crate) async fn failed_bulk_jobs_are_told_behind_many_that_wait(place: Place) {
    let store = place.store.as_ref();
    let job = store.enqueue(&NewJob::new("mail", &1).unwrap()).await.unwrap().job;
    let chosen = format!("operation=cancel&id={job}");
    let fields = [("chosen", &*chosen), ("reason", "not these"), ("back", "/jobs")];
    let stopped = place.form("/jobs/change", &fields).await.0;
    let stopped = stopped.strip_prefix("/bulk/").unwrap();
    let abort = [("operation", "abort"), ("reason", "too many at once"), ("back", "/bulk")];
    place.form(&format!("/jobs/{stopped}/operate"), &abort).await;
    for _ in 0..21 {
        place.form("/jobs/change", &fields).await;
    }
    let html = place.page("/").await.1;
    assert!(
        html.contains(&format!("href=\"/bulk/{stopped}\"")) && html.contains("too many at once"),
        "{html}"
    );
    let page = format!("/bulk/{}", store.bulks(&BulkFilter::default()).await.unwrap()[0].id);
    assert!(place.page(&page).await.1.contains("placeholder=\"as the bulk job defines\""));
    let set = async |min: &str, max: &str, ms: &str| {
        let limits = [("rows_min", min), ("rows_max", max), ("chunk_ms", ms)];
        let others = [("reason", "night"), ("back", "/bulk")];
        place.form(&format!("{page}/set"), &[&limits[..], &others].concat()).await.1
    };
    for (min, max, ms) in [("", "", "600001"), ("", "1000001", ""), ("10", "9", "")] {
        assert!(set(min, max, ms).await.starts_with("refused"), "{min} {max} {ms}");
    }
    assert!(set("10", "", "").await.starts_with("done"));
}

pub(crate) async fn what_runs_for_longest_is_shown_of_many(place: Place) {
    let store = place.store.as_ref();
    let kinds = ["mail".to_owned()];
    let worker = worker(store, &kinds).await;
    let jobs: Vec<NewJob> = (0..60).map(|n| NewJob::new("mail", &n).unwrap()).collect();
    store.enqueue_many(&jobs).await.unwrap();
    let first = claimed(store, worker, &kinds, 1).await[0].job;
    assert_eq!(claimed(store, worker, &kinds, 59).await.len(), 59);
    let told = async || place.page("/workers").await.1;
    wait::until("all counts are available", async || {
        told().await.contains("The 50 longest-running jobs of 60")
    })
    .await;
    let html = told().await;
    assert!(html.contains(&format!("href=\"/jobs/{first}\"")), "{html}");
}

pub(crate) async fn a_kind_that_fails_is_slowed_down_and_others_of_its_queue_go_on(place: Place) {
    let store = place.store.as_ref();
    let (told, kinds) = (async || place.page("/").await.1, ["mail".to_owned(), "report".to_owned()]);
    let worker = worker(store, &kinds).await;
    let job = |kind: &str| NewJob::new(kind, &1).unwrap();
    store.enqueue(&job("mail")).await.unwrap();
    fail(store, worker, claimed(store, worker, &kinds, 1).await).await;
    wait::until("the action is offered", async || told().await.contains("Slow kind mail down?")).await;
    let slow = |rate: &'static str, reason: &'static str| {
        place.form("/limits/set", &[("kind", "mail"), ("rate", rate), ("reason", reason), ("back", "/")])
    };
    for (rate, reason) in [("soon", "it fails"), ("1/h", "")] {
        assert!(slow(rate, reason).await.1.starts_with("refused"), "{rate} {reason}");
    }
    wait::until("the kind is slowed down", async || slow("1/h", "it fails").await.1.starts_with("done"))
        .await;
    store.enqueue_many(&[job("mail"), job("mail"), job("report"), job("report")]).await.unwrap();
    let started = claimed(store, worker, &kinds, 10).await.len();
    assert_eq!(started, 3, "one job of the slowed kind, and all others");
    wait::until("the alert is shown", async || told().await.contains("Kind mail is slowed down")).await;
    assert!(!told().await.contains("Slow kind mail down?"));
    assert!(slow("2/h", "it fails").await.1.contains("already"), "the existing limit is kept");
    let entry = place.get("/v1/audit?limit=1").await.body["items"][0].clone();
    assert_eq!((&entry["what"], &entry["why"]), (&json!("limit.put"), &json!("it fails")), "{entry}");
}

pub(crate) async fn an_operators_limit_is_lifted_and_a_configurations_is_not(place: Place) {
    let store = place.store.as_ref();
    let (mail, report) = (Limit::kind("mail", Rate::new(0.01, 1)), Limit::kind("report", Rate::new(0.01, 1)));
    store.put_limit(&mail, Source::Operator).await.unwrap();
    store.put_limit(&report, Source::Config).await.unwrap();
    for page in ["/", "/settings"] {
        let told = async || place.page(page).await.1;
        wait::until("the limit can be removed", async || {
            told().await.contains("Remove the limit of kind mail?")
        })
        .await;
        assert!(!told().await.contains("Remove the limit of kind report?"), "{page}");
    }
    let lift = |kind: &'static str| {
        place.form("/limits/remove", &[("kind", kind), ("reason", "it is fixed"), ("back", "/")])
    };
    wait::until("the limit is removed", async || lift("mail").await.1.starts_with("done")).await;
    assert!(lift("report").await.1.starts_with("refused"));
    let left: Vec<Limit> = store.limits().await.unwrap().into_iter().map(|view| view.limit).collect();
    assert_eq!(left, [report]);
    wait::until("the alert is gone", async || !place.page("/").await.1.contains("slowed down")).await;
}

pub(crate) async fn a_paused_queue_says_who_paused_it_and_why(place: Place) {
    let store = place.store.as_ref();
    store.enqueue(&NewJob::new("mail", &1).unwrap()).await.unwrap();
    let pause = [("queue", "default"), ("operation", "pause"), ("reason", "the <mail> server moves")];
    assert!(place.form("/queues/set", &pause).await.1.starts_with("done"));
    for path in ["/", "/queues"] {
        let words = ": the &#60;mail&#62; server moves";
        let tells = async || place.page(path).await.1.contains(words);
        wait::until(&format!("{path} shows the reason"), tells).await;
        assert!(place.page(path).await.1.contains("by anonymous"), "{}", place.page(path).await.1);
    }
    let html = place.page("/queues").await.1;
    assert!(html.contains("It was paused by"), "the form that resumes it says so, too: {html}");
}

pub(crate) async fn a_queue_without_a_worker_offers_no_pause(place: Place) {
    place.store.enqueue(&NewJob::new("mail", &1).unwrap()).await.unwrap();
    let alerts = async || place.page("/").await.1;
    wait::until("the alert is shown", async || alerts().await.contains("No worker serves queue default"))
        .await;
    assert!(!alerts().await.contains("Pause the queue"), "{}", alerts().await);
}

pub(crate) async fn jobs_that_fail_and_are_tried_again_are_reported_if_they_are_many(place: Place) {
    let (store, kinds) = (place.store.as_ref(), ["charge".to_owned()]);
    let worker = worker(store, &kinds).await;
    let retry = async |jobs: u32| {
        for _ in 0..jobs {
            store.enqueue(&NewJob::new("charge", &1).unwrap()).await.unwrap();
        }
        let again = |run| {
            let failure = Failure { code: "card".into(), message: "the <bank> is closed".into() };
            let end = End::Retry { delay: Duration::from_secs(3_600), failure };
            Finish { run, end, grouped: false, task: false }
        };
        let ends: Vec<Finish> = claimed(store, worker, &kinds, jobs).await.into_iter().map(again).collect();
        store.finish_many(worker, &ends).await.unwrap();
    };
    retry(9).await;
    assert!(!place.page("/").await.1.contains("tried again"), "a few retries are normal");
    let html = place.page("/kinds/charge").await.1;
    assert!(html.contains("card: the &#60;bank&#62; is closed") && html.contains("retry_wait"), "{html}");
    retry(1).await;
    let html = place.page("/").await.1;
    for words in [
        "10 jobs fail and are tried again: charge",
        "the &#60;bank&#62; is closed. Up to 1 attempt.",
        "href=\"/jobs?state=retry_wait&#38;kind=charge&#38;queue=default&#38;error=card\"",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }
    let listed = place.page("/jobs?state=retry_wait&kind=charge&queue=default&error=card").await.1;
    assert!(!listed.contains("No job matches"), "{listed}");
}

pub(crate) async fn tabs_count_jobs_by_state_and_chips_remove_filters(place: Place) {
    place.store.enqueue(&NewJob::new("mail", &1).unwrap()).await.unwrap();
    let jobs = async |query: &str| place.page(&format!("/jobs{query}")).await.1;
    wait::until("the jobs are counted", async || jobs("").await.contains(">pending <b>1</b></a>")).await;
    let html = jobs("?state=pending&kind=mail").await;
    assert!(html.contains("aria-current=\"page\">pending</a>"), "{html}");
    assert!(
        html.contains("<a href=\"/jobs?state=pending\" aria-label=\"Remove the filter kind mail\">"),
        "{html}"
    );
    let (bar, rows) = (html.find("With selected").unwrap(), html.find("<tbody>").unwrap());
    assert!(bar < rows, "actions are above the rows");
}

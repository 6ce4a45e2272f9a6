//! Tests of the console: all pages, and the effects of forms.

use std::time::Duration;

use milepost_core::audit::Actor;
use milepost_core::batch::start::NewBatch;
use milepost_core::bulk::listing::BulkFilter;
use milepost_core::claim::Claim;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::event::{Aggregate, Failure as Undone, NewEvent, Outcome, PageSize, Undelivered};
use milepost_core::finish::{End, Failure, Finish};
use milepost_core::ident::{BatchId, JobId};
use milepost_core::job::NewJob;
use milepost_core::port::{Operation, Store};
use milepost_core::schedule::{Schedule, Source, Spec};
use milepost_core::state::JobState;
use milepost_core::token::Role;
use milepost_core::transition::Verb;
use milepost_core::worker::NewWorker;
use milepost_testkit::{relay, wait};
use reqwest::StatusCode;
use serde_json::json;

use crate::api::markup::assert_harmless;
use crate::api::place::Place;

/// A text that must be escaped wherever it is stored and shown.
pub(crate) const EVIL: &str = "x<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;";

/// The pages in the navigation, and the settings page with the results of the store's checks.
pub(crate) const PAGES: [&str; 13] = [
    "/",
    "/jobs",
    "/queues",
    "/kinds",
    "/workers",
    "/schedules",
    "/bulk",
    "/batches",
    "/events",
    "/dead-letters",
    "/audit",
    "/settings",
    "/settings?examine=yes",
];

/// Fills a store with objects whose names contain markup.
pub(crate) async fn fill(store: &dyn Store) -> (JobId, BatchId) {
    let actor = Actor::new(EVIL).unwrap().because(Some(EVIL)).unwrap();
    let store = store.acting_as(actor);
    let store = store.as_ref();
    let job = |key: &str| {
        let mut job = NewJob::new(EVIL, &json!({ EVIL: EVIL })).unwrap();
        (job.queue, job.group, job.key) = (EVIL.into(), Some(EVIL.into()), Some(format!("{key}{EVIL}")));
        job
    };
    let failing = store.enqueue(&job("1")).await.unwrap().job;
    let names = vec![EVIL.to_owned()];
    let lease = Duration::from_secs(60);
    let worker = NewWorker {
        name: EVIL.into(),
        queues: names.clone(),
        kinds: names.clone(),
        lease,
        ..NewWorker::default()
    };
    let worker = store.register_worker(&worker).await.unwrap();
    let claim = Claim { worker, claim_id: 1, queues: names.clone(), kinds: names, limit: 1, thorough: true };
    let run = store.claim(&claim).await.unwrap()[0].run;
    let end = End::Fail { failure: Failure { code: EVIL.into(), message: EVIL.into() } };
    store.finish_many(worker, &[Finish { run, end, grouped: true, task: false }]).await.unwrap();
    let waiting = store.enqueue(&job("2")).await.unwrap().job;
    store.enqueue(&job("3")).await.unwrap();
    store.operate(waiting, &Operation::new(Verb::Abort).note(EVIL)).await.unwrap();
    store.pause_queue(EVIL, true).await.unwrap();
    let hourly = Spec::every(Duration::from_secs(3600)).unwrap();
    let schedule = Schedule::new(EVIL, hourly, NewJob::new(EVIL, &EVIL).unwrap());
    store.put_schedule(&schedule, Source::Operator).await.unwrap();
    let events = ["a", "b"].map(|id| {
        let aggregate = Aggregate::new(EVIL, format!("{id}{EVIL}"));
        NewEvent::new(aggregate, EVIL, &json!({ EVIL: EVIL })).unwrap()
    });
    store.emit_many(&events).await.unwrap();
    let (_, mut reader) = relay::reader(store, EVIL, lease).await;
    let page = reader.page(PageSize { events_max: 100, bytes_max: 1_000_000 }).await.unwrap();
    let ends = [Undelivered::Halt, Undelivered::DeadLetter];
    let failures = page.events.iter().zip(ends);
    let failures =
        failures.map(|(event, then)| Undone { event: event.id, deliveries: 1, why: EVIL.into(), then });
    reader.commit(&Outcome { failures: failures.collect(), ..Outcome::default() }).await.unwrap();
    (failing, start(store).await)
}

/// Starts a batch of a DAG whose names contain markup.
pub(crate) async fn start(store: &dyn Store) -> BatchId {
    let after = format!("b{EVIL}");
    let definition =
        Definition::new(EVIL).task(EVIL, Task::job(EVIL)).task(&after, Task::job(EVIL).after([EVIL]));
    let dag = Dag::check(definition).unwrap();
    store.define_dag(&dag).await.unwrap();
    let input = serde_json::value::to_raw_value(&json!({ EVIL: EVIL })).unwrap();
    let (id, dag, key) = (BatchId::new(), EVIL.to_owned(), Some(EVIL.to_owned()));
    store
        .start_batch(&NewBatch { id, dag, version: None, key, input, nominal: None, traceparent: None })
        .await
        .unwrap()
        .batch
}

/// Returns the value of a form field.
fn hidden(html: &str, name: &str) -> String {
    let field = format!("name=\"{name}\" value=\"");
    let value = html.split(&field).nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    value.replace("&#38;", "&").replace("&amp;", "&")
}

pub(crate) async fn an_empty_store_has_pages_that_say_what_to_do_next(place: Place) {
    for url in PAGES {
        let (status, html) = place.page(url).await;
        assert_eq!(status, StatusCode::OK, "{url}");
        assert_harmless(url, &html);
        let tells = html.contains("class=\"empty\"")
            || html.contains("class=\"card empty\"")
            || url.contains("settings");
        assert!(tells, "{url}: {html}");
    }
    assert_eq!(place.page("/jobs/0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c").await.0, StatusCode::NOT_FOUND);
    for url in ["/series.json", "/series.json?range=week&queue=q&kind=k", "/series-recent.json"] {
        assert_eq!(place.page(url).await.0, StatusCode::OK, "{url}");
    }
}

pub(crate) async fn the_first_page_is_small_and_loads_nothing_from_elsewhere(place: Place) {
    fill(place.store.as_ref()).await;
    let response = place.request(reqwest::Method::GET, "/").send().await.unwrap();
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    let html = response.text().await.unwrap();
    let mut bytes = html.len();
    for part in html.split("=\"/assets/").skip(1) {
        let name = part.split('"').next().unwrap();
        let asset = place.request(reqwest::Method::GET, &format!("/assets/{name}")).send().await.unwrap();
        assert!(asset.headers()["cache-control"].to_str().unwrap().contains("immutable"), "{name}");
        bytes += asset.bytes().await.unwrap().len();
    }
    assert!((50_000..200_000).contains(&bytes), "{bytes} bytes, not compressed");
    assert!(!html.contains("http://") && !html.contains("https://"), "{html}");
}

pub(crate) async fn a_job_is_edited_on_its_page(place: Place) {
    let store = place.store.as_ref();
    let job = store.enqueue(&NewJob::new("mail", &json!({"to": "ada"})).unwrap()).await.unwrap().job;
    let (page, url) = (format!("/jobs/{job}"), format!("/jobs/{job}/edit"));
    let edit = |fields: &[(&str, &str)]| {
        let fields = [fields, &[("operation", "edit"), ("reason", "typo"), ("back", &page)]].concat();
        place.form(&url, &fields)
    };
    let html = place.page(&page).await.1;
    assert!(html.contains(&format!("action=\"{url}\"")) && html.contains("Edit this job?"), "{html}");
    let shown = "{\r\n  \"to\": \"ada\"\r\n}";
    let (_, message) =
        edit(&[("payload", shown), ("priority", "2"), ("max_attempts", ""), ("wait", "")]).await;
    assert!(message.starts_with("refused") && message.contains("the edit changes nothing"), "{message}");
    let (to, message) = edit(&[("payload", "{\"to\": \"eve\"}"), ("priority", "1"), ("wait", "2h")]).await;
    assert!(to == page && message.starts_with("done"), "{message}");
    let view = store.job(job).await.unwrap().unwrap();
    assert!(view.payload.get().contains("eve") && view.row.priority == 1 && view.waiting_for.is_some());
    let (_, message) = edit(&[("payload", "{")]).await;
    assert!(message.starts_with("refused") && message.contains("not JSON"), "{message}");
    let cancel = [("operation", "cancel"), ("reason", "done"), ("back", page.as_str())];
    place.form(&format!("/jobs/{job}/operate"), &cancel).await;
    assert!(!place.page(&page).await.1.contains("Edit this job?"), "its state does not allow it");
}

pub(crate) async fn a_form_does_what_it_says_and_wants_to_know_why(place: Place) {
    let store = place.store.as_ref();
    let job = store.enqueue(&NewJob::new("mail", &json!({"to": "ada"})).unwrap()).await.unwrap().job;
    let page = format!("/jobs/{job}");
    let abort = |reason: &'static str| {
        place.form(
            &format!("/jobs/{job}/operate"),
            &[("operation", "abort"), ("reason", reason), ("back", &page)],
        )
    };
    let (to, message) = abort("").await;
    assert!(to == page && message.starts_with("refused") && message.contains("reason"), "{message}");
    assert_eq!(store.job(job).await.unwrap().unwrap().row.state, JobState::Pending);
    let (to, message) = abort("too early").await;
    assert!(to == page && message.starts_with("done") && message.contains("aborted"), "{message}");
    assert_eq!(store.complete_history(job).await.unwrap()[1].note.as_deref(), Some("too early"));
    let pause =
        [("queue", "default"), ("operation", "pause"), ("reason", "calm"), ("back", "//evil.example")];
    assert_eq!(place.form("/queues/set", &pause).await.0, "/");
    assert!(store.queues().await.unwrap()[0].paused_at.is_some());
    let html = place.page("/").await.1;
    assert!(html.contains("Queue default is paused") && html.contains("Resume the queue"), "{html}");
    place
        .form(&format!("/jobs/{job}/operate"), &[("operation", "retry"), ("reason", "go"), ("back", &page)])
        .await;
    let html = place.page(&page).await.1;
    assert!(html.contains("<h2>Not running</h2>") && html.contains("queue default is paused"), "{html}");
}

pub(crate) async fn jobs_are_found_by_what_they_say(place: Place) {
    let store = place.store.as_ref();
    fill(store).await;
    let jobs: Vec<NewJob> = (0..60)
        .map(|n| NewJob::new("order", &json!({"order": {"no": n, "lines": [{"sku": "A"}]}})).unwrap())
        .collect();
    let made = store.enqueue_many(&jobs).await.unwrap();
    let found = place.page("/jobs?payload=order.no%3D17").await.1;
    assert!(
        found.contains(&made[17].job.to_string()) && !found.contains(&made[18].job.to_string()),
        "{found}"
    );
    assert!(
        found.contains("<option value=\"1d\" selected>"),
        "payload searches are limited to a day by default: {found}"
    );
    let none = place.page("/jobs?payload=order.no%3D99").await.1;
    assert!(none.contains("No job of the last day matches the search"), "{none}");
    let any = place.page("/jobs?payload=order.no%3D17&created=any").await.1;
    assert!(
        any.contains("<option value=\"any\" selected>") && any.contains(&made[17].job.to_string()),
        "{any}"
    );
    assert!(place.page("/jobs?created=2h").await.1.contains("is invalid; expected 1h, 1d, 7d, 30d or any"));
    let failed = place.page("/jobs?state=failed&error=ALERT(1)").await.1;
    assert!(failed.contains("class=\"pick\""), "{failed}");
    assert!(!place.page("/jobs?state=failed&error=absent").await.1.contains("class=\"pick\""));
    assert!(place.page("/jobs?payload=order").await.1.contains("is not of the form path=value"));
    let settings = async || place.page("/settings").await.1;
    let how = "milepost limits set --kind mail --rate 10/s";
    wait::until("limits are counted", async || settings().await.contains(how)).await;
    let first = place.page("/jobs?kind=order").await.1;
    assert_eq!(first.matches("class=\"pick\"").count(), 50);
    let id = made[3].job;
    let by_id = place.page(&format!("/jobs?key={id}")).await.1;
    assert!(by_id.contains(&format!("/jobs/{id}")), "an id finds its job: {by_id}");
}

pub(crate) async fn many_jobs_are_shown_and_then_changed_by_a_bulk_job(place: Place) {
    let store = place.store.as_ref();
    let jobs: Vec<NewJob> = (0..60).map(|n| NewJob::new("order", &n).unwrap()).collect();
    let made = store.enqueue_many(&jobs).await.unwrap();
    let preview = place.page("/jobs/change?all=yes&kind=order&operation=cancel").await.1;
    assert!(preview.contains("Cancel: 60 jobs?"), "{preview}");
    let late = store.enqueue(&NewJob::new("order", &json!(null)).unwrap()).await.unwrap().job;
    let change = |chosen: &str, seen: &str| {
        let fields = [("chosen", chosen), ("seen", seen), ("reason", "not these"), ("back", "/jobs")];
        place.form("/jobs/change", &fields)
    };
    let seen = hidden(&preview, "seen");
    let (to, message) = change(&hidden(&preview, "chosen"), &seen).await;
    assert!(message.starts_with("done") && message.contains("60 jobs"), "{message}");
    let run: JobId = to.strip_prefix("/bulk/").unwrap().parse().unwrap();
    let filter = BulkFilter { job: Some(run), limit: 1, ..BulkFilter::default() };
    let total = store.bulks(&filter).await.unwrap()[0].total.unwrap();
    assert_eq!(total.rows, 60, "{late} was created after the preview");
    let html = place.page(&to).await.1;
    assert!(
        html.contains("<progress") && html.contains("Cancel of 60 jobs") && html.contains("not these"),
        "{html}"
    );
    let abort = [("operation", "abort"), ("reason", "too many at once"), ("back", "/bulk")];
    place.form(&format!("/bulk/{run}/operate"), &abort).await;
    let html = place.page(&format!("/bulk/{run}")).await.1;
    assert!(html.contains("Aborted: too many at once"), "{html}");
    let overview = place.page("/").await.1;
    assert!(overview.contains("is aborted") && overview.contains("too many at once. 0 done"), "{overview}");
    let chosen = format!("operation=cancel&id={}&id={late}", made[3].job);
    assert!(change(&chosen, &seen).await.1.contains("2 jobs"));
    let (to, message) = change("operation=rerun&all=yes&kind=order", &seen).await;
    assert!(to == "/jobs" && message.starts_with("refused"), "waiting jobs cannot be rerun: {message}");
    let (to, message) = change("operation=eat&all=yes", &seen).await;
    assert!(to == "/jobs" && message.starts_with("refused"), "{message}");
}

pub(crate) async fn a_change_of_more_jobs_than_were_shown_is_shown_again(place: Place) {
    let store = place.store.as_ref();
    let jobs: Vec<NewJob> = (0..2).map(|n| NewJob::new("order", &n).unwrap()).collect();
    let made = store.enqueue_many(&jobs).await.unwrap();
    store.operate(made[0].job, &Operation::new(Verb::Abort)).await.unwrap();
    let preview = place.page("/jobs/change?all=yes&kind=order&operation=retry").await.1;
    assert!(preview.contains("1 job?"), "{preview}");
    let fields = ["chosen", "seen", "of"].map(|name| (name, hidden(&preview, name)));
    let mut fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, &**value)).collect();
    fields.extend([("reason", "go on"), ("back", "/jobs")]);
    store.operate(made[1].job, &Operation::new(Verb::Abort)).await.unwrap();
    let (to, message) = place.form("/jobs/change", &fields).await;
    assert!(
        message.starts_with("refused") && message.contains("now applies to 2 jobs, not to 1"),
        "{message}"
    );
    assert!(place.page(&to).await.1.contains("2 jobs?"), "the preview is shown again: {to}");
    store.operate(made[1].job, &Operation::new(Verb::Cancel)).await.unwrap();
    assert!(
        place.form("/jobs/change", &fields).await.1.starts_with("done"),
        "the same jobs as in the preview"
    );
}

pub(crate) async fn what_people_did_is_told_with_before_and_after(place: Place) {
    let store = place.store.as_ref();
    let job = store.enqueue(&NewJob::new("mail", &json!(null)).unwrap()).await.unwrap().job;
    let abort = [("operation", "abort"), ("reason", "the disk is full"), ("back", "/")];
    place.form(&format!("/jobs/{job}/operate"), &abort).await;
    for queue in (0..51).map(|n| format!("q{n}")) {
        store.acting_as(Actor::new("ada").unwrap()).pause_queue(&queue, true).await.unwrap();
    }
    let html = place.page(&format!("/jobs/{job}")).await.1;
    assert!(html.contains(&format!("href=\"/audit?subject={job}\"")), "{html}");
    let html = place.page(&format!("/audit?subject={job}")).await.1;
    for told in
        ["<del>state: pending</del>", "<ins>state: aborted</ins>", "the disk is full", "anonymous@127.0.0.1"]
    {
        assert!(html.contains(told), "{told}: {html}");
    }
    assert!(
        html.contains(&format!("href=\"/jobs/{job}\"")) && html.matches("<tr data-row").count() == 1,
        "{html}"
    );
    let html = place.page("/audit?who=ada&what=queue.pause").await.1;
    assert_eq!(html.matches("<tr data-row").count(), 50);
    let next = html.split("rel=\"next\"").next().unwrap().rsplit("href=\"").next().unwrap();
    let next = next.split('"').next().unwrap().replace("&#38;", "&");
    let html = place.page(&next).await.1;
    assert!(html.matches("<tr data-row").count() == 1 && !html.contains("rel=\"next\""), "{next}: {html}");
}

pub(crate) async fn who_only_looks_sees_nothing_that_changes_something(place: Place) {
    let (job, batch) = fill(place.store.as_ref()).await;
    let viewer = place.token(Role::Viewer).await;
    let look = async |path: &str| {
        let request = place.request(reqwest::Method::GET, path).bearer_auth(viewer.reveal());
        let answer = request.header("accept", "text/html").send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    let own = [format!("/jobs/{job}"), format!("/batches/{batch}"), "/jobs?state=failed".to_owned()];
    for path in PAGES.iter().filter(|path| **path != "/audit").map(|path| (*path).to_owned()).chain(own) {
        let (status, html) = look(&path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert_eq!(html.matches("method=\"post\"").count(), 1, "only the sign-out form: {path}: {html}");
        assert!(
            html.contains("action=\"/sign-out\"") && html.contains("<span>viewer</span>"),
            "{path}: {html}"
        );
        for bad in ["class=\"act", "/jobs/change", "class=\"pick", "Rerun", "href=\"/audit"] {
            assert!(!html.contains(bad), "{bad} in {path}: {html}");
        }
    }
    let (status, html) = look("/audit").await;
    assert!(status == StatusCode::FORBIDDEN && html.contains("The page cannot be shown"), "{status} {html}");
}

pub(crate) async fn what_is_not_there_is_a_page_for_people_and_a_problem_for_programs(place: Place) {
    let nobody = "01900000-0000-7000-8000-000000000000";
    let viewer = place.token(Role::Viewer).await;
    let ask = async |path: &str, accept: &str| {
        let request = place.request(reqwest::Method::GET, path).bearer_auth(viewer.reveal());
        place.send(request.header("accept", accept)).await
    };
    for (path, status, code) in [
        ("/jobs/no-such-job", 400, "invalid_parameter"),
        (&format!("/jobs/{nobody}"), 404, "no_such_job"),
        ("/bulk/no-such-run", 400, "invalid_parameter"),
        (&format!("/bulk/{nobody}"), 404, "no_such_bulk_job"),
        ("/batches/%00", 400, "invalid_parameter"),
        (&format!("/batches/{nobody}"), 404, "no_such_batch"),
        (&format!("/batches/{nobody}/rerun"), 403, "role_needed"),
        (&format!("/jobs/{nobody}/operate"), 405, "method_not_allowed"),
        ("/no/such/path", 404, "no_such_path"),
        ("/%3Cscript%3E", 404, "no_such_path"),
    ] {
        let shown = ask(path, "text/html,application/xhtml+xml,*/*;q=0.8").await;
        let html = shown.body.as_str().unwrap_or_default();
        assert_eq!(
            (shown.status.as_u16(), &*shown.content_type),
            (status, "text/html; charset=utf-8"),
            "{path}"
        );
        for part in [code, "aria-label=\"Pages\"", "<span>viewer</span>", "href=\"/\">Overview"] {
            assert!(html.contains(part), "{path} has no {part}: {html}");
        }
        assert!(!html.contains("<script>"), "{path}: {html}");
        let told = ask(path, "*/*").await;
        assert_eq!((told.status.as_u16(), told.code()), (status, code), "{path}");
    }
    let of_api = ask("/v1/jobs/no-such-job", "text/html").await;
    assert_eq!(of_api.code(), "invalid_parameter", "the API returns JSON");
}

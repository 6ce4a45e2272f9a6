//! Tests of the console's list of bulk jobs: filter by state, and pages.

use milepost_core::bulk::chunk::Load;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::staged::{ColumnType, Columns};
use milepost_core::bulk::statements::Statements;
use milepost_core::precedence::Scope;
use milepost_core::schedule::Source;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::api::place::Place;

/// Number of runs on a page.
const ROWS: usize = 100;

async fn started(place: &Place) -> String {
    let answer = place.post("/v1/bulk-runs", &json!({"name": "popular"})).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    answer.body["id"].as_str().unwrap().to_owned()
}

/// Returns the URL of the next page, if there is one.
fn next(html: &str) -> Option<String> {
    let (before, _) = html.split_once("\" rel=\"next\"")?;
    let (_, url) = before.rsplit_once("href=\"")?;
    Some(url.replace("&#38;", "&"))
}

pub(crate) async fn bulk_jobs_are_listed_by_state_and_page_by_page(place: Place) {
    place.store.put_bulk(&Definition::new("popular"), Source::Operator).await.unwrap();
    let mut over = Vec::new();
    for _ in 0..=ROWS {
        over.push(started(&place).await);
    }
    let waits = started(&place).await;
    for id in &over {
        let path = format!("/v1/bulk-runs/{id}/operate");
        let canceled = place.post(&path, &json!({"operation": "cancel"})).await;
        assert_eq!(canceled.status, StatusCode::OK, "{canceled:?}");
    }
    let has = |html: &str, id: &str| html.contains(&format!("href=\"/bulk/{id}\""));
    let rows = |html: &str| html.matches("data-row").count();
    let first = place.page("/bulk").await.1;
    assert!(rows(&first) == ROWS && has(&first, &waits) && has(&first, &over[ROWS]), "{first}");
    let second = place.page(&next(&first).unwrap()).await.1;
    assert!(rows(&second) == 2 && has(&second, &over[0]) && has(&second, &over[1]), "{second}");
    assert!(next(&second).is_none() && second.contains("Newest"), "{second}");
    let canceled = place.page("/bulk?state=canceled").await.1;
    assert!(rows(&canceled) == ROWS && !has(&canceled, &waits), "{canceled}");
    assert!(canceled.contains("<option value=\"canceled\" selected>"), "{canceled}");
    let rest = next(&canceled).unwrap();
    assert!(rest.contains("state=canceled") && rows(&place.page(&rest).await.1) == 1, "{rest}");
    let failed = place.page("/bulk?state=failed").await.1;
    assert!(failed.contains("No bulk jobs match the filter.") && rows(&failed) == 0, "{failed}");
    assert_eq!(place.page("/bulk?state=gone").await.0, StatusCode::BAD_REQUEST);
}

pub(crate) async fn the_buttons_of_a_bulk_job_say_what_they_did(place: Place) {
    place.store.put_bulk(&Definition::new("popular"), Source::Operator).await.unwrap();
    let run = started(&place).await;
    let overview = place.page("/").await.1;
    let progress = overview.split("In progress").nth(1).unwrap();
    assert!(progress.contains(&format!("href=\"/bulk/{run}\"")) && progress.contains("Abort…"), "{overview}");
    let url = format!("/bulk/{run}/operate");
    let operate = async |operation: &str| {
        let fields = [("operation", operation), ("reason", "too many at once"), ("back", "/bulk")];
        place.form(&url, &fields).await.1
    };
    for (operation, words) in [
        ("abort", format!("done.Abort of run {run}: aborted.")),
        (
            "resume",
            format!("done.Resume of run {run}: resumed; it continues after its last completed target."),
        ),
        ("cancel", format!("done.Cancel of run {run}: canceled.")),
    ] {
        assert_eq!(operate(operation).await, words);
    }
    assert!(operate("skip").await.starts_with("refused"));
}

pub(crate) async fn the_speed_of_a_run_is_shown_and_changed_where_the_run_is_shown(place: Place) {
    let load = Load { rows_per_s: Some(4000.0), duty: 0.5 };
    place.store.put_bulk(&Definition { load, ..Definition::new("popular") }, Source::Config).await.unwrap();
    let run = started(&place).await;
    let page = async || place.page(&format!("/bulk/{run}")).await.1;
    let limits =
        "chunks of about 350ms each, 50 to 50,000 rows, at most 4000 rows/s, at most 50.0 % of the time";
    let html = page().await;
    assert!(html.contains(limits) && !html.contains("changed by an operator"), "{html}");
    for list in ["/", "/bulk"] {
        let html = place.page(list).await.1;
        assert!(html.contains("Change the speed of popular?"), "{list}: {html}");
    }
    let url = format!("/bulk/{run}/set");
    let fields = [("rate", "500"), ("reason", "the database is busy"), ("back", "/")];
    assert_eq!(place.form(&url, &fields).await.1, "done.Changed; it applies from the next chunk on.");
    let html = page().await;
    assert!(
        html.contains("at most 500 rows/s, at most 50.0 % of the time (changed by an operator)"),
        "{html}"
    );
    let emptied = [("rate", ""), ("reason", "night"), ("back", "/")];
    assert_eq!(place.form(&url, &emptied).await.1, "done.Changed; it applies from the next chunk on.");
    let html = page().await;
    assert!(html.contains(limits) && !html.contains("changed by an operator"), "{html}");
    place.form(&url, &fields).await;
    place.store.sync_bulks(&[], &Scope::All).await.unwrap();
    let html = page().await;
    assert!(
        html.contains("<dd>at most 500 rows/s (changed by an operator)</dd>"),
        "its bulk job was removed: {html}"
    );
}

pub(crate) async fn a_run_is_started_in_the_console_with_its_parameters(place: Place) {
    let columns = Columns::new([("id", ColumnType::Integer)]).unwrap();
    let of_file = Definition { columns: Some(columns), ..Definition::new("from_file") };
    for definition in [&Definition::new("popular"), &of_file] {
        place.store.put_bulk(definition, Source::Operator).await.unwrap();
    }
    let html = place.page("/bulk").await.1;
    assert_eq!(html.matches(r#"action="/bulk/start""#).count(), 2, "{html}");
    assert!(html.contains("enctype=\"multipart/form-data\""), "{html}");
    assert!(html.contains("<input type=\"file\" name=\"file\" accept=\".csv,"), "{html}");
    assert!(html.contains("milepost bulk start from_file --from FILE"), "{html}");
    let start = async |name: &str, parameters: &str| {
        let fields = [
            ("name", name),
            ("parameters", parameters),
            ("key", "monday"),
            ("priority", "1"),
            ("reason", "announcement"),
            ("back", "/bulk"),
        ];
        place.form("/bulk/start", &fields).await
    };
    let (page, said) = start("popular", r#"{"place": 100000000000000000001}"#).await;
    let run = page.strip_prefix("/bulk/").expect(&said);
    let job = place.store.job(run.parse().unwrap()).await.unwrap().unwrap();
    assert!(job.payload.get().contains("100000000000000000001"), "all digits of the parameter are kept");
    assert_eq!(start("popular", "{}").await.0, page, "its key exists");
    for (name, parameters, fault) in [
        ("popular", "[1]", "no JSON object"),
        ("gone", "{}", "no bulk job"),
        ("from_file", "{}", "from a file"),
    ] {
        let (back, said) = start(name, parameters).await;
        assert!(back == "/bulk" && said.contains(fault), "{said}");
    }
}

pub(crate) async fn the_page_of_a_bulk_job_shows_its_sql_and_its_form_asks_for_the_parameters(place: Place) {
    let parameters = [
        ("place", Some(ColumnType::Integer)),
        ("text", Some(ColumnType::Text)),
        ("urgent", Some(ColumnType::Boolean)),
        ("tag", None),
    ];
    let statements = Statements {
        source: Some("select id from member where place = :place and id > :cursor".to_owned()),
        effect: Some("insert into note (member, text) select id, :text from chunk".to_owned()),
        parameters: parameters.map(|(name, of)| (name.to_owned(), of)).into(),
    };
    let definition = Definition { statements: Some(statements), ..Definition::new("near & far") };
    place.store.put_bulk(&definition, Source::Operator).await.unwrap();
    let url = "/bulk-definitions/near%20%26%20far";
    assert!(place.page("/bulk").await.1.contains(&format!("href=\"{url}\"")));
    let html = place.page(url).await.1;
    for words in [
        "place = :place and id",
        "insert into note",
        "No runs. Start one:",
        "one run at a time",
        "name=\"number:place\"",
        "name=\"text:text\"",
        "name=\"json:urgent\"",
        "name=\"value:tag\"",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }
    let start = async |fields: &[(&str, &str)]| {
        let common = [("name", "near & far"), ("reason", "announcement"), ("back", url)];
        place.form("/bulk/start", &[&common, fields].concat()).await
    };
    let given = [("number:place", "100000000000000000001"), ("text:text", "007"), ("json:urgent", "true")];
    let (back, said) = start(&given).await;
    assert!(back == url && said.contains("no \"tag\", which the SQL of the bulk job uses as :tag"), "{said}");
    let (page, said) = start(&[&given[..], &[("value:tag", "7, 8")]].concat()).await;
    let run = page.strip_prefix("/bulk/").expect(&said);
    let job = place.store.job(run.parse().unwrap()).await.unwrap().unwrap();
    let payload: Value = serde_json::from_str(job.payload.get()).unwrap();
    assert_eq!(
        (&payload["text"], &payload["urgent"], &payload["tag"]),
        (&json!("007"), &json!(true), &json!("7, 8"))
    );
    assert!(job.payload.get().contains("100000000000000000001"), "{payload}");
    let html = place.page(url).await.1;
    assert!(html.contains(&format!("href=\"{page}\"")), "its runs are listed: {html}");
    assert!(place.page(&page).await.1.contains(&format!("href=\"{url}\"")));

    let lacking = json!({"name": "near & far", "parameters": {"place": 1}});
    let refused = place.post("/v1/bulk-runs", &lacking).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
    let stored = place.get("/v1/bulk-definitions/near%20%26%20far").await.body;
    assert_eq!(stored["parameters"][0], json!({"name": "place", "type": "integer"}));
    assert_eq!(place.page("/bulk-definitions/gone").await.0, StatusCode::NOT_FOUND);
}

//! Tests of runs over files that are sent to the server.

use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::listing::BulkFilter;
use milepost_core::bulk::staged::{ColumnType, Columns};
use milepost_core::schedule::Source;
use milepost_core::token::Role;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::api::place::Place;
use crate::api::sessions::begun;

const CSV: &str = "text/csv; charset=utf-8";
const JSONL: &str = "application/x-ndjson";

pub(crate) async fn with_a_bulk_job(place: &Place) {
    let columns = Columns::new([("id", ColumnType::Integer), ("name", ColumnType::Text)]).unwrap();
    let of_file = Definition { columns: Some(columns), ..Definition::new("letter") };
    for definition in [&Definition::new("popular"), &of_file] {
        place.store.put_bulk(definition, Source::Operator).await.unwrap();
    }
}

async fn send(place: &Place, query: &str, content_type: &str, body: &str) -> (StatusCode, Value) {
    let request = place.request(Method::POST, &format!("/v1/bulk-runs/from-file?{query}"));
    let answer = request.header("content-type", content_type).body(body.to_owned()).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

pub(crate) async fn a_run_is_started_over_the_rows_of_a_file(place: Place) {
    with_a_bulk_job(&place).await;
    let rows: String = (1..=2_500).map(|n| format!("{n},\"Name, {n}\"\r\n")).collect();
    let query = "name=letter&file=members.csv&key=may&parameters=%7B%22text%22%3A%22hi%22%7D&reason=monthly";
    let (status, made) = send(&place, query, CSV, "\u{feff}id,name\r\n").await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let again = send(&place, query, CSV, &format!("id,name\r\n{rows}")).await;
    assert_eq!((again.0, &again.1["id"]), (StatusCode::OK, &made["id"]), "its key exists");

    let (status, made) = send(&place, "name=letter&file=m.csv", CSV, &format!("id,name\r\n{rows}")).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let run = place.get(&format!("/v1/bulk-runs/{}", made["id"].as_str().unwrap())).await.body;
    assert_eq!((&run["file"]["rows"], &run["file"]["name"]), (&2_500.into(), &"m.csv".into()), "{run}");
    let lines = "{\"id\": 1, \"name\": \"a\"}\n\n{\"id\": 2, \"name\": \"b\"}";
    assert_eq!(send(&place, "name=letter", JSONL, lines).await.0, StatusCode::CREATED);
}

pub(crate) async fn a_file_that_is_sent_again_with_its_idempotency_key_starts_no_second_run(place: Place) {
    with_a_bulk_job(&place).await;
    let send = async |query: &str, body: &'static str| {
        let request = place.request(Method::POST, &format!("/v1/bulk-runs/from-file?name=letter{query}"));
        let request = request.header("content-type", CSV).header("idempotency-key", "may");
        let answer = request.body(body).send().await.unwrap();
        (answer.status(), answer.json::<Value>().await.unwrap())
    };
    let made = send("", "id,name\n1,a\n").await;
    let again = send("", "id,name\n1,a\n").await;
    assert_eq!((made.0, again.0), (StatusCode::CREATED, StatusCode::OK));
    assert_eq!(made.1["id"], again.1["id"]);
    let other_content =
        [("", "id,name\n1,a\n2,b\n"), ("&parameters=%7B%22text%22%3A%22hi%22%7D", "id,name\n1,a\n")];
    for (query, body) in other_content {
        let refused = send(query, body).await;
        assert_eq!(refused.1["code"], "idempotency_key_taken", "{}", refused.1);
    }
    assert_eq!(place.get("/v1/bulk-runs").await.body["items"].as_array().unwrap().len(), 1);
}

pub(crate) async fn a_file_with_a_bad_row_starts_nothing(place: Place) {
    with_a_bulk_job(&place).await;
    for (query, content_type, body, words) in [
        (
            "name=letter",
            CSV,
            "id,name\n1,a\nx,b\n3\n",
            "rows are bad, so nothing was started; line 3, column 1",
        ),
        ("name=letter", CSV, "id\n1\n", "there is no column \"name\""),
        ("name=letter", CSV, "", "it is empty"),
        ("name=letter", JSONL, "{\"id\": 1}\n", "a row is bad"),
        ("name=letter", "application/json", "{}", "text/csv or application/x-ndjson"),
        ("name=letter&parameters=7", CSV, "id,name\n", "must be a JSON object"),
        ("name=letter&priority=9", CSV, "id,name\n", "from 1"),
        ("name=popular", CSV, "id,name\n", "without a file"),
        ("name=gone", CSV, "id,name\n", "no bulk job"),
    ] {
        let (status, refused) = send(&place, query, content_type, body).await;
        assert!(
            status.is_client_error() && refused["detail"].as_str().unwrap().contains(words),
            "{words}: {refused}"
        );
    }
    assert_eq!(place.get("/v1/bulk-runs").await.body["items"], Value::Array(Vec::new()));
}

/// Returns the form that starts a run over this file.
pub(crate) fn form(csrf: &str, file: &str, content: &str) -> String {
    let fields = [
        ("csrf", csrf),
        ("name", "letter"),
        ("parameters", "{}"),
        ("reason", "may"),
        ("back", "/bulk"),
        ("form", "1"),
    ];
    let field = |(name, value): &(&str, &str)| {
        format!("--line\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let fields: String = fields.iter().map(field).collect();
    format!(
        "{fields}--line\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{file}\"\r\n\
         content-type: text/csv\r\n\r\n{content}\r\n--line--\r\n"
    )
}

pub(crate) async fn an_operator_uploads_a_file_in_the_console(place: Place) {
    with_a_bulk_job(&place).await;
    let token = place.token(Role::Operator).await;
    let (cookie, csrf) = begun(&place, &token).await;
    let send = async |csrf: &str, file: &str, content: &str| {
        let request = place.by_page(Method::POST, "/bulk/start").header("cookie", &cookie);
        let request = request.header("content-type", "multipart/form-data; boundary=line");
        let answer = request.body(form(csrf, file, content)).send().await.unwrap();
        let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        (answer.status(), header("location").unwrap_or_default(), header("set-cookie").unwrap_or_default())
    };
    let rows = "id,name\n1,a\n2,\"b\nc\"\n";
    let refused = send("another", "members.csv", rows).await.0;
    assert_eq!(refused, StatusCode::FORBIDDEN, "the form is not from a page of this session");
    for (file, content, words) in
        [("members.txt", rows, "must%20end%20in"), ("members.csv", "id,name\nx,a\n", "line%202")]
    {
        let (status, back, said) = send(&csrf, file, content).await;
        assert!(status == StatusCode::SEE_OTHER && back == "/bulk" && said.contains(words), "{said}");
    }
    let (_, page, said) = send(&csrf, "C:\\lists\\members.csv", rows).await;
    let run = page.strip_prefix("/bulk/").expect(&said);
    assert_eq!(send(&csrf, "C:\\lists\\members.csv", rows).await.1, page, "the same form again");
    assert_ne!(send(&csrf, "C:\\lists\\members.csv", "id,name\n7,z\n").await.1, page, "another file");
    let run = place
        .store
        .bulks(&BulkFilter { job: Some(run.parse().unwrap()), limit: 1, ..BulkFilter::default() })
        .await
        .unwrap();
    let told = serde_json::to_value(&run[0]).unwrap();
    assert_eq!((&told["file"]["rows"], &told["file"]["name"]), (&2.into(), &"members.csv".into()), "{told}");
}

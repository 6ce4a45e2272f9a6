//! `milepost serve`: the API as a process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use support::process::Process;
use support::{Place, on_each_store};

on_each_store! {
    a_job_that_was_answered_for_stands_when_the_server_is_killed,
    a_server_that_is_asked_to_leave_ends_well,
    the_bench_of_the_api_answers_its_numbers,
}

/// A server, and where it listens.
fn serve(place: &Place) -> (Process, String) {
    let mut server = Process::spawn(&mut place.command(&["serve", "--listen", "127.0.0.1:0"]));
    let line = server.hear("serving http://");
    let address = line.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    (server, address)
}

/// The answer to one request, status line and all.
fn ask(address: &str, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let bytes = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn a_job_that_was_answered_for_stands_when_the_server_is_killed(place: Place) {
    let (server, address) = serve(&place);
    let answer = ask(&address, "POST", "/v1/jobs", r#"{"kind": "mail", "key": "order-17"}"#);
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    server.signal("KILL");
    server.end();
    assert_eq!(place.ids().len(), 1);
    let (_server, address) = serve(&place);
    let again = ask(&address, "POST", "/v1/jobs", r#"{"kind": "mail", "key": "order-17"}"#);
    assert!(again.starts_with("HTTP/1.1 200") && again.contains(&place.ids()[0]), "{again}");
}

fn a_server_that_is_asked_to_leave_ends_well(place: Place) {
    let (server, address) = serve(&place);
    assert!(ask(&address, "GET", "/readyz", "").starts_with("HTTP/1.1 200"));
    server.signal("TERM");
    let (status, log) = server.end();
    assert_eq!(status, Some(0), "{log}");
    let open = place.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(open.status == 1 && open.err.contains("asks for no token"), "{}", open.err);
}

fn the_bench_of_the_api_answers_its_numbers(place: Place) {
    let told = place.run(&["bench", "api", "--jobs", "200", "--clients", "4", "--json"]).json();
    assert_eq!(told["bench"], "api");
    for number in ["create_per_s", "create_many_per_s"] {
        assert!(told[number].as_f64().unwrap() > 0.0, "{told}");
    }
    assert!(told["create_ms"]["p50"].as_f64().unwrap() > 0.0);
}

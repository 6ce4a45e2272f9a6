//! Tests of `milepost serve` as a process.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::http::{ask, ask_with};
use crate::support::process::Process;
use crate::support::{self, Place, on_each_store, until_true};

on_each_store! {
    a_job_that_was_answered_for_stands_when_the_server_is_killed,
    a_server_that_is_asked_to_leave_ends_well,
    what_is_under_way_when_a_server_is_asked_to_leave_is_answered,
    an_address_at_which_it_cannot_listen_is_refused_with_what_to_do,
    a_server_that_asks_for_tokens_of_which_there_are_none_says_so,
    a_process_runs_jobs_and_publishes_events_beside_the_api,
    a_part_that_has_nothing_to_do_is_refused,
    limits_schedules_and_dags_of_a_file_without_kinds_are_applied,
    an_operation_on_many_jobs_is_done_beside_the_api,
    a_server_forgets_what_its_configuration_says,
    a_server_asks_for_a_token_once_there_is_one,
    an_address_that_others_reach_needs_tokens_and_tls_unless_told_so_by_name,
    the_bench_of_the_api_answers_its_numbers,
    the_bench_of_the_stream_answers_its_numbers,
    the_bench_of_the_console_fills_a_store_and_asks_for_every_page,
}

fn a_job_that_was_answered_for_stands_when_the_server_is_killed(place: Place) {
    let (server, address) = Process::serve(&place, &[]);
    let answer = ask(&address, "POST", "/v1/jobs", r#"{"kind": "mail", "key": "order-17"}"#);
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    server.signal("KILL");
    server.end();
    assert_eq!(place.ids().len(), 1);
    let (_server, address) = Process::serve(&place, &[]);
    let again = ask(&address, "POST", "/v1/jobs", r#"{"kind": "mail", "key": "order-17"}"#);
    assert!(again.starts_with("HTTP/1.1 200") && again.contains(&place.ids()[0]), "{again}");
}

fn a_server_that_is_asked_to_leave_ends_well(place: Place) {
    let (server, address) = Process::serve(&place, &[]);
    assert!(ask(&address, "GET", "/readyz", "").starts_with("HTTP/1.1 200"));
    server.leave();
    let open = place.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(open.status == 1 && open.err.contains("no tokens are required"), "{}", open.err);
}

fn what_is_under_way_when_a_server_is_asked_to_leave_is_answered(place: Place) {
    let (mut server, address) = Process::serve(&place, &[]);
    let body = r#"{"kind": "mail"}"#;
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(
        stream,
        "POST /v1/jobs HTTP/1.1\r\nHost: {address}\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .unwrap();
    let mut heard = [0; 25];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(heard.as_slice(), b"HTTP/1.1 100 Continue\r\n\r\n", "it reads the request");
    server.signal("TERM");
    server.hear("completing work in progress");
    until_true("no new connections are accepted", || TcpStream::connect(&address).is_err());
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let (status, log) = server.end();
    assert_eq!(status, Some(0), "{log}");
    assert_eq!(place.ids().len(), 1);
}

fn an_address_at_which_it_cannot_listen_is_refused_with_what_to_do(place: Place) {
    let (_server, address) = Process::serve(&place, &[]);
    let refused = |listen: &str, status: i32, words: &str| {
        let ran = place.run(&["serve", "--listen", listen]);
        assert!(ran.status == status && ran.err.contains(words), "{}", ran.err);
    };
    refused(&address, 1, "another process listens");
    refused("localhost:7070", 2, "such as 127.0.0.1:7070");
    refused("7070", 2, "such as 127.0.0.1:7070");
}

fn a_server_that_asks_for_tokens_of_which_there_are_none_says_so(place: Place) {
    let flags = ["serve", "--listen", "127.0.0.1:0", "--require-tokens"];
    let mut server = Process::spawn(&mut place.command(&flags));
    server.hear("`milepost tokens create` creates one");
    server.hear("serving http://");
}

fn a_process_runs_jobs_and_publishes_events_beside_the_api(place: Place) {
    place.write(
        "milepost.toml",
        "[kinds.echo]\nexec = { program = \"cat\" }\n[subscription.all]\njsonl = { path = \"events.jsonl\" }\n",
    );
    let (server, address) = Process::serve(&place, &[]);
    let answer = ask(&address, "POST", "/v1/jobs", r#"{"kind": "echo", "payload": {"n": 1}}"#);
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    place.run(&["events", "emit", "order", "17", "order.paid"]).ok();
    let id = &place.ids()[0];
    for line in [
        "milepost_worker_runs_total{outcome=\"succeeded\"} 1.0",
        "milepost_relay_published_events_total{subscription=\"all\"} 1.0",
        "milepost_worker_run_seconds_count{kind=\"echo\"} 1",
        "milepost_job_wait_seconds_count{queue=\"default\",kind=\"echo\"} 1",
        "milepost_worker_claim_jobs_bucket{le=\"1.0\"} 1",
        "milepost_worker_end_jobs_sum 1.0",
    ] {
        support::until(&format!("{line} is reported"), || {
            let metrics = ask(&address, "GET", "/metrics", "");
            if metrics.lines().any(|its| its == line) { Ok(()) } else { Err(metrics) }
        });
    }
    assert!(ask(&address, "GET", &format!("/v1/jobs/{id}"), "").contains("\"state\":\"succeeded\""));
    assert!(place.read("events.jsonl").contains("order.paid"));
    server.leave();
}

fn a_part_that_has_nothing_to_do_is_refused(place: Place) {
    for (part, words) in [("work", "no [kinds.NAME]"), ("relay", "no [subscription.NAME]")] {
        let ran = place.run(&["serve", "--only", part]);
        assert!(ran.status == 1 && ran.err.contains(words), "{}", ran.err);
    }
    place.write("milepost.toml", "[subscription.all]\nnull = {}\n");
    let mut relay =
        Process::spawn(&mut place.command(&["serve", "--only", "relay", "--listen", "127.0.0.1:0"]));
    let address = relay.address();
    let takeovers = "milepost_relay_takeovers_total{subscription=\"all\"}";
    until_true("its metrics are reported", || ask(&address, "GET", "/metrics", "").contains(takeovers));
    assert!(ask(&address, "GET", "/v1/jobs", "").starts_with("HTTP/1.1 404"), "there is no API");
}

fn limits_schedules_and_dags_of_a_file_without_kinds_are_applied(place: Place) {
    let dag = "name = \"two\"\n[tasks.first]\nkind = \"mail\"\n[tasks.second]\nkind = \"mail\"\nafter = [\"first\"]\n";
    place.write("two.toml", dag);
    place.write(
        "milepost.toml",
        "[batch.two]\nfile = \"two.toml\"\n[[limits]]\nkind = \"mail\"\nrate = \"5/s\"\n\
         [[schedules]]\nname = \"nightly\"\ncron = \"0 3 * * *\"\nkind = \"mail\"\n",
    );
    let (_server, address) = Process::serve(&place, &[]);
    for (path, words) in
        [("/v1/limits", "mail"), ("/v1/schedules/nightly", "0 3 * * *"), ("/v1/dags/two", "second")]
    {
        let answer = ask(&address, "GET", path, "");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(words), "{path}: {answer}");
    }
}

fn a_server_asks_for_a_token_once_there_is_one(place: Place) {
    place.write("milepost.toml", "[serve]\nlisten = \"127.0.0.1:0\"\nsession_idle = \"5m\"\n");
    let mut server = Process::spawn(&mut place.command(&["serve"]));
    let address = server.address();
    assert!(ask(&address, "GET", "/v1/queues", "").starts_with("HTTP/1.1 200"));
    let token = place.run(&["tokens", "create", "ci", "--role", "viewer"]).ok().out;
    until_true("tokens are required", || ask(&address, "GET", "/v1/queues", "").starts_with("HTTP/1.1 401"));
    let shown = format!("Authorization: Bearer {}", token.trim());
    assert!(ask_with(&address, "GET", "/v1/queues", "", &shown).starts_with("HTTP/1.1 200"));
    let refused = ask_with(&address, "POST", "/v1/jobs", r#"{"kind": "mail"}"#, &shown);
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("operator"), "{refused}");
    let log = server.leave();
    assert!(!log.contains("mp_"), "a token is in no log: {log}");
}

fn an_address_that_others_reach_needs_tokens_and_tls_unless_told_so_by_name(place: Place) {
    let refused = |flags: &[&str], words: &str| {
        let ran = place.run(&[&["serve", "--listen", "0.0.0.0:0"], flags].concat());
        assert!(ran.status == 1 && ran.err.contains(words), "{}", ran.err);
    };
    refused(&[], "--insecure-no-tokens");
    refused(&["--require-tokens"], "--insecure-no-tls");
    refused(&["--insecure-no-tls"], "--insecure-no-tokens");
    refused(
        &["--require-tokens", "--tls-cert", "no.pem", "--tls-key", "no.pem"],
        "no.pem cannot be used for TLS",
    );
    place.write("milepost.toml", "[serve]\ntrusted_proxies = [\"127.0.0.1\"]\n");
    let proxied = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(proxied.status == 1 && proxied.err.contains("through the proxies"), "{}", proxied.err);
    let flags = ["serve", "--listen", "0.0.0.0:0", "--insecure-no-tls", "--insecure-no-tokens"];
    let mut server = Process::spawn(&mut place.command(&flags));
    server.hear("everyone who reaches");
    server.hear("unencrypted");
    let line = server.hear("serving http://");
    let port = line.split("0.0.0.0:").nth(1).unwrap().split_whitespace().next().unwrap();
    assert!(ask(&format!("127.0.0.1:{port}"), "GET", "/v1/queues", "").starts_with("HTTP/1.1 200"));
}

fn the_bench_of_the_api_answers_its_numbers(place: Place) {
    let told = place.run(&["bench", "api", "--jobs", "200", "--clients", "4", "--json"]).json();
    assert_eq!(told["bench"], "api");
    for number in ["create_per_s", "create_many_per_s"] {
        assert!(told[number].as_f64().unwrap() > 0.0, "{told}");
    }
    assert!(told["create_ms"]["p50"].as_f64().unwrap() > 0.0);
}

fn the_bench_of_the_stream_answers_its_numbers(place: Place) {
    let args = ["bench", "stream", "--clients", "5", "--per-second", "200", "--seconds", "1", "--json"];
    let told = place.run(&args).json();
    assert_eq!((told["bench"].as_str(), told["changes"].as_u64()), (Some("stream"), Some(200)));
    assert!(told["told_ms"]["p99"].as_f64().unwrap() > 0.0, "{told}");
}

fn the_bench_of_the_console_fills_a_store_and_asks_for_every_page(place: Place) {
    let args = ["bench", "console", "--jobs", "2000", "--tasks", "500", "--rounds", "1", "--json"];
    let told = place.run(&args).json();
    assert_eq!((told["bench"].as_str(), told["jobs"].as_u64()), (Some("console"), Some(2000)));
    let pages = told["pages"].as_array().unwrap();
    assert_eq!(pages.len(), 24, "{told}");
    for page in ["/", "/jobs?state=failed", "/jobs/{failed}", "/bulk/{bulk}", "/batches/{batch}", "/audit"] {
        assert!(pages.iter().any(|timed| timed["page"] == page), "{page}: {told}");
    }
    for timed in pages {
        let (bytes, median_ms) = (timed["bytes"].as_u64(), timed["median_ms"].as_f64());
        assert!(bytes.unwrap() > 0 && median_ms.unwrap() > 0.0, "{timed}");
    }
    assert!(told["first_load_bytes"].as_u64() > pages[0]["bytes"].as_u64(), "{told}");
    let count = |what: &str| place.tamper(&format!("select cast(count(*) as text) from milepost.{what}"));
    assert_eq!(count("job where kind <> 'noop' and kind <> 'bench_notify'"), "2000");
    assert_eq!((count("ended").as_str(), count("live where state = 'failed'").as_str()), ("1584", "16"));
    place.run(&["doctor"]).ok();
    let again = place.run(&args);
    assert!(again.status == 1 && again.err.contains("needs an empty one"), "{}", again.err);
}

fn an_operation_on_many_jobs_is_done_beside_the_api(place: Place) {
    let (_server, address) = Process::serve(&place, &[]);
    let ids = place.enqueue_many(3);
    let body =
        r#"{"filter": {"state": "pending", "kind": "mail"}, "operation": "cancel", "reason": "a mistake"}"#;
    let answer = ask(&address, "POST", "/v1/jobs/operate-many", body);
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    until_true("all are canceled", || ids.iter().all(|id| place.job(id)["state"] == "canceled"));
}

fn a_server_forgets_what_its_configuration_says(place: Place) {
    let canceled = place.enqueue(&[]);
    place.run(&["jobs", "cancel", &canceled, "--reason", "not needed"]).ok();
    let waits = place.enqueue(&[]);
    place.write("milepost.toml", "[retention]\ncanceled = \"0s\"\n");
    let (_server, address) = Process::serve(&place, &[]);
    let status = |job: &str| ask(&address, "GET", &format!("/v1/jobs/{job}"), "")[9..12].to_owned();
    until_true("the canceled job is deleted", || status(&canceled) == "404");
    assert_eq!(status(&waits), "200");
}

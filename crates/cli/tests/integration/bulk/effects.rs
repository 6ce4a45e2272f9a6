//! Tests of operations on chunks other than SQL: jobs, events, servers and programs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::bulk::{Members, section};
use crate::support::{Place, on_each_store, until};

on_each_store! {
    every_target_becomes_a_job,
    every_target_has_one_event_although_its_worker_is_killed,
    a_missing_column_is_reported_at_the_event_of_the_file,
    every_chunk_is_posted_with_a_key_of_its_own,
    every_chunk_is_given_to_a_program,
    bulk_jobs_do_not_take_the_places_of_others,
}

fn every_target_becomes_a_job(place: Place) {
    let config = section("popular", "enqueue = { kind = \"push\", max_attempts = 3, group = \"pushes\" }\n");
    let members = Members::new(place, 120, &(config + "[kinds.other]\nexec = { program = \"cat\" }\n"));
    let _work = members.work();
    let id = members.start("popular");
    let view = members.until_state(&id, "succeeded");
    assert_eq!((&view["done"], &view["effects"]), (&json!(120), &json!("exactly_once")));
    let jobs = members.place.run(&["jobs", "list", "--kind", "push", "--limit", "1000", "--json"]).json();
    let jobs = jobs.as_array().unwrap();
    assert_eq!(jobs.len(), 120);
    let job = members.place.job(jobs[0]["id"].as_str().unwrap());
    // Numbers in keys are formatted as the store formats them.
    let member = job["payload"]["id"].to_string();
    let key = job["key"].as_str().unwrap().replace('"', "");
    assert_eq!(key, format!("{id}:[{member}]"));
    assert_eq!((&job["max_attempts"], &job["group"]), (&json!(3), &json!("pushes")));
}

const TELL: &str =
    "emit = { aggregate_type = \"topic\", aggregate_id = \"topic\", event_type = \"member.noticed\" }\n";

fn every_target_has_one_event_although_its_worker_is_killed(place: Place) {
    // Slow, so that the run does not end before its start was observed.
    let lines = format!("{TELL}chunk = {{ min = 10, max = 10 }}\nrate = 20\n");
    let config = section("tell", &lines).replace("select id", "select id, topic");
    let config = format!("[worker]\nname = \"teller\"\nlease = \"1m\"\n{config}");
    let members = Members::new(place, 600, &config);
    let dry = members.bulk(&["dry-run", "tell", "--param", "topic=1"]).ok().out;
    assert!(dry.contains("everything was rolled back"), "{dry}");
    let number = |sql: &str| members.number(&format!("select {sql} from milepost.event"));
    assert_eq!(number("count(*)"), 0);
    let work = members.work();
    let id = members.start("tell");
    members.until(&id, "some chunks are done", |view| view["done"].as_u64() > Some(50));
    drop(work);
    members.place.expire_leases("teller (bulk)");
    let done = || members.show(&id)["done"].as_u64().unwrap();
    // The database may still execute a statement that the worker sent before it was killed.
    let done = until("the database has completed its requests", || {
        let (before, emitted, after) = (done(), number("count(*)"), done());
        if before != after {
            return Err(format!("{before}, then {after}"));
        }
        assert_eq!(emitted, before, "the counts differ from the emitted events");
        Ok(before)
    });
    assert!(done < 600, "it was killed in the middle");
    let _work = members.work();
    members.until(&id, "another worker continues", |view| view["done"].as_u64() > Some(done));
    members.bulk(&["abort", &id]).ok();
    members.until_state(&id, "aborted");
    members.bulk(&["set", &id, "--rate", "100000"]).ok();
    members.bulk(&["resume", &id]).ok();
    let view = members.until_state(&id, "succeeded");
    assert_eq!((&view["done"], &view["effects"]), (&json!(600), &json!("exactly_once")));
    let found =
        (number("count(*)"), number("count(distinct payload ->> 'id')"), number("max(aggregate_seq)"));
    assert_eq!(found, (600, 600, 600));
}

fn a_missing_column_is_reported_at_the_event_of_the_file(place: Place) {
    let members = Members::new(place, 1, &section("tell", TELL));
    let ran = members.place.run(&["work"]);
    let words = "milepost.toml:4:8: the bulk job tell cannot run: the source does not select topic, which is read from every target; it selects id";
    assert!(ran.status == 2 && ran.err.contains(words), "{}", ran.err);
}

/// A request to the server: idempotency key and body.
type Asked = (String, Value);

/// Starts a server that rejects the second request and accepts all others.
fn server() -> (String, Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (tell, asked) = channel();
    std::thread::spawn(move || {
        for (call, stream) in listener.incoming().enumerate() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut length, mut key) = (0, String::new());
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                let line = line.trim_end().to_lowercase();
                if let Some(bytes) = line.strip_prefix("content-length: ") {
                    length = bytes.parse().unwrap();
                }
                if let Some(its) = line.strip_prefix("idempotency-key: ") {
                    key = its.to_owned();
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let status = if call == 1 { "503 Service Unavailable" } else { "200 OK" };
            let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
            // Sent before the response, because the run may end immediately after it.
            let _ = tell.send((key, serde_json::from_slice(&body).unwrap()));
            stream.into_inner().write_all(head.as_bytes()).unwrap();
        }
    });
    (url, asked)
}

// Chunks grow by half, so that the chunk that is sent again is larger than the previous one.
fn every_chunk_is_posted_with_a_key_of_its_own(place: Place) {
    let (url, asked) = server();
    let http = format!(
        "http = {{ url = \"{url}\", allow_networks = [\"127.0.0.0/8\"] }}\nchunk = {{ target = \"60s\" }}\n"
    );
    let members = Members::new(place, 2_000, &section("popular", &http));
    let _work = members.work();
    let id = members.start("popular");
    let view = members.until_state(&id, "succeeded");
    assert_eq!((&view["done"], &view["effects"]), (&json!(2_000), &json!("at_least_once_per_chunk")));
    let shown = members.bulk(&["show", &id]).ok().out;
    assert!(shown.contains("at least once per chunk") && shown.contains("http_503"), "{shown}");
    let asked: Vec<Asked> = asked.try_iter().collect();
    let of_chunk = |at: usize, number: u32| asked[at].0.starts_with(&format!("{id}:{number}:"));
    assert!(of_chunk(0, 0) && of_chunk(1, 1) && of_chunk(3, 2), "{asked:?}");
    assert_eq!((asked.len(), &asked[1].0), (4, &asked[2].0), "the refused one is posted again under its key");
    assert_eq!((&asked[0].1["bulk_id"], &asked[0].1["params"]), (&json!(id), &json!({ "topic": 1 })));
    assert_eq!(asked[1].1, asked[2].1);
    let sizes: Vec<usize> = asked.iter().map(|(_, body)| body["rows"].as_array().unwrap().len()).collect();
    assert_eq!((sizes, &asked[3].1["rows"][0]), (vec![500, 750, 750, 750], &json!({ "id": 1_251 })));
}

fn every_chunk_is_given_to_a_program(place: Place) {
    let script = "cat >> rows; echo >> rows; echo $MILEPOST_IDEMPOTENCY_KEY >> keys";
    let exec = format!(
        "exec = {{ program = \"sh\", args = [\"-c\", \"{script}\"] }}\nchunk = {{ min = 60, max = 60 }}\n"
    );
    let members = Members::new(place, 120, &section("popular", &exec));
    let _work = members.work();
    let id = members.start("popular");
    members.until_state(&id, "succeeded");
    let keys = members.place.read("keys");
    let mut keys = keys.lines();
    let mut of_chunk =
        |number: u32| keys.next().is_some_and(|key| key.starts_with(&format!("{id}:{number}:")));
    assert!(of_chunk(0) && of_chunk(1));
    let rows: usize = members
        .place
        .read("rows")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["rows"].as_array().unwrap().len())
        .sum();
    assert_eq!(rows, 120);
}

fn bulk_jobs_do_not_take_the_places_of_others(place: Place) {
    let config =
        "[worker]\nconcurrency = 1\nbulk_concurrency = 1\n[kinds.echo]\nexec = { program = \"cat\" }\n";
    let members =
        Members::new(place, 10_000, &[config, &crate::bulk::notes("popular", "rate = 10\n")].concat());
    let _work = members.work();
    let id = members.start("popular");
    members.until_state(&id, "running");
    let job = members.place.run(&["enqueue", "echo", "--json"]).json()["job"].as_str().unwrap().to_owned();
    until("the job has its place", || match members.place.job(&job) {
        view if view["state"] == "succeeded" => Ok(()),
        view => Err(view.to_string()),
    });
    assert_eq!(members.show(&id)["state"], "running");
    let workers = members.place.run(&["workers", "list", "--json"]).json();
    assert_eq!(workers.as_array().unwrap().len(), 2, "{workers}");
}

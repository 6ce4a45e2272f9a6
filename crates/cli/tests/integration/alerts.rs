//! Tests of targets of alerts, and of `milepost alerts`.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::process::Process;
use crate::support::{Place, on_each_store, until, until_true};

on_each_store! {
    a_server_tells_a_chat_about_an_alert_that_can_be_silenced,
    a_target_that_fails_is_a_problem_of_its_own,
}

/// A chat: an HTTP server that records the texts that it gets.
struct Chat {
    port: u16,
    texts: Arc<Mutex<Vec<String>>>,
}

impl Chat {
    fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, texts) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<String>>>::default());
        let recorded = Arc::clone(&texts);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let (mut line, mut length) = (String::new(), 0);
                while stream.read_line(&mut line).unwrap() > 2 {
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap();
                recorded.lock().unwrap().push(body["text"].as_str().unwrap().to_owned());
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { port, texts }
    }

    fn texts(&self) -> Vec<String> {
        self.texts.lock().unwrap().clone()
    }

    fn configure(&self, place: &Place) {
        let port = self.port;
        let config = format!(
            "[notify.oncall]\nslack = \"http://127.0.0.1:{port}/services/s3cret0123\"\nallow_networks = [\"127.0.0.0/8\"]\n\
             for = \"0s\"\nconsole = \"https://jobs.example.org\"\n"
        );
        place.write("milepost.toml", config);
    }
}

fn a_server_tells_a_chat_about_an_alert_that_can_be_silenced(place: Place) {
    let chat = Chat::start("200 OK");
    chat.configure(&place);
    place.run(&["migrate"]).ok();
    let sent = place.run(&["alerts", "test", "oncall"]).ok().out;
    assert_eq!(sent, format!("sent to http://127.0.0.1:{}\n", chat.port));
    assert!(chat.texts()[0].contains("test of Milepost"), "{:?}", chat.texts());
    let unknown = place.run(&["alerts", "test", "oncal"]);
    assert!(unknown.status == 1 && unknown.err.contains("did you mean oncall?"), "{}", unknown.err);
    place.run(&["queues", "pause", "mail", "--reason", "the provider is down"]).ok();
    let (server, _) = Process::serve(&place, &[]);
    until_true("the chat gets a message", || chat.texts().len() == 2);
    let text = chat.texts().remove(1);
    assert!(
        text.starts_with("Warning: Queue mail is paused\n") && text.contains("the provider is down"),
        "{text}"
    );
    assert!(text.ends_with("https://jobs.example.org\n"), "{text}");
    let listed = place.run(&["alerts", "list", "--json"]).json();
    assert_eq!((&listed[0]["rule"], &listed[0]["subject"]), (&json!("queue_paused"), &json!("mail")));
    let silence = ["alerts", "silence", "queue_paused: mail", "--for", "8h", "--reason", "known"];
    assert_eq!(place.run(&silence).ok().out, "silenced: queue_paused: mail\n");
    let table = place.run(&["alerts", "list"]).ok().out;
    assert!(table.contains("queue_paused: mail") && table.contains("known"), "{table}");
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(
        place.run(&["alerts", "unsilence", id]).ok().out,
        "queue_paused: mail is no longer silenced\n"
    );
    let refused = place.run(&["alerts", "silence", "queue_paused: other"]);
    assert!(refused.status == 1 && refused.err.contains("no open incident"), "{}", refused.err);
    let targets = place.run(&["alerts", "targets"]).ok().out;
    assert!(targets.contains("oncall"), "{targets}");
    let log = server.leave();
    assert!(!log.contains("s3cret"), "{log}");
}

fn a_target_that_fails_is_a_problem_of_its_own(place: Place) {
    let chat = Chat::start("404 Not Found");
    chat.configure(&place);
    place.run(&["migrate"]).ok();
    place.run(&["queues", "pause", "mail"]).ok();
    let (server, _) = Process::serve(&place, &[]);
    until_true("a message fails", || {
        place.run(&["alerts", "targets", "--json"]).json()[0]["failures"].as_u64() > Some(0)
    });
    // Further failures would take a minute.
    place.tamper("update milepost.alert_target set failures = failures + 2");
    let entry = until("the target is reported", || {
        let all = place.run(&["status", "--json"]).json();
        let failing = |entry: &&Value| entry["alert"] == "target_failing: oncall";
        all.as_array().unwrap().iter().find(failing).cloned().ok_or_else(|| all.to_string())
    });
    assert_eq!(entry["title"], "Messages to the alert target oncall fail");
    assert!(entry["words"].as_str().unwrap().contains("it answered 404 Not Found"), "{entry}");
    let targets = place.run(&["alerts", "targets", "--json"]).json();
    assert!(targets[0]["failures"].as_u64().unwrap() >= 3, "{targets}");
    let log = server.leave();
    assert!(log.contains("was not delivered") && !log.contains("s3cret"), "{log}");
}

//! Tests of `milepost mcp`, which talk to it as an agent's program does.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::{Value, json};

use crate::support::process::Process;
use crate::support::{Place, on_each_store, until_true};
use crate::work::start;

on_each_store! {
    an_agent_finds_why_a_job_failed_and_retries_it_with_a_reason,
    an_agent_with_a_viewers_token_changes_nothing,
    an_agent_learns_that_no_server_answers,
}

/// A running `milepost mcp`.
struct Agent {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    asked: u64,
}

impl Agent {
    fn start(place: &Place, url: &str, token: &str) -> Self {
        let mut child = place.command(&["mcp", "--url", url]).env("MILEPOST_TOKEN", token).spawn().unwrap();
        let (requests, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut agent = Self { child, requests, answers, asked: 0 };
        let client = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        assert_eq!(agent.ask("initialize", &hello)["serverInfo"]["name"], "milepost");
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.requests, "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], self.asked, "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool. Returns its text, and whether it failed.
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{tool}: {result}"));
        (text.to_owned(), result["isError"] == true)
    }

    /// Calls a tool that succeeds, and returns the JSON of its text.
    fn read(&mut self, tool: &str, arguments: &Value) -> Value {
        let (text, failed) = self.call(tool, arguments);
        assert!(!failed, "{tool}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    fn leave(mut self) {
        drop(self.requests);
        assert!(self.child.wait().unwrap().success());
    }
}

/// Starts a server with tokens, and returns its URL and a token of each of these roles.
fn serve<const N: usize>(place: &Place, roles: [&str; N]) -> (Process, String, [String; N]) {
    place.run(&["migrate"]).ok();
    let tokens =
        roles.map(|role| place.run(&["tokens", "create", role, "--role", role]).ok().out.trim().to_owned());
    let (server, address) = Process::serve(place, &["--require-tokens"]);
    (server, format!("http://{address}"), tokens)
}

/// Creates a job that has failed, and that no worker would run.
fn fail(place: &Place) -> String {
    place.write("milepost.toml", "[kinds.invoice]\nexec = { program = \"false\" }\n");
    place.run(&["enqueue", "invoice", "--max-attempts", "1", "--key", "order 17"]).ok();
    let job = place.ids().remove(0);
    let work = start(place, &[]);
    until_true("the job has failed", || place.job(&job)["state"] == "failed");
    work.leave();
    job
}

fn an_agent_finds_why_a_job_failed_and_retries_it_with_a_reason(place: Place) {
    let (_server, url, [token]) = serve(&place, ["operator"]);
    let job = fail(&place);
    let mut agent = Agent::start(&place, &url, &token);
    let tools = agent.ask("tools/list", &json!({}))["tools"].to_string();
    assert!(
        ["status", "search_jobs", "show_job", "list_batches", "retry_job"]
            .iter()
            .all(|tool| tools.contains(tool)),
        "{tools}"
    );
    let status = agent.read("status", &json!({}));
    assert_eq!(
        (&status[0]["urgency"], &status[0]["title"]),
        (&json!("error"), &json!("1 job failed: invoice"))
    );
    let found = agent.read("search_jobs", &json!({ "state": "failed", "kind": "invoice" }));
    assert_eq!(found["items"][0]["id"], job);
    let shown = agent.read("show_job", &json!({ "id": job }));
    assert_eq!(shown["key"], "order 17");
    let attempts = agent.read("show_attempts", &json!({ "id": job }));
    assert!(attempts.to_string().contains("exec_1"), "{attempts}");
    let (text, failed) = agent.call("retry_job", &json!({ "id": job, "reason": " " }));
    assert!(failed && text.contains("reason"), "{text}");
    agent.read("retry_job", &json!({ "id": job, "reason": "the program is there again" }));
    assert_eq!(place.job(&job)["state"], "pending");
    let waits = agent.read("show_job", &json!({ "id": job }));
    assert_eq!(waits["waiting_for"]["reason"], "no_worker");
    let audit = place.run(&["audit", "--json"]).json().to_string();
    assert!(audit.contains("the program is there again") && audit.contains("operator"), "{audit}");
    agent.leave();
}

fn an_agent_with_a_viewers_token_changes_nothing(place: Place) {
    let (_server, url, [token]) = serve(&place, ["viewer"]);
    let job = fail(&place);
    let mut agent = Agent::start(&place, &url, &token);
    let (text, failed) = agent.call("retry_job", &json!({ "id": job, "reason": "please" }));
    assert!(failed && text.contains("403") && text.contains("operator"), "{text}");
    assert_eq!(place.job(&job)["state"], "failed");
    let (text, failed) = agent.call("search_jobs", &json!({ "state": "sleeping" }));
    assert!(failed && text.contains("400") && text.contains("state"), "{text}");
    agent.leave();
}

fn an_agent_learns_that_no_server_answers(place: Place) {
    let mut agent = Agent::start(&place, "http://127.0.0.1:1", "");
    let (text, failed) = agent.call("status", &json!({}));
    assert!(failed && text.contains("http://127.0.0.1:1 does not answer"), "{text}");
    agent.leave();
}

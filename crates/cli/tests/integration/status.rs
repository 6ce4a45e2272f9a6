//! Tests of `milepost status`.

use serde_json::{Value, json};

use crate::support::{Place, on_each_store, until_true};
use crate::work::{enqueue, start};

on_each_store! {
    the_problems_of_a_store_are_listed_with_the_command_that_shows_more,
}

fn the_problems_of_a_store_are_listed_with_the_command_that_shows_more(place: Place) {
    place.run(&["migrate"]).ok();
    let quiet = place.run(&["status"]).ok();
    assert!(quiet.out.is_empty() && quiet.err.contains("no problems"), "{} {}", quiet.out, quiet.err);
    place.write("milepost.toml", "[kinds.invoice]\nexec = { program = \"false\" }\n");
    let enqueued = place.run(&["enqueue", "invoice", "--max-attempts", "1", "--json"]).json();
    let job = enqueued["job"].as_str().unwrap().to_owned();
    let _work = start(&place, &[]);
    until_true("the job has failed", || place.job(&job)["state"] == "failed");
    enqueue(&place, "it's new", &json!({}));
    place.run(&["queues", "pause", "default", "--reason", "the disk is full"]).ok();
    let entries = place.run(&["status", "--json"]).json();
    let of = |title: &str| {
        let found = entries.as_array().unwrap().iter().find(|entry| entry["title"] == title);
        found.unwrap_or_else(|| panic!("{title}: {entries}")).clone()
    };
    let failed = of("1 job failed: invoice");
    assert_eq!(
        (&failed["urgency"], failed["words"].as_str().unwrap().contains("exec_1")),
        (&json!("error"), true)
    );
    let command = failed["command"].as_str().unwrap();
    assert_eq!(command, "milepost jobs list --state=failed --kind=invoice --queue=default --error=exec_1");
    let paused = of("Queue default is paused");
    assert!(paused["words"].as_str().unwrap().contains("the disk is full; 1 job waits"), "{paused}");
    assert_eq!(paused["command"], "milepost queues resume default");
    let listed: Vec<&str> = command.split(' ').skip(1).chain(["--json"]).collect();
    assert_eq!(place.run(&listed).json()[0]["id"], Value::from(job));
    let printed = place.run(&["status"]).ok().out;
    assert!(printed.starts_with("error    1 job failed: invoice\n         exec_1"), "{printed}");
}

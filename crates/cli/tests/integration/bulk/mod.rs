//! Tests of `milepost bulk`, and of `milepost work` with bulk jobs.

#![cfg(target_os = "linux")]

mod control;
mod databases;
mod effects;
mod files;
mod refused;
mod runs;

use std::fs::File;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Place, Ran};
use milepost_testkit::wait;
use serde_json::Value;

/// A store beside a table of members to be notified.
pub(crate) struct Members {
    pub(crate) place: Place,
}

/// The source of a bulk job over all members of a topic.
const SOURCE: &str = r#"
source = "select id from member where topic = :topic and id > :cursor order by id limit :limit"
key = ["id"]
"#;
/// The statement that writes a note for each member.
const APPLY: &str = "apply = \"insert into note (run, member) select :bulk_id, id from chunk\"\n";

/// Returns the section of a bulk job with this operation.
pub(crate) fn section(name: &str, lines: &str) -> String {
    format!("[bulk.{name}]{SOURCE}{lines}\n")
}

/// Returns the section of a bulk job that writes notes.
pub(crate) fn notes(name: &str, lines: &str) -> String {
    section(name, &format!("{APPLY}{lines}"))
}

impl Members {
    /// Creates `members` members of topic 1, and a configuration with these sections.
    pub(crate) fn new(place: Place, members: u32, config: &str) -> Self {
        place.run(&["migrate"]).ok();
        for sql in [
            "create table member (id bigint primary key, topic bigint not null)",
            "create index member_topic on member (topic, id)",
            "create table note (run text not null, member bigint not null unique)",
        ] {
            place.tamper(sql);
        }
        place.tamper(&format!(
            "with recursive n(id) as (select 1 union all select id + 1 from n where id < {members})
             insert into member (id, topic) select id, 1 from n"
        ));
        place.write("milepost.toml", config);
        Self { place }
    }

    /// Starts a run over topic 1; returns its id.
    pub(crate) fn start(&self, name: &str) -> String {
        self.start_with(name, &[])
    }

    pub(crate) fn start_with(&self, name: &str, args: &[&str]) -> String {
        let start = ["bulk", "start", name, "--param", "topic=1", "--json"];
        let started = self.place.run(&[&start, args].concat()).json();
        started["job"].as_str().unwrap().to_owned()
    }

    pub(crate) fn bulk(&self, args: &[&str]) -> Ran {
        self.place.run(&[&["bulk"], args].concat())
    }

    pub(crate) fn show(&self, id: &str) -> Value {
        self.bulk(&["show", id, "--json"]).json()
    }

    /// Starts a worker with the configuration.
    pub(crate) fn work(&self) -> Work {
        let log = File::create(self.place.path("work.log")).unwrap();
        let mut command = self.place.command(&["work"]);
        Work(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    /// Polls the run until it satisfies a condition.
    pub(crate) fn until(&self, id: &str, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        // There is no time limit while the run makes progress.
        let (mut moved_at, mut done) = (Instant::now(), Value::Null);
        loop {
            let view = self.show(id);
            if so(&view) {
                return view;
            }
            if view["done"] != done {
                (moved_at, done) = (Instant::now(), view["done"].clone());
            }
            let log = || self.place.read("work.log");
            assert!(
                moved_at.elapsed() < wait::LIMIT,
                "timed out while waiting until {what}: {view:#}\n{}",
                log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn until_state(&self, id: &str, state: &str) -> Value {
        self.until(id, state, |view| view["state"] == state)
    }

    /// Returns the number that a query selects.
    pub(crate) fn number(&self, query: &str) -> u64 {
        self.place.tamper(&format!("select cast(({query}) as text)")).parse().unwrap()
    }

    pub(crate) fn notes(&self) -> u64 {
        self.number("select count(*) from note")
    }
}

/// A worker process.
pub(crate) struct Work(Child);

impl Drop for Work {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! Tests of `milepost relay` as an operator uses it.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::process::{Child, Stdio};

use crate::support::http::ask;
use crate::support::process::Process;
use crate::support::{self, Place, on_each_store};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

on_each_store! {
    a_subscription_without_matching_events_is_reported_once,
    what_is_old_and_published_is_forgotten_as_the_file_says,
}

/// A relay that logs to a file.
struct Relay<'a> {
    place: &'a Place,
    child: Child,
}

impl<'a> Relay<'a> {
    fn start(place: &'a Place) -> Self {
        let log = File::create(place.path("relay.log")).unwrap();
        let mut command = place.command(&["relay"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Self { place, child }
    }

    fn log(&self) -> String {
        self.place.read("relay.log")
    }

    fn until(&self, what: &str, so: impl Fn() -> bool) {
        support::until(what, || if so() { Ok(()) } else { Err(self.log()) });
    }

    /// Stops the relay as an operator would; returns its log.
    fn stop(mut self) -> String {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).unwrap();
        assert!(self.child.wait().unwrap().success(), "{}", self.log());
        self.log()
    }
}

impl Drop for Relay<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn emit(place: &Place, aggregate_type: &str, events: u32) {
    for _ in 0..events {
        place.run(&["events", "emit", aggregate_type, "1", "it.happened"]).ok();
    }
}

/// Returns the number of events in the file of the sink.
fn published(place: &Place) -> usize {
    let path = place.path("out.jsonl");
    if path.exists() { place.read("out.jsonl").lines().count() } else { 0 }
}

fn count(place: &Place, of: &str) -> u32 {
    place.tamper(&format!("select cast(count(*) as text) from {of}")).parse().unwrap()
}

fn a_subscription_without_matching_events_is_reported_once(place: Place) {
    emit(&place, "order", 3);
    place.write(
        "milepost.toml",
        "[subscription.slip]\naggregate_types = [\"ordr\"]\nnull = {}\n\
         [subscription.orders]\naggregate_types = [\"order\"]\njsonl = { path = \"out.jsonl\" }\n",
    );
    let relay = Relay::start(&place);
    let words = "the filter of the subscription matches none of the existing events";
    relay.until("it warns", || relay.log().contains(words));
    emit(&place, "order", 2);
    relay.until("the events are published", || published(&place) == 5);
    let log = relay.stop();
    let reported: Vec<&str> = log.lines().filter(|line| line.contains(words)).collect();
    assert_eq!(reported.len(), 1, "{log}");
    for word in ["slip", "ordr", "events=3", "it.happened of order"] {
        assert!(reported[0].contains(word), "{word}: {}", reported[0]);
    }
}

fn what_is_old_and_published_is_forgotten_as_the_file_says(place: Place) {
    let subscription = "[subscription.all]\njsonl = { path = \"out.jsonl\" }\n";
    place.write("milepost.toml", subscription);
    emit(&place, "order", 3);
    let relay = Relay::start(&place);
    relay.until("it has published", || published(&place) == 3);
    relay.stop();
    assert_eq!(count(&place, "milepost.event"), 3, "they are too recent");
    place.write("milepost.toml", format!("{subscription}[retention]\nevents = \"0s\"\n"));
    let relay = Relay::start(&place);
    relay.until("they are deleted", || count(&place, "milepost.event") == 0);
    relay.stop();
}

#[test]
fn a_server_whose_positions_are_of_another_database_waits_for_the_reseed() {
    let place = Place::postgres();
    place.write("milepost.toml", "[subscription.all]\njsonl = { path = \"out.jsonl\" }\n");
    emit(&place, "order", 1);
    let (server, _) = Process::serve(&place, &[]);
    support::until_true("the event is published", || published(&place) == 1);
    server.leave();
    place.sql("update milepost.subscription set log_identity = log_identity + 1");
    emit(&place, "order", 1);

    let (mut server, address) = Process::serve(&place, &[]);
    server.hear("nothing is published until then");
    // Metrics of the store are cached for a short time.
    let needed = |value: u8| format!("milepost_relay_reseed_needed{{subscription=\"all\"}} {value}");
    let is_reported = |value| ask(&address, "GET", "/metrics", "").contains(&needed(value));
    support::until_true("the metric shows that a reseed is needed", || is_reported(1));
    support::until_true("the overview shows the remedy", || {
        ask(&address, "GET", "/", "").contains("milepost events reseed")
    });
    let lag = place.run(&["events", "lag"]).ok();
    assert!(lag.out.contains("milepost events reseed"), "{}", lag.out);
    assert_eq!(published(&place), 1);

    place.run(&["events", "reseed", "--yes"]).ok();
    support::until_true("the new event is published", || published(&place) == 2);
    support::until_true("the metric shows that no reseed is needed", || is_reported(0));
    server.leave();
}

//! Ticks of schedules: expressions, time zones, clock changes, and missed ticks.

mod by_each_minute;
mod changes_of_the_clocks;
mod expressions;
mod intervals;
mod missed;

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use milepost_core::job::NewJob;
use milepost_core::schedule::{CatchUp, InvalidSchedule, Misfire, Schedule, Spec};
use proptest::prelude::*;

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn cron(expression: &str, zone: &str) -> Spec {
    Spec::cron(expression, zone).unwrap()
}

/// Returns all ticks after `from` up to `to`, in wall-clock time of the zone.
fn local(spec: &Spec, from: &str, to: &str) -> Vec<String> {
    let zone = spec.zone();
    ticks(spec, at(from), at(to))
        .into_iter()
        .map(|tick| tick.to_zoned(zone.clone()).strftime("%m-%d %H:%M %:z").to_string())
        .collect()
}

fn ticks(spec: &Spec, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
    let all = std::iter::successors(spec.next_after(from), |tick| spec.next_after(*tick));
    all.take_while(|tick| *tick <= to).collect()
}

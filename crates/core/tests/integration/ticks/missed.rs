//! Missed ticks.

use crate::ticks::by_each_minute::{EXPRESSIONS, ZONES};
use crate::ticks::*;

const NOW: &str = "2026-05-06T12:00:30Z";

fn schedule(spec: Spec, misfire: Misfire) -> Schedule {
    Schedule::new("s", spec, NewJob::new("k", &()).unwrap()).misfire(misfire)
}

fn hourly(misfire: Misfire, first: &str) -> CatchUp {
    schedule(cron("0 * * * *", "UTC"), misfire).catch_up(at(first), at(NOW))
}

fn on_time(hour: u32) -> Timestamp {
    at(&format!("2026-05-06T{hour:02}:00:00Z"))
}

#[test]
fn a_tick_within_the_grace_was_not_missed_whatever_the_policy() {
    for misfire in [Misfire::Skip, Misfire::Once, Misfire::All { max: 1 }] {
        let caught_up = hourly(misfire, "2026-05-06T12:00:00Z");
        assert_eq!(caught_up, CatchUp { fire: vec![on_time(12)], dropped: 0, next_at: Some(on_time(13)) });
    }
}

#[test]
fn skip_drops_what_was_missed() {
    let caught_up = hourly(Misfire::Skip, "2026-05-06T08:00:00Z");
    assert_eq!(caught_up, CatchUp { fire: vec![on_time(12)], dropped: 4, next_at: Some(on_time(13)) });
    let late =
        schedule(cron("30 * * * *", "UTC"), Misfire::Skip).catch_up(at("2026-05-06T08:30:00Z"), at(NOW));
    assert_eq!(late.fire, []);
    assert_eq!((late.dropped, late.next_at), (4, Some(at("2026-05-06T12:30:00Z"))));
}

#[test]
fn once_makes_one_job_for_the_last_of_all_missed() {
    let caught_up = hourly(Misfire::Once, "2026-05-06T08:00:00Z");
    assert_eq!(
        caught_up,
        CatchUp { fire: vec![on_time(11), on_time(12)], dropped: 3, next_at: Some(on_time(13)) }
    );
}

#[test]
fn all_makes_each_job_and_drops_the_oldest_beyond_the_limit() {
    let all = hourly(Misfire::All { max: 100 }, "2026-05-06T08:00:00Z");
    assert_eq!(all.fire, [8, 9, 10, 11, 12].map(on_time));
    assert_eq!(all.dropped, 0);
    let two = hourly(Misfire::All { max: 2 }, "2026-05-06T08:00:00Z");
    assert_eq!(two.fire, [10, 11, 12].map(on_time));
    assert_eq!((two.dropped, two.next_at), (2, Some(on_time(13))));
}

#[test]
fn very_many_ticks_fire_in_turns_and_none_twice() {
    let schedule = schedule(Spec::every(Duration::from_secs(60)).unwrap(), Misfire::All { max: 1000 });
    let (mut next_at, mut fired) = (at("2026-05-01T00:00:00Z"), Vec::new());
    let mut turns = 0;
    while next_at <= at(NOW) {
        let turn = schedule.catch_up(next_at, at(NOW));
        assert!(turn.fire.len() <= 500);
        fired.extend(turn.fire);
        next_at = turn.next_at.unwrap();
        turns += 1;
    }
    assert_eq!(turns, 3);
    assert_eq!(fired.len(), 1001);
    assert!(fired.is_sorted() && fired.last() == Some(&at("2026-05-06T12:00:00Z")));
    assert!(fired.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn years_of_seconds_are_caught_up_with_at_once() {
    let schedule = schedule(cron("* * * * * *", "Europe/Berlin"), Misfire::Once);
    let caught_up = schedule.catch_up(at("2016-01-01T00:00:00Z"), at(NOW));
    assert_eq!(caught_up.fire.len(), 62, "the last missed tick, and one per second of the grace time");
    assert_eq!(caught_up.fire[0], at("2026-05-06T11:59:29Z"));
    assert_eq!(caught_up.dropped, 10_000, "the count stops here");
}

#[test]
fn a_missed_tick_that_the_spec_no_longer_has_still_counts() {
    // The rules of its time zone were changed after it was stored.
    let schedule = schedule(cron("0 3 * * *", "UTC"), Misfire::Once);
    let caught_up = schedule.catch_up(at("2026-05-06T04:00:00Z"), at(NOW));
    assert_eq!(caught_up.fire, [at("2026-05-06T04:00:00Z")]);
    assert_eq!(caught_up.next_at, Some(at("2026-05-07T03:00:00Z")));
}

proptest! {
    #[test]
    fn what_fires_and_what_is_dropped_are_all_ticks_once(
        expression in 0..EXPRESSIONS.len(),
        zone in 0..ZONES.len(),
        start_s in 946_684_800_i64..2_000_000_000,
        away_s in 0_i64..500_000,
        max in 1_u32..50,
    ) {
        let spec = cron(EXPRESSIONS[expression].0, ZONES[zone]);
        let first = spec.next_after(Timestamp::from_second(start_s).unwrap()).unwrap();
        let now = first + SignedDuration::from_secs(away_s);
        let mut due = vec![first];
        due.extend(ticks(&spec, first, now));
        let schedule = schedule(spec.clone(), Misfire::All { max });
        let mut next_at = first;
        let (mut fired, mut dropped) = (Vec::new(), 0);
        while next_at <= now {
            let turn = schedule.catch_up(next_at, now);
            fired.extend(turn.fire);
            dropped += turn.dropped as usize;
            next_at = turn.next_at.unwrap();
        }
        prop_assert_eq!(&due[dropped..], &fired[..]);
        prop_assert!(fired.len() <= max as usize + 6, "the most recent ticks, and those of the last minute");
        prop_assert_eq!(spec.next_after(now), Some(next_at));
    }
}

//! When schedules tick: expressions, zones, changes of the clocks, and ticks that were missed.

#![allow(clippy::unwrap_used, reason = "a failed expectation is meant to panic")]

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

/// All ticks after `from` up to `to`, as the clock of the zone shows them.
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

mod expressions {
    use super::*;

    #[test]
    fn names_ranges_steps_lists_macros_and_seconds_are_read() {
        let first = |expression: &str| {
            cron(expression, "UTC").next_after(at("2026-05-06T07:08:09Z")).unwrap().to_string()
        };
        assert_eq!(first("*/15 * * * *"), "2026-05-06T07:15:00Z");
        assert_eq!(first("30 9-17/4 * * MON-FRI"), "2026-05-06T09:30:00Z");
        assert_eq!(first("0 0 1 jan,JUL *"), "2026-07-01T00:00:00Z");
        assert_eq!(first("*/10 * * * * *"), "2026-05-06T07:08:10Z");
        assert_eq!(first("0 0 * * 7"), "2026-05-10T00:00:00Z");
        assert_eq!(first("0 0 L * *"), "2026-05-31T00:00:00Z");
        assert_eq!(first("0 0 * * FRI#L"), "2026-05-29T00:00:00Z");
        assert_eq!(first("0 0 * * MON#1"), "2026-06-01T00:00:00Z");
        assert_eq!(first("0 0 29 2 *"), "2028-02-29T00:00:00Z");
        assert_eq!(first("@hourly"), "2026-05-06T08:00:00Z");
        assert_eq!(first("@Daily"), "2026-05-07T00:00:00Z");
        assert_eq!(first("@midnight"), "2026-05-07T00:00:00Z");
        assert_eq!(first("@weekly"), "2026-05-10T00:00:00Z");
        assert_eq!(first("@monthly"), "2026-06-01T00:00:00Z");
        assert_eq!(first("@yearly"), "2027-01-01T00:00:00Z");
    }

    #[test]
    fn a_day_of_the_month_and_one_of_the_week_are_either_enough() {
        let days = local(&cron("0 0 13 * FRI", "UTC"), "2026-02-01T00:00:00Z", "2026-02-21T00:00:00Z");
        let days: Vec<&str> = days.iter().map(|day| &day[..5]).collect();
        assert_eq!(days, ["02-06", "02-13", "02-20"]);
    }

    #[test]
    fn a_bad_field_is_named_with_what_is_allowed() {
        for (expression, field) in [
            ("60 * * * *", "minute"),
            ("* 24 * * *", "hour"),
            ("* * 0 * *", "day of month"),
            ("* * * 13 *", "month"),
            ("* * * MON *", "month"),
            ("* * * * 8", "day of week"),
            ("* * * * FREI", "day of week"),
            ("* * * * JAN", "day of week"),
            ("61 * * * * *", "second"),
            ("* MON * * *", "hour"),
            ("*/0 * * * *", "minute"),
            ("5-1 * * * *", "minute"),
            ("1,,2 * * * *", "minute"),
            ("? * * * *", "minute"),
            ("99999999999 * * * *", "minute"),
        ] {
            match Spec::cron(expression, "UTC") {
                Err(error @ InvalidSchedule::Field { field: named, .. }) => {
                    assert_eq!(named, field, "{expression}");
                    assert!(error.to_string().contains("allowed are"), "{error}");
                }
                other => panic!("{expression}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for expression in ["", "* * * *", "* * * * * * *"] {
            assert!(matches!(Spec::cron(expression, "UTC"), Err(InvalidSchedule::Fields { .. })));
        }
        assert!(matches!(Spec::cron("@reboot", "UTC"), Err(InvalidSchedule::Macro { .. })));
        for never in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 0 30 FEB *"] {
            assert!(matches!(Spec::cron(never, "UTC"), Err(InvalidSchedule::Never { .. })), "{never}");
        }
        let error = Spec::cron("@daily", "Europe/Berlim").unwrap_err().to_string();
        assert!(error.contains("Europe/Berlin"), "{error}");
    }

    #[test]
    fn a_spec_is_read_back_as_it_is_written() {
        for text in ["0 3 * * *", "@daily", "*/10 * * * * *", "@every 10m", "@every 1d 2h"] {
            let spec = Spec::parse(text, "Europe/Berlin").unwrap();
            let again = Spec::parse(&spec.to_string(), spec.zone_name()).unwrap();
            assert_eq!(spec, again, "{text}");
        }
        assert_eq!(cron(" 0  3 * *  * ", "utc").to_string(), "0 3 * * *");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r"[0-9*/,\-#LW@a-zA-Z ?+é]{0,40}") {
            let _ = Spec::parse(&text, "UTC");
        }
    }
}

mod intervals {
    use super::*;

    #[test]
    fn ticks_are_multiples_since_1970_whenever_one_looks() {
        let spec = Spec::every(Duration::from_secs(600)).unwrap();
        for from in ["2026-05-06T07:00:00Z", "2026-05-06T07:04:59.999Z", "2026-05-06T07:09:59Z"] {
            assert_eq!(spec.next_after(at(from)), Some(at("2026-05-06T07:10:00Z")), "{from}");
        }
        assert_eq!(spec.next_after(at("1969-12-31T23:55:00.5Z")), Some(at("1970-01-01T00:00:00Z")));
    }

    #[test]
    fn an_interval_is_whole_seconds_and_bounded() {
        let refused = |interval| matches!(Spec::every(interval), Err(InvalidSchedule::Interval { .. }));
        assert!(refused(Duration::ZERO));
        assert!(refused(Duration::from_millis(1500)));
        assert!(refused(Duration::from_secs(367 * 24 * 3600)));
        for text in ["@every", "@every ", "@every -5m", "@every soon", "@every 1ms", "@everything"] {
            assert!(Spec::parse(text, "UTC").is_err(), "{text}");
        }
    }
}

/// Each row: zone, expression, the window, and the ticks in it by the clock on the wall.
mod changes_of_the_clocks {
    use super::*;

    #[test]
    fn berlin_forward_fixed_hours_tick_once_after_the_gap() {
        let window = ("2026-03-28T12:00:00Z", "2026-03-30T02:00:00Z");
        let ticks = |expression| local(&cron(expression, "Europe/Berlin"), window.0, window.1);
        assert_eq!(ticks("30 2 * * *"), ["03-29 03:00 +02:00", "03-30 02:30 +02:00"]);
        assert_eq!(ticks("0 3 * * *"), ["03-29 03:00 +02:00", "03-30 03:00 +02:00"]);
        assert_eq!(ticks("0 2,3 * * *"), ["03-29 03:00 +02:00", "03-30 02:00 +02:00", "03-30 03:00 +02:00"]);
        assert_eq!(ticks("*/30 2 * * *"), ["03-29 03:00 +02:00", "03-30 02:00 +02:00", "03-30 02:30 +02:00"]);
        assert_eq!(ticks("59 59 1 * * *"), ["03-29 01:59 +01:00", "03-30 01:59 +02:00"]);
    }

    #[test]
    fn berlin_back_fixed_hours_tick_at_the_first_of_two() {
        let window = ("2026-10-24T12:00:00Z", "2026-10-26T03:00:00Z");
        let ticks = |expression| local(&cron(expression, "Europe/Berlin"), window.0, window.1);
        assert_eq!(ticks("30 2 * * *"), ["10-25 02:30 +02:00", "10-26 02:30 +01:00"]);
        assert_eq!(ticks("0 3 * * *"), ["10-25 03:00 +01:00", "10-26 03:00 +01:00"]);
        assert_eq!(
            ticks("*/30 2 * * *"),
            ["10-25 02:00 +02:00", "10-25 02:30 +02:00", "10-26 02:00 +01:00", "10-26 02:30 +01:00"]
        );
    }

    #[test]
    fn berlin_every_hour_goes_by_elapsed_time_in_both() {
        let spec = cron("*/30 * * * *", "Europe/Berlin");
        let forward = local(&spec, "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z");
        assert_eq!(
            forward,
            ["03-29 01:30 +01:00", "03-29 03:00 +02:00", "03-29 03:30 +02:00", "03-29 04:00 +02:00"]
        );
        let back = local(&cron("0 * * * *", "Europe/Berlin"), "2026-10-24T23:30:00Z", "2026-10-25T02:00:00Z");
        assert_eq!(back, ["10-25 02:00 +02:00", "10-25 02:00 +01:00", "10-25 03:00 +01:00"]);
    }

    #[test]
    fn steps_of_hours_go_by_what_the_clock_shows() {
        let spec = cron("0 */2 * * *", "Europe/Berlin");
        let forward = local(&spec, "2026-03-28T22:00:00Z", "2026-03-29T03:00:00Z");
        assert_eq!(forward, ["03-29 00:00 +01:00", "03-29 04:00 +02:00"], "2:00 was not shown");
        let back = local(&spec, "2026-10-24T22:30:00Z", "2026-10-25T04:00:00Z");
        assert_eq!(back, ["10-25 02:00 +02:00", "10-25 02:00 +01:00", "10-25 04:00 +01:00"], "shown twice");
    }

    #[test]
    fn new_york_in_both_directions() {
        let fixed = cron("30 2 * * *", "America/New_York");
        let forward = local(&fixed, "2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z");
        assert_eq!(forward, ["03-08 03:00 -04:00", "03-09 02:30 -04:00"]);
        let fixed = cron("30 1 * * *", "America/New_York");
        let back = local(&fixed, "2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z");
        assert_eq!(back, ["11-01 01:30 -04:00", "11-02 01:30 -05:00"]);
        let hourly =
            local(&cron("30 * * * *", "America/New_York"), "2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z");
        assert_eq!(hourly, ["11-01 01:30 -04:00", "11-01 01:30 -05:00"]);
    }

    #[test]
    fn lord_howe_changes_by_half_an_hour() {
        let quarter = cron("15 2 * * *", "Australia/Lord_Howe");
        let forward = local(&quarter, "2026-10-02T18:00:00Z", "2026-10-04T18:00:00Z");
        assert_eq!(forward, ["10-04 02:30 +11:00", "10-05 02:15 +11:00"]);
        let back =
            local(&cron("45 1 * * *", "Australia/Lord_Howe"), "2026-04-04T00:00:00Z", "2026-04-06T00:00:00Z");
        assert_eq!(back, ["04-05 01:45 +11:00", "04-06 01:45 +10:30"]);
        let quarters = local(
            &cron("*/15 * * * *", "Australia/Lord_Howe"),
            "2026-04-04T14:30:00Z",
            "2026-04-04T15:45:00Z",
        );
        assert_eq!(
            quarters,
            [
                "04-05 01:45 +11:00",
                "04-05 01:30 +10:30",
                "04-05 01:45 +10:30",
                "04-05 02:00 +10:30",
                "04-05 02:15 +10:30"
            ]
        );
    }

    #[test]
    fn apia_left_out_a_whole_day() {
        let window = ("2011-12-29T00:00:00Z", "2011-12-31T20:00:00Z");
        let ticks = |expression| local(&cron(expression, "Pacific/Apia"), window.0, window.1);
        assert_eq!(
            ticks("0 9 * * *"),
            ["12-29 09:00 -10:00", "12-31 00:00 +14:00", "12-31 09:00 +14:00", "01-01 09:00 +14:00"]
        );
        assert_eq!(ticks("0 9 30 12 *"), ["12-31 00:00 +14:00"], "the job of the day that was not");
        assert_eq!(ticks("0 */12 * * *").len(), 5);
    }

    #[test]
    fn sao_paulo_began_a_day_at_one() {
        let ticks =
            local(&cron("0 0 * * *", "America/Sao_Paulo"), "2018-11-03T00:00:00Z", "2018-11-05T12:00:00Z");
        assert_eq!(ticks, ["11-03 00:00 -03:00", "11-04 01:00 -02:00", "11-05 00:00 -02:00"]);
        let twice =
            local(&cron("30 23 * * *", "America/Sao_Paulo"), "2018-02-17T12:00:00Z", "2018-02-19T12:00:00Z");
        assert_eq!(twice, ["02-17 23:30 -02:00", "02-18 23:30 -03:00"]);
    }
}

/// Expressions with what they match, said once more in Rust.
type Matches = fn(DateTime) -> bool;
const EXPRESSIONS: &[(&str, Matches)] = &[
    ("*/15 * * * *", |wall| wall.minute() % 15 == 0),
    ("0 * * * *", |wall| wall.minute() == 0),
    ("5 */3 * * *", |wall| wall.minute() == 5 && wall.hour() % 3 == 0),
    ("30 2 * * *", |wall| wall.minute() == 30 && wall.hour() == 2),
    ("0 0 * * *", |wall| wall.minute() == 0 && wall.hour() == 0),
    ("*/10 1-3 * * *", |wall| wall.minute() % 10 == 0 && (1..=3).contains(&wall.hour())),
    ("0 0,1,2,3 * * SUN", |wall| {
        wall.minute() == 0 && wall.hour() <= 3 && wall.weekday() == jiff::civil::Weekday::Sunday
    }),
];
const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "America/St_Johns",
];

/// Every tick of a window, found by looking at each minute.
fn by_each_minute(
    fixed: bool,
    matches: Matches,
    zone: &TimeZone,
    from: Timestamp,
    to: Timestamp,
) -> Vec<Timestamp> {
    let minute = SignedDuration::from_mins(1);
    let mut found = Vec::new();
    if fixed {
        // Each minute that the clock could show, from a day before to a day after.
        let (mut wall, end) = (zone.to_datetime(from - minute * 2880), zone.to_datetime(to + minute * 2880));
        wall = wall.with().second(0).subsec_nanosecond(0).build().unwrap();
        while wall <= end {
            if matches(wall) {
                found.push(instant(zone, wall));
            }
            wall += minute;
        }
        found.retain(|tick| *tick > from && *tick <= to);
        found.dedup();
    } else {
        let mut tick = Timestamp::from_second(from.as_second() / 60 * 60).unwrap();
        while tick <= to {
            let wall = zone.to_datetime(tick);
            if tick > from && wall.second() == 0 && matches(wall) {
                found.push(tick);
            }
            tick += minute;
        }
    }
    found
}

/// The first instant at which the clock shows this time or, for the first time, a later one.
fn instant(zone: &TimeZone, wall: DateTime) -> Timestamp {
    let guess = wall.to_zoned(TimeZone::UTC).unwrap().timestamp();
    let minute = SignedDuration::from_mins(1);
    let mut low = guess - minute * (27 * 60);
    let mut tick = low;
    // Walls are not sorted around a fold: go forward by minutes from long before.
    while zone.to_datetime(tick) < wall {
        low = tick;
        tick += minute;
    }
    assert!(low <= tick);
    tick
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ticks_are_those_found_by_looking_at_each_minute(
        expression in 0..EXPRESSIONS.len(),
        zone in 0..ZONES.len(),
        year in 2008_i16..2030,
        nth_change in 0_usize..2,
        hours_before in 1_i64..40,
    ) {
        let (text, matches) = EXPRESSIONS[expression];
        let spec = cron(text, ZONES[zone]);
        let zone = spec.zone();
        let new_year = jiff::civil::date(year, 1, 1).to_zoned(TimeZone::UTC).unwrap().timestamp();
        let change = zone.following(new_year).nth(nth_change).map_or(new_year, |change| change.timestamp());
        let from = change - SignedDuration::from_hours(hours_before);
        let to = change + SignedDuration::from_hours(30);
        let fixed = !text.split(' ').nth(1).unwrap().starts_with('*');
        let expected = by_each_minute(fixed, matches, &zone, from, to);
        prop_assert_eq!(ticks(&spec, from, to), expected, "{} {:?} from {}", text, zone, from);
    }

    #[test]
    fn ticks_rise_strictly_wherever_one_starts(
        expression in 0..EXPRESSIONS.len(),
        zone in 0..ZONES.len(),
        start_s in 946_684_800_i64..2_000_000_000,
        nanosecond in 0..1_000_000_000,
    ) {
        let spec = cron(EXPRESSIONS[expression].0, ZONES[zone]);
        let start = Timestamp::new(start_s, nanosecond).unwrap();
        let mut last = start;
        for _ in 0..20 {
            let next = spec.next_after(last).unwrap();
            prop_assert!(next > last);
            // A look from anywhere in between finds the same tick.
            let between = last + (next - last).total(jiff::Unit::Second).map(|s| SignedDuration::from_secs_f64(s / 2.0)).unwrap();
            prop_assert_eq!(spec.next_after(between), Some(next));
            last = next;
        }
    }
}

mod missed {
    use super::*;

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
            assert_eq!(
                caught_up,
                CatchUp { fire: vec![on_time(12)], dropped: 0, next_at: Some(on_time(13)) }
            );
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
        assert_eq!(caught_up.fire.len(), 62, "the last missed, and one a second of the grace");
        assert_eq!(caught_up.fire[0], at("2026-05-06T11:59:29Z"));
        assert_eq!(caught_up.dropped, 10_000, "counted no further");
    }

    #[test]
    fn a_missed_tick_that_the_spec_no_longer_has_still_counts() {
        // The rules of its zone were changed after it was stored.
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
            prop_assert!(fired.len() <= max as usize + 6, "the youngest, and those of the last minute");
            prop_assert_eq!(spec.next_after(now), Some(next_at));
        }
    }
}

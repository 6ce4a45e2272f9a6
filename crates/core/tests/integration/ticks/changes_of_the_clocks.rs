//! Ticks around clock changes. Each case has a time zone, an expression, a range, and the expected ticks in wall-clock time.

use crate::ticks::*;

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
    assert_eq!(forward, ["03-29 00:00 +01:00", "03-29 04:00 +02:00"], "2:00 does not exist that day");
    let back = local(&spec, "2026-10-24T22:30:00Z", "2026-10-25T04:00:00Z");
    assert_eq!(back, ["10-25 02:00 +02:00", "10-25 02:00 +01:00", "10-25 04:00 +01:00"], "2:00 occurs twice");
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
    let quarters =
        local(&cron("*/15 * * * *", "Australia/Lord_Howe"), "2026-04-04T14:30:00Z", "2026-04-04T15:45:00Z");
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
    assert_eq!(ticks("0 9 30 12 *"), ["12-31 00:00 +14:00"], "the tick of the skipped day");
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

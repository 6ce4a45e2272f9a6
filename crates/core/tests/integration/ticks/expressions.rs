//! Parsing of cron expressions.

use crate::ticks::*;

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
    let long = format!("{} * * * *", vec!["1"; 300].join(","));
    assert!(matches!(Spec::cron(&long, "UTC"), Err(InvalidSchedule::TooLong { bytes: 607, .. })));
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

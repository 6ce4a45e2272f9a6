//! Ticks compared with a search of every minute, in any time zone and year.

use crate::ticks::*;

/// Expressions, each with an equivalent predicate in Rust.
pub(crate) type Matches = fn(DateTime) -> bool;
pub(crate) const EXPRESSIONS: &[(&str, Matches)] = &[
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
pub(crate) const ZONES: &[&str] = &[
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

/// Returns every tick in a range, by checking each minute.
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
        // Every minute that the clock could show, from two days before to two days after.
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

/// Returns the first instant at which the clock shows this time or a later one.
fn instant(zone: &TimeZone, wall: DateTime) -> Timestamp {
    let guess = wall.to_zoned(TimeZone::UTC).unwrap().timestamp();
    let minute = SignedDuration::from_mins(1);
    let mut low = guess - minute * (27 * 60);
    let mut tick = low;
    // Wall-clock times are not ascending around a repeated hour: step forward by minutes from long before.
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
            // A search from any instant in between finds the same tick.
            let between = last + (next - last).total(jiff::Unit::Second).map(|s| SignedDuration::from_secs_f64(s / 2.0)).unwrap();
            prop_assert_eq!(spec.next_after(between), Some(next));
            last = next;
        }
    }
}

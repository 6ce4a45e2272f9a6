//! Short texts of options, settings and headers: durations, times, rates, priorities, ids, names, addresses.

use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::time::Duration;

use milepost_cli_support::parsers;
use milepost_cli_support::store::StoreAddress;
use milepost_core::dag::rule::Outcome;
use milepost_core::dag::version::Version;
use milepost_core::duration::{WAIT_MAX, whole_ms};
use milepost_core::ident::{BatchId, EventId, JobId, WorkerId};
use milepost_core::job::StartAt;
use milepost_core::limit::Rate;
use milepost_core::retention::Keep;
use milepost_core::search::PayloadMatch;
use milepost_core::state::JobState;
use milepost_core::token::Role;
use milepost_core::transition::Verb;
use reqwest::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};

use crate::check;

/// Parses a duration, a retention period, a start time and a rate. Each keeps its limits and can be printed and parsed again.
///
/// # Panics
/// A property does not hold.
pub fn durations(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match parsers::duration(text) {
        Ok(duration) => {
            assert!(
                duration <= WAIT_MAX && u128::from(whole_ms(duration).unsigned_abs()) >= duration.as_millis()
            );
            let printed = humantime::format_duration(duration).to_string();
            check::round_trip(&duration, &printed, parsers::duration);
            let is_positive = parsers::positive_duration(text).is_ok();
            assert_eq!(is_positive, duration > Duration::ZERO);
        }
        Err(why) => check::message(&why),
    }
    match parsers::keep(text) {
        Ok(Keep::For(period)) => assert_eq!(parsers::duration(text), Ok(period)),
        Ok(Keep::Forever) => assert_eq!(text, "forever"),
        Err(why) => check::message(&why),
    }
    match parsers::start_at(text) {
        Ok(StartAt::At(at)) => check::round_trip(&at, &at.to_string(), parsers::point_in_time),
        Ok(_) => assert!(text.starts_with("in ")),
        Err(why) => check::message(&why),
    }
    match Rate::parse_per_second(text) {
        Ok(per_second) => {
            let rate = Rate::new(per_second, 1);
            let again = Rate::parse_per_second(&rate.to_string());
            let is_near = again.as_ref().is_ok_and(|again| (again / per_second - 1.0).abs() < 2e-3);
            assert!(is_near, "{text:?} is {per_second} per second, printed as {rate}: {again:?}");
        }
        Err(invalid) => check::message(&invalid.to_string()),
    }
}

/// Parses ids, names and conditions on payloads. Each is printed as it was, or in its standard form.
///
/// # Panics
/// A property does not hold.
pub fn names(input: &[u8]) {
    fn both<T: FromStr<Err: Display + Debug> + Display + Debug + PartialEq>(text: &str) {
        match text.parse::<T>() {
            Ok(value) => check::round_trip(&value, &value.to_string(), str::parse::<T>),
            // The library of ids repeats one character unchanged.
            Err(invalid) => check::message(&invalid.to_string().replace(char::is_whitespace, " ")),
        }
    }

    let Ok(text) = std::str::from_utf8(input) else { return };
    both::<JobId>(text);
    both::<BatchId>(text);
    both::<EventId>(text);
    both::<WorkerId>(text);
    both::<Version>(text);
    both::<JobState>(text);
    both::<Verb>(text);
    both::<Role>(text);
    both::<Outcome>(text);
    if let Err(why) = parsers::priority(text) {
        check::message(&why);
    }
    match PayloadMatch::parse(text) {
        Ok(found) => {
            let printed = format!("{}={}", found.path.join("."), found.value);
            check::round_trip(&found, &printed, PayloadMatch::parse);
        }
        Err(why) => check::message(&why),
    }
}

/// Parses the address of a store. No text that is shown contains its password.
///
/// # Panics
/// A property does not hold.
pub fn store_address(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match text.parse::<StoreAddress>() {
        Ok(address) => {
            let shown = address.to_string();
            for password in address.passwords() {
                // A shorter password can be a part of another word.
                let others = text.replacen(&password, "", 1);
                let is_secret = password.len() >= 4 && !others.contains(&password) && password != "***";
                assert!(!is_secret || !shown.contains(&password), "{text:?} is shown as {shown:?}");
            }
            if let StoreAddress::Sqlite(_) = address {
                check::round_trip(&address, &shown, str::parse);
            }
        }
        Err(why) => check::message(&why),
    }
}

/// Reads the headers `Retry-After` and `Date`, one on a line. A wait is at most a day.
///
/// # Panics
/// A property does not hold.
pub fn retry_after(input: &[u8]) {
    let Some([wait, date]) = check::lines::<2>(input) else { return };
    let mut headers = HeaderMap::new();
    let (Ok(wait), Ok(date)) = (HeaderValue::from_str(wait), HeaderValue::from_str(date)) else { return };
    headers.insert(RETRY_AFTER, wait);
    headers.insert(DATE, date);
    let wait = milepost_http::retry_after(&headers);
    assert!(wait.is_none_or(|wait| wait <= Duration::from_secs(24 * 60 * 60)), "{wait:?}");
}

/// Parses a template of subjects and routing keys. A template without fields is its own text.
///
/// # Panics
/// A property does not hold.
pub fn subject(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match milepost_relay::fuzzing::filled(text, "x") {
        Ok(filled) => {
            assert!(!filled.is_empty() && !filled.contains(['{', '}']), "{text:?} is filled as {filled:?}");
            assert!(text.contains('{') || filled == text);
        }
        Err(why) => check::message(&why),
    }
}

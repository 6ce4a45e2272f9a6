//! `Retry-After`: the wait that a server asks for.

use std::time::{Duration, SystemTime};

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// The longest wait that a server can ask for.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the wait in `Retry-After`, which is a number of seconds or a date. A date is compared with the server's `Date` header if there
/// is one, so that clock differences have no effect.
#[must_use]
pub fn wait(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is too large for the type is a long wait.
        text.parse().map_or(WAIT_MAX, Duration::from_secs)
    } else {
        let now = date(headers, DATE).unwrap_or_else(SystemTime::now);
        date(headers, RETRY_AFTER)?.duration_since(now).unwrap_or_default()
    };
    Some(wait.min(WAIT_MAX))
}

/// Reads a date in one of the three forms that HTTP has had (RFC 9110, section 5.6.7), also with a wrong day of the week.
fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    let relaxed =
        || DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok().map(SystemTime::from);
    httpdate::parse_http_date(text).ok().or_else(relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(retry_after: &'static str, date: Option<&'static str>) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry_after.parse().unwrap());
        date.map(|date| headers.insert(DATE, date.parse().unwrap()));
        wait(&headers)
    }

    #[test]
    fn it_is_given_in_seconds_or_as_a_date() {
        assert_eq!(asked("120", None), Some(Duration::from_secs(120)));
        let (at, now) = ("Fri, 21 Nov 2025 10:00:30 GMT", "Fri, 21 Nov 2025 10:00:00 GMT");
        assert_eq!(asked(at, Some(now)), Some(Duration::from_secs(30)));
        for old in ["Friday, 21-Nov-25 10:00:30 GMT", "Fri Nov 21 10:00:30 2025"] {
            assert_eq!(asked(old, Some(now)), Some(Duration::from_secs(30)), "{old}");
        }
        assert_eq!(asked(now, Some(at)), Some(Duration::ZERO), "a date that has passed");
        assert_eq!(asked(at, None), Some(Duration::ZERO), "without the server's clock, ours");
    }

    #[test]
    fn what_is_neither_is_not_heeded_and_a_wait_is_bounded() {
        for other in ["", "soon", "-5", "1.5"] {
            assert_eq!(asked(other, None), None, "{other}");
        }
        assert_eq!(asked("99999999999999999999999", None), Some(WAIT_MAX));
        assert_eq!(asked("Wed, 21 Nov 9025 10:00:30 GMT", None), Some(WAIT_MAX));
        assert_eq!(asked("Fri, 31 Dec 9999 23:59:59 GMT", None), Some(WAIT_MAX));
    }
}

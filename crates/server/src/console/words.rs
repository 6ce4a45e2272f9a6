//! Facts in words and marks: times, lengths, numbers, states. What is made here is HTML of known characters alone.

use std::fmt;
use std::time::Duration;

use askama::filters::HtmlSafe;
use jiff::Timestamp;
use milepost_core::listing::Waiting;

pub(crate) use crate::words::{count, length, per_second, pretty, relative};

/// A time, relative and exact; the style sheet shows one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct When {
    pub(crate) at: Timestamp,
    pub(crate) now: Timestamp,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, now } = *self;
        write!(
            f,
            "<time datetime=\"{at:.3}\" title=\"{at:.3}\"><span class=\"rel\">{}</span>\
             <span class=\"abs\">{at:.3}</span></time>",
            relative(at, now)
        )
    }
}

impl HtmlSafe for When {}

/// A state with its mark; the style sheet gives each a shape beside its colour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Badge(pub(crate) &'static str);

impl fmt::Display for Badge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<span class=\"state is-{0}\">{0}</span>", self.0)
    }
}

impl HtmlSafe for Badge {}

/// From one time to another, which is not earlier.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> Duration {
    to.duration_since(from).try_into().unwrap_or_default()
}

/// `1 job`, `12 jobs`.
pub(crate) fn several(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {many}", count(number)) }
}

/// The first characters of what may be long.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Why a job that is to run does not run, in words.
pub(crate) fn why(waiting: &Waiting, now: Timestamp) -> String {
    match waiting {
        Waiting::Time { until } => format!("its time comes {}", relative(*until, now)),
        Waiting::Group { group, taken: 0..=1, .. } => format!("group {group} is taken by another job"),
        Waiting::Group { group, taken, .. } => format!("all {taken} slots of group {group} are taken"),
        Waiting::Rate { target, until } => {
            format!("for the rate limit of {target}: more may start {}", relative(*until, now))
        }
        Waiting::PausedQueue { queue } => format!("queue {queue} is paused"),
        Waiting::NoWorker { kind, queue } => format!("no living worker serves kind {kind} in queue {queue}"),
        Waiting::Turn => "workers serve it and are busy with other jobs".to_owned(),
    }
}

/// A part of a URL: of its path or its query.
pub(crate) fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The pairs that say something, as a query.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let some = pairs.iter().filter(|(_, value)| !value.is_empty());
    form_urlencoded::Serializer::new(String::new()).extend_pairs(some).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_between_characters() {
        assert_eq!((cut("äöü", 2), cut("äöü", 3)), ("äö…".to_owned(), "äöü".to_owned()));
    }
}

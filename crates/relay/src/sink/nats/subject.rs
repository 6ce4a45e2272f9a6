//! Subjects of events.

use milepost_core::event::Event;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::sink::setting::InvalidSink;
use crate::template::{Field, Template};

/// Characters that are not allowed in a subject or have a special meaning: blanks, wildcards, and the escape character.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'*').add(b'>').add(b'%');
/// Characters escaped in values that must be a single token: ids, and types whose dots would produce empty tokens.
const ESCAPED_IN_TOKENS: &AsciiSet = &ESCAPED.add(b'.');
/// Limit for subjects. The server closes connections with control lines longer than 4096 bytes, and these contain more than the subject.
const SUBJECT_BYTES_MAX: usize = 3_000;

/// Builds subjects from a template.
#[derive(Debug)]
pub(super) struct Subjects(Template);

impl Subjects {
    pub(super) fn new(template: Template) -> Result<Self, InvalidSink> {
        let refused = |why: &str| Err(InvalidSink::new("subject", why));
        let sample = template.filled("x");
        if sample.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '*' | '>')) {
            return refused("it must not contain spaces, control characters or the wildcards * and >");
        }
        if sample.starts_with(['$', '_']) {
            return refused("subjects that begin with $ or _ are reserved for the server");
        }
        if has_empty_token(&sample) {
            return refused("it has an empty token: a dot at its beginning or end, or two in a row");
        }
        Ok(Self(template))
    }

    /// Returns the subject of an event, or why the event has no valid subject.
    pub(super) fn of(&self, event: &Event) -> Result<String, String> {
        let subject = self.0.of(event, |field, value, subject| {
            // Dots in types separate tokens.
            let one_token = field == Field::AggregateId || has_empty_token(value);
            let escaped = if one_token { ESCAPED_IN_TOKENS } else { ESCAPED };
            subject.extend(utf8_percent_encode(value, escaped));
        });
        if subject.len() > SUBJECT_BYTES_MAX {
            let bytes = subject.len();
            return Err(format!("its subject has {bytes} bytes; the limit is {SUBJECT_BYTES_MAX}"));
        }
        Ok(subject)
    }

    /// Returns a pattern for all possible subjects, as used by streams and subscribers.
    pub(super) fn all(&self) -> String {
        if self.0.is_literal() {
            return self.0.prefix().to_owned();
        }
        match self.0.prefix().rsplit_once('.') {
            Some((tokens, _)) => format!("{tokens}.>"),
            None => ">".to_owned(),
        }
    }

    /// Checks the name of a stream for all these subjects.
    pub(super) fn check_stream(&self, stream: &str) -> Result<(), InvalidSink> {
        let is_bad = |c: char| c.is_whitespace() || c.is_control() || ".*>/\\".contains(c);
        if stream.is_empty() || stream.len() > 200 || stream.chars().any(is_bad) {
            return Err(InvalidSink::new(
                "create_stream",
                "it must be a name without spaces and without any of . * > / \\",
            ));
        }
        if self.all() == ">" {
            let why = "it would cover all subjects of the server; begin `subject` with a word and a dot";
            return Err(InvalidSink::new("create_stream", why));
        }
        Ok(())
    }
}

/// Returns whether the text has an empty token, which subjects must not have.
fn has_empty_token(text: &str) -> bool {
    text.split('.').any(str::is_empty)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use milepost_core::event::Aggregate;
    use milepost_core::ident::EventId;
    use serde_json::value::RawValue;

    use super::*;

    fn subjects(template: &str) -> Result<Subjects, InvalidSink> {
        Subjects::new(Template::parse(template).unwrap())
    }

    fn subject(template: &str, kind: &str, id: &str, event_type: &str) -> Result<String, String> {
        let event = Event {
            id: EventId::new(),
            aggregate: Aggregate::new(kind, id),
            sequence: 1,
            event_type: event_type.to_owned(),
            payload: RawValue::from_string("1".to_owned()).unwrap(),
            headers: Default::default(),
            emitted_at: "2026-03-01T12:00:00Z".parse().unwrap(),
        };
        subjects(template).unwrap().of(&event)
    }

    #[test]
    fn types_are_tokens_and_an_id_is_one_token_whatever_it_is() {
        let of = |kind, id, event_type| {
            subject("shop.{aggregate_type}.{aggregate_id}.{event_type}", kind, id, event_type)
        };
        assert_eq!(of("order", "17", "order.paid"), Ok("shop.order.17.order.paid".to_owned()));
        assert_eq!(of("order", "a.b *>%", "paid"), Ok("shop.order.a%2Eb%20%2A%3E%25.paid".to_owned()));
        assert!(of("order", &"x".repeat(3_000), "paid").unwrap_err().contains("3016 bytes"));
    }

    #[test]
    fn no_token_is_empty_and_none_is_another_ones_subject() {
        let of = |event_type| subject("shop.{event_type}", "order", "1", event_type).unwrap();
        let all = ["a.b", "a..b", ".a", "a.", ".", "..", "a...b", "%2E", "a%2Eb"].map(of);
        for subject in &all {
            assert!(subject.starts_with("shop") && !subject.split('.').any(str::is_empty), "{subject}");
        }
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
    }

    #[test]
    fn all_subjects_are_named_by_what_stands_before_the_first_place() {
        let all = |template| subjects(template).unwrap().all();
        assert_eq!(all("shop.events.{event_type}"), "shop.events.>");
        assert_eq!(all("shop.v{event_type}"), "shop.>");
        assert_eq!(all("shop"), "shop");
        assert_eq!(all("{event_type}"), ">");
        let why = subjects("{event_type}").unwrap().check_stream("EVENTS").unwrap_err().to_string();
        assert!(why.contains("all subjects of the server"), "{why}");
        assert!(subjects("shop.{event_type}").unwrap().check_stream("a b").is_err());
        for bad in [
            "$JS.{event_type}",
            "a b.{event_type}",
            "shop.>.{event_type}",
            "a..{event_type}",
            ".{event_type}",
            "a.{event_type}.",
        ] {
            assert_eq!(subjects(bad).unwrap_err().setting, "subject", "{bad}");
        }
    }
}

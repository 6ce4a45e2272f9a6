//! Templates for names that depend on the event: subjects, streams and routing keys.

use milepost_core::event::Event;

/// A text with placeholders for values of the event: `{aggregate_type}`, `{aggregate_id}` and `{event_type}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field),
}

/// The value that replaces a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// The type of the aggregate.
    AggregateType,
    /// The id of the aggregate.
    AggregateId,
    /// The type of the event.
    EventType,
}

impl Template {
    /// Parses a template. On failure, returns the reason.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, place)) = rest.split_once('{') {
            let Some((name, after)) = place.split_once('}') else {
                return Err(format!("the brace before {place:?} is not closed"));
            };
            if before.contains('}') {
                break;
            }
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Field(Field::parse(name)?));
            rest = after;
        }
        if rest.contains('}') {
            return Err(format!("a brace in {rest:?} was not opened"));
        }
        parts.push(Part::Text(rest.to_owned()));
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        if parts.is_empty() {
            return Err("it is empty".to_owned());
        }
        Ok(Self(parts))
    }

    /// Returns the text for an event. `written` formats the values.
    pub(crate) fn of(&self, event: &Event, written: impl Fn(Field, &str, &mut String)) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Field(field) => written(*field, field.of(event), &mut text),
            }
        }
        text
    }

    /// Returns the text for an event, with unescaped values.
    pub(crate) fn plain(&self, event: &Event) -> String {
        self.of(event, |_, value, text| text.push_str(value))
    }

    /// Returns the common prefix of all texts.
    pub(crate) fn prefix(&self) -> &str {
        match self.0.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }

    /// Returns the text with this value in all placeholders, to check the parts that are the same for all events.
    pub(crate) fn filled(&self, value: &str) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => text,
            Part::Field(_) => value,
        });
        parts.collect()
    }

    /// Returns whether all events have the same text.
    pub(crate) fn is_literal(&self) -> bool {
        !self.0.iter().any(|part| matches!(part, Part::Field(_)))
    }
}

impl Field {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "aggregate_type" => Ok(Self::AggregateType),
            "aggregate_id" => Ok(Self::AggregateId),
            "event_type" => Ok(Self::EventType),
            _ => Err(format!(
                "unknown field {{{}}}; the fields are {{aggregate_type}}, {{aggregate_id}} and {{event_type}}",
                name.escape_debug()
            )),
        }
    }

    fn of(self, event: &Event) -> &str {
        match self {
            Self::AggregateType => &event.aggregate.kind,
            Self::AggregateId => &event.aggregate.id,
            Self::EventType => &event.event_type,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_what_is_wrong_is_told() {
        let template = Template::parse("shop.{aggregate_type}.{event_type}").unwrap();
        assert_eq!(template.prefix(), "shop.");
        assert_eq!(template.filled("x"), "shop.x.x");
        assert!(!template.is_literal() && Template::parse("shop").unwrap().is_literal());
        let refused = |text| Template::parse(text).unwrap_err();
        assert!(
            refused("{aggregate}").contains("unknown field {aggregate}; the fields are {aggregate_type}")
        );
        assert!(refused("{a\nb}").contains("unknown field {a\\nb}"), "it is one line");
        assert!(refused("a.{event_type").contains("not closed"));
        assert!(refused("a}.{event_type}").contains("not opened"));
        assert!(refused("").contains("empty"));
    }
}

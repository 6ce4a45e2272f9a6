//! Trace context of work: propagated from the code that enqueues a job to its attempts, and to the events and jobs they
//! create, in the format of [W3C Trace Context](https://www.w3.org/TR/trace-context/).

use std::fmt;
use std::str::FromStr;

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of the header in requests and events, and of the field elsewhere.
pub const TRACEPARENT: &str = "traceparent";

/// Bytes of a `traceparent` of version 00: `00-{trace: 32}-{span: 16}-{flags: 2}`.
const LEN: usize = 55;

/// A span of a trace, used as the parent of subsequent work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traceparent {
    trace: TraceId,
    span: SpanId,
    flags: TraceFlags,
}

/// A text that is not a valid `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not a traceparent of W3C Trace Context, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)]
pub struct InvalidTraceparent;

impl Traceparent {
    /// Returns the active span of the [current context](Context::current) of OpenTelemetry, if there is one. Workers
    /// set that context for their handlers, applications for their requests.
    #[must_use]
    pub fn current() -> Option<Self> {
        Context::map_current(|context| {
            context.has_active_span().then(|| Self::of(context.span().span_context())).flatten()
        })
    }

    /// Converts a span context; `None` when it is not valid.
    #[must_use]
    pub fn of(span: &SpanContext) -> Option<Self> {
        let flags = span.trace_flags() & TraceFlags::SAMPLED;
        span.is_valid().then(|| Self { trace: span.trace_id(), span: span.span_id(), flags })
    }

    /// Returns the trace id.
    #[must_use]
    pub const fn trace(&self) -> TraceId {
        self.trace
    }

    /// Returns a context in which this span, of another process, is active.
    #[must_use]
    pub fn context(self) -> Context {
        let span = SpanContext::new(self.trace, self.span, self.flags, true, TraceState::NONE);
        Context::new().with_remote_span_context(span)
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, self.flags)
    }
}

impl FromStr for Traceparent {
    type Err = InvalidTraceparent;

    /// Parses version 00, and from later versions the part they share with it.
    fn from_str(text: &str) -> Result<Self, InvalidTraceparent> {
        let (head, tail) = text.split_at_checked(LEN).ok_or(InvalidTraceparent)?;
        let lower_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let mut parts = head.split('-');
        let mut part = |len: usize| {
            parts.next().filter(|part| part.len() == len && lower_hex(part)).ok_or(InvalidTraceparent)
        };
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let is_known_end = tail.is_empty() || (version != "00" && tail.starts_with('-'));
        if version == "ff" || !is_known_end {
            return Err(InvalidTraceparent);
        }
        let trace = TraceId::from_hex(trace).map_err(|_| InvalidTraceparent)?;
        let span = SpanId::from_hex(span).map_err(|_| InvalidTraceparent)?;
        let flags = u8::from_str_radix(flags, 16).map_err(|_| InvalidTraceparent)?;
        let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
        if trace == TraceId::INVALID || span == SpanId::INVALID {
            return Err(InvalidTraceparent);
        }
        Ok(Self { trace, span, flags })
    }
}

impl Serialize for Traceparent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Traceparent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Aggregate, NewEvent};
    use crate::job::NewJob;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_written_as_it_was_read() {
        let unsampled = EXAMPLE.replace("-01", "-00");
        for text in [EXAMPLE, unsampled.as_str()] {
            assert_eq!(text.parse::<Traceparent>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn of_a_later_version_what_is_known_is_read() {
        let later = EXAMPLE.replace("00-4b", "cc-4b");
        for text in [later.clone(), format!("{later}-what-the-future-holds")] {
            assert_eq!(text.parse::<Traceparent>().unwrap().to_string(), EXAMPLE);
        }
    }

    #[test]
    fn what_is_no_traceparent_is_refused() {
        let wrong = [
            String::new(),
            "00".into(),
            EXAMPLE.to_uppercase(),
            EXAMPLE.replace("00-4b", "ff-4b"),
            EXAMPLE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            EXAMPLE.replace("00f067aa0ba902b7", &"0".repeat(16)),
            EXAMPLE.replace("-01", "-0g"),
            EXAMPLE.replace('-', "_"),
            format!("{EXAMPLE}-more"),
            format!("{EXAMPLE}x"),
            format!("{}ü", &EXAMPLE[..54]),
        ];
        for text in wrong {
            assert_eq!(text.parse::<Traceparent>(), Err(InvalidTraceparent), "{text}");
        }
    }

    #[test]
    fn what_is_made_in_a_trace_belongs_to_it() {
        let make = || {
            let event = NewEvent::new(Aggregate::new("order", "1"), "paid", &()).unwrap();
            let job = NewJob::new("mail", &()).unwrap();
            (job.traceparent.map(|it| it.to_string()), event.headers.get(TRACEPARENT).cloned())
        };
        assert_eq!(make(), (None, None));
        let within = EXAMPLE.parse::<Traceparent>().unwrap().context().attach();
        assert_eq!(make(), (Some(EXAMPLE.to_owned()), Some(EXAMPLE.to_owned())));
        drop(within);
        assert_eq!(make(), (None, None));
    }
}

//! Detection of subscriptions that match no event of the log, for example because a type name is misspelled.

use milepost_core::event::{LeftOut, Page};

/// The events that a publisher has skipped, until it finds the first one that its subscription selects.
#[derive(Debug)]
pub(super) struct Unwanted(Option<LeftOut>);

impl Unwanted {
    pub(super) fn new() -> Self {
        Self(Some(LeftOut::default()))
    }

    /// Examines the next page. At the end of the log, if there were events and the subscription selected none of them, returns the skipped events.
    /// Returns them only once, so that they are reported once.
    pub(super) fn look(&mut self, page: &mut Page) -> Option<LeftOut> {
        let passed = self.0.as_mut()?;
        if !page.events.is_empty() {
            self.0 = None;
            return None;
        }
        passed.join(std::mem::take(&mut page.left_out));
        if page.more || passed.events == 0 { None } else { self.0.take() }
    }
}

#[cfg(test)]
mod tests {
    use milepost_core::event::{Aggregate, Event};
    use milepost_core::ident::EventId;
    use serde_json::value::RawValue;

    use super::*;

    fn page(wanted: usize, left_out: usize, more: bool) -> Page {
        let event = |n| Event {
            id: EventId::new(),
            aggregate: Aggregate::new("order", "1"),
            sequence: n as i64 + 1,
            event_type: "order.paid".to_owned(),
            payload: RawValue::NULL.to_owned(),
            headers: Default::default(),
            emitted_at: Default::default(),
        };
        let mut page = Page { events: (0..wanted).map(event).collect(), more, ..Page::default() };
        (0..left_out).for_each(|n| page.left_out.add("account", &format!("account.{}", n % 20)));
        page
    }

    #[test]
    fn it_is_told_once_at_the_end_of_the_log_with_some_of_the_types() {
        let mut unwanted = Unwanted::new();
        assert_eq!(unwanted.look(&mut page(0, 0, false)), None, "an empty log");
        assert_eq!(unwanted.look(&mut page(0, 25, true)), None, "not the end of the log");
        let told = unwanted.look(&mut page(0, 3, false)).unwrap();
        assert_eq!((told.events, told.types.len()), (28, LeftOut::TYPES_MAX));
        assert_eq!(unwanted.look(&mut page(0, 3, false)), None, "once");
    }

    #[test]
    fn nothing_is_told_when_anything_was_wanted() {
        let mut unwanted = Unwanted::new();
        for mut page in [page(0, 25, true), page(1, 25, true), page(0, 25, false)] {
            assert_eq!(unwanted.look(&mut page), None);
        }
    }
}

//! Division of a page into waves: an event is sent only after the result of the previous event of its aggregate is known.

use std::collections::{HashMap, HashSet, VecDeque};

use milepost_core::event::{Aggregate, Event};

/// The events of a page, by aggregate and in order.
#[derive(Debug)]
pub struct Waves {
    /// The remaining events of each aggregate. Aggregates that were not in the last wave come first.
    lines: VecDeque<VecDeque<Event>>,
    /// Aggregates of which no more events are sent.
    held: HashSet<Aggregate>,
    /// The remaining events of held aggregates.
    rest: Vec<Event>,
}

impl Waves {
    /// Creates the waves of events that are in the order of the log.
    pub fn of(events: impl IntoIterator<Item = Event>) -> Self {
        let mut lines: VecDeque<VecDeque<Event>> = VecDeque::new();
        let mut places: HashMap<Aggregate, usize> = HashMap::new();
        for event in events {
            let place = *places.entry(event.aggregate.clone()).or_insert_with(|| {
                lines.push_back(VecDeque::new());
                lines.len() - 1
            });
            lines[place].push_back(event);
        }
        Self { lines, held: HashSet::new(), rest: Vec::new() }
    }

    /// Returns the next events, at most `most`, each of a different aggregate; empty if only events of held aggregates are left. The results of all of
    /// them must be known before the next call.
    pub fn next(&mut self, most: usize) -> Vec<Event> {
        let (mut wave, mut later) = (Vec::new(), Vec::new());
        while wave.len() < most
            && let Some(mut line) = self.lines.pop_front()
        {
            let Some(event) = line.pop_front() else { continue };
            if self.held.contains(&event.aggregate) {
                self.rest.push(event);
                self.rest.extend(line);
                continue;
            }
            wave.push(event);
            if !line.is_empty() {
                later.push(line);
            }
        }
        self.lines.extend(later);
        wave
    }

    /// Holds an aggregate: no more of its events are sent, because one of them was not delivered.
    pub fn hold(&mut self, aggregate: Aggregate) {
        self.held.insert(aggregate);
    }

    /// Returns the events that were not sent, in the order of each aggregate: those of held aggregates, and those of other aggregates.
    pub fn into_rest(self) -> (Vec<Event>, Vec<Event>) {
        let left = self.rest.into_iter().chain(self.lines.into_iter().flatten());
        left.partition(|event| self.held.contains(&event.aggregate))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use milepost_core::ident::EventId;
    use serde_json::value::RawValue;

    use super::*;

    fn event(aggregate: &str, sequence: i64) -> Event {
        Event {
            id: EventId::new(),
            aggregate: Aggregate::new("order", aggregate),
            sequence,
            event_type: "t".to_owned(),
            payload: RawValue::from_string("1".to_owned()).unwrap(),
            headers: BTreeMap::new(),
            emitted_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        }
    }

    fn page(events: &[(&str, i64)]) -> Waves {
        Waves::of(events.iter().map(|&(aggregate, sequence)| event(aggregate, sequence)))
    }

    fn told(events: &[Event]) -> String {
        let told: Vec<_> = events.iter().map(|e| format!("{}{}", e.aggregate.id, e.sequence)).collect();
        told.join(" ")
    }

    #[test]
    fn a_wave_has_each_aggregate_once_and_the_next_wave_what_follows() {
        let mut waves = page(&[("a", 1), ("a", 2), ("b", 7), ("a", 3), ("c", 1), ("b", 8)]);
        assert_eq!(told(&waves.next(10)), "a1 b7 c1");
        assert_eq!(told(&waves.next(10)), "a2 b8");
        assert_eq!(told(&waves.next(10)), "a3");
        assert_eq!(told(&waves.next(10)), "");
        assert_eq!(waves.into_rest().0.len(), 0);
    }

    #[test]
    fn what_follows_an_event_that_was_not_delivered_stays_in_order() {
        let mut waves = page(&[("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3)]);
        assert_eq!(told(&waves.next(10)), "a1 b1");
        waves.hold(Aggregate::new("order", "a"));
        assert_eq!(told(&waves.next(10)), "b2");
        assert_eq!(told(&waves.next(10)), "");
        assert_eq!(told(&waves.into_rest().0), "a2 a3");
    }

    #[test]
    fn an_aggregate_with_many_events_does_not_hold_up_others_of_a_small_wave() {
        let mut waves = page(&[("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1)]);
        assert_eq!(told(&waves.next(2)), "a1 b1");
        assert_eq!(told(&waves.next(2)), "c1 a2");
        assert_eq!(told(&waves.next(2)), "a3");
    }
}

//! Scripted sink: answers as a test specifies and records the events that it received.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use milepost_core::event::Event;
use milepost_relay::sink::{Delivery, Sink, SinkDown};

/// The answer for an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Take,
    Refuse,
    /// The sink accepts the event, but the result is unknown to the caller.
    TakeUnseen,
    Unacceptable,
    /// The sink accepts this event if it is the first of the call; otherwise it ends the call before this event.
    Enough,
    Down,
    Gone,
}

type Rule = Box<dyn Fn(&Event) -> Answer + Send>;

/// A sink that answers according to a rule. Clones share their state.
#[derive(Clone)]
pub(crate) struct Script(Arc<Mutex<State>>);

struct State {
    rule: Rule,
    taken: Vec<Event>,
    asked: usize,
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Script")
    }
}

impl Script {
    /// Creates a sink that accepts everything.
    pub(crate) fn new() -> Self {
        let rule: Rule = Box::new(|_| Answer::Take);
        Self(Arc::new(Mutex::new(State { rule, taken: Vec::new(), asked: 0 })))
    }

    /// Replaces the rule.
    pub(crate) fn answer(&self, rule: impl Fn(&Event) -> Answer + Send + 'static) {
        self.0.lock().unwrap().rule = Box::new(rule);
    }

    /// Returns the accepted events in the order of arrival.
    pub(crate) fn taken(&self) -> Vec<Event> {
        self.0.lock().unwrap().taken.clone()
    }

    /// Returns how many events were sent to the sink.
    pub(crate) fn asked(&self) -> usize {
        self.0.lock().unwrap().asked
    }

    /// Returns how many different events were accepted.
    pub(crate) fn distinct(&self) -> usize {
        self.taken().iter().map(|event| event.id).collect::<BTreeSet<_>>().len()
    }

    /// Returns the sequences of an aggregate in the order of their first arrival.
    pub(crate) fn firsts(&self, aggregate: &str) -> Vec<i64> {
        self.firsts_of_all().remove(aggregate).unwrap_or_default()
    }

    /// Returns the same for all aggregates.
    pub(crate) fn firsts_of_all(&self) -> BTreeMap<String, Vec<i64>> {
        let mut seen = BTreeSet::new();
        let mut firsts: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for event in self.taken() {
            if seen.insert(event.id) {
                firsts.entry(event.aggregate.id).or_default().push(event.sequence);
            }
        }
        firsts
    }
}

#[async_trait]
impl Sink for Script {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        let mut state = self.0.lock().unwrap();
        let mut deliveries = Vec::new();
        for event in events {
            state.asked += 1;
            let answer = (state.rule)(event);
            if answer == Answer::Enough && !deliveries.is_empty() {
                break;
            }
            if matches!(answer, Answer::Take | Answer::TakeUnseen | Answer::Enough) {
                state.taken.push(event.clone());
            }
            let why = "refused by the script".to_owned();
            deliveries.push(match answer {
                Answer::Take | Answer::Enough => Delivery::Acknowledged,
                Answer::TakeUnseen => Delivery::Unknown { why },
                Answer::Refuse => Delivery::Refused { why },
                Answer::Unacceptable => Delivery::Unacceptable { why },
                Answer::Down | Answer::Gone => {
                    let for_good = answer == Answer::Gone;
                    return Err(SinkDown {
                        place: "the script".to_owned(),
                        why,
                        retry_after: None,
                        for_good,
                    });
                }
            });
        }
        Ok(deliveries)
    }
}

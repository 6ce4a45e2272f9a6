//! A sink that does what a test says, and remembers what it was sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use milepost_core::event::Event;
use milepost_relay::sink::{Delivery, Sink, SinkDown};

/// What becomes of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Take,
    Refuse,
    /// The sink has it, and nobody knows.
    TakeUnseen,
    Unacceptable,
    /// The sink sends no more of the call, unless it is the first.
    Enough,
    Down,
    Gone,
}

type Rule = Box<dyn Fn(&Event) -> Answer + Send>;

/// Takes events as its rule says. Clones are the same sink.
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
    /// Takes everything.
    pub(crate) fn new() -> Self {
        let rule: Rule = Box::new(|_| Answer::Take);
        Self(Arc::new(Mutex::new(State { rule, taken: Vec::new(), asked: 0 })))
    }

    /// Does this from now on.
    pub(crate) fn answer(&self, rule: impl Fn(&Event) -> Answer + Send + 'static) {
        self.0.lock().unwrap().rule = Box::new(rule);
    }

    /// What it has, in the order in which it came.
    pub(crate) fn taken(&self) -> Vec<Event> {
        self.0.lock().unwrap().taken.clone()
    }

    /// How many events it was sent.
    pub(crate) fn asked(&self) -> usize {
        self.0.lock().unwrap().asked
    }

    /// How many different events it has.
    pub(crate) fn distinct(&self) -> usize {
        self.taken().iter().map(|event| event.id).collect::<BTreeSet<_>>().len()
    }

    /// The sequences of an aggregate, each where it came first.
    pub(crate) fn firsts(&self, aggregate: &str) -> Vec<i64> {
        self.firsts_of_all().remove(aggregate).unwrap_or_default()
    }

    /// The same of every aggregate.
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
            let why = "the script says so".to_owned();
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

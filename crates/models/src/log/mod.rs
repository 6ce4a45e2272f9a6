//! The position of a reader in the log of events on PostgreSQL, with writers that commit out of order, and servers that lose commits.
//!
//! After a crash, a failover or a restore, the server has the contents of an earlier moment and assigns the later transaction ids and positions
//! again, to other transactions. A reader that was frozen meanwhile still has the position from before.

mod reader;
mod rules;
mod server;

use std::collections::BTreeSet;

use stateright::{Model, Property};

use reader::Reader;
pub use rules::{Defect, Rule};
pub use server::Loss;
use server::{Contents, EventId, Server};

/// The kind of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A relay, which stores its position in the database and delivers pages to a sink.
    Relay,
    /// A client of the stream, which keeps its position itself and receives windows.
    Stream,
}

/// The model. The numbers bound the states.
#[derive(Clone, Debug)]
pub struct LogPosition {
    /// The defect, if one is put back.
    pub defect: Option<Defect>,
    /// The kind of the reader.
    pub kind: Kind,
    /// The number of transactions that write an event.
    pub events: u8,
    /// The number of crashes, failovers and restores.
    pub losses: u8,
    /// The highest transaction id, which also bounds the number of transactions of the reader.
    pub xid_max: u8,
}

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    server: Server,
    /// The contents of the disk, of a standby or of a backup, which can be older.
    saved: Contents,
    reader: Option<Reader>,
    /// The events that the sink has acknowledged, or that the client has received.
    acknowledged: BTreeSet<EventId>,
    begun: EventId,
    broken: Option<Rule>,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A transaction begins.
    Begin,
    /// The transaction with this index draws a position.
    Draw(usize),
    /// The transaction with this index ends; with `true` it commits.
    End(usize, bool),
    /// The disk, the standby or the backup reaches the state of the server.
    Save,
    /// The server loses all commits that were not saved.
    Lose(Loss),
    /// The reader begins: a relay at the stored position, a client of the stream at the end.
    Start,
    /// The reader crashes.
    Stop,
    /// The reader reads a page; a client of the stream receives a window.
    Read,
    /// The sink acknowledges the next event of the page.
    Acknowledge,
    /// The relay moves its position in memory behind the page.
    Pass,
    /// The relay stores its position, and reads a floor for its next windows.
    Store,
}

impl LogPosition {
    /// Returns the model that the tests check.
    #[must_use]
    pub const fn new(kind: Kind, defect: Option<Defect>) -> Self {
        match kind {
            Kind::Relay => Self { defect, kind, events: 2, losses: 1, xid_max: 5 },
            // A client of the stream needs no transactions, so the number of transaction ids is no limit.
            Kind::Stream => Self { defect, kind, events: 3, losses: 2, xid_max: 9 },
        }
    }

    fn actions_of_reader(&self, state: &State, actions: &mut Vec<Action>) {
        let Some(reader) = &state.reader else { return actions.push(Action::Start) };
        if self.kind == Kind::Stream {
            return actions.push(Action::Read);
        }
        actions.push(Action::Stop);
        if reader.next().is_some() {
            actions.push(Action::Acknowledge);
        }
        let is_early = self.defect == Some(Defect::PositionBeforeAcknowledge);
        match reader.has_page() {
            false => actions.extend([Action::Read, Action::Store]),
            true if is_early || reader.next().is_none() => actions.push(Action::Pass),
            true => {}
        }
    }

    /// Applies a step for which the server must accept the reader's position. Otherwise the reader begins again.
    fn step_at_position(&self, state: &mut State, action: Action) -> Option<()> {
        let reader = state.reader.as_mut()?;
        if !reader.is_accepted(&state.server, self.defect) {
            state.reader = None;
            return Some(());
        }
        if reader.is_outdated(&state.server) {
            state.broken = Some(Rule::NoOldPositionIsUsed);
        }
        match (action, self.kind) {
            (Action::Store, _) => {
                state.server.contents.stored = reader.position.clone();
                reader.draw(&mut state.server, self.defect);
            }
            (_, Kind::Relay) => reader.read_page(&state.server, self.defect),
            (_, Kind::Stream) => {
                for event in reader.read_window(&state.server, self.defect) {
                    if !state.acknowledged.insert(event.id) {
                        state.broken = Some(Rule::NoChangeIsSentTwice);
                    }
                }
            }
        }
        Some(())
    }

    fn start(&self, state: &mut State) {
        state.reader = Some(match self.kind {
            Kind::Relay => Reader::of_relay(&mut state.server, self.defect),
            Kind::Stream => {
                // The client reads the current state.
                let log = state.server.contents.log.iter();
                state.acknowledged.extend(log.map(|event| event.id));
                Reader::of_stream(&state.server)
            }
        });
    }

    /// Returns whether all events that the positions have passed were acknowledged.
    fn passes_only_acknowledged(&self, state: &State) -> bool {
        let in_memory = state.reader.as_ref().filter(|reader| !reader.is_outdated(&state.server));
        let stored = (self.kind == Kind::Relay).then_some(&state.server.contents.stored);
        let positions = stored.into_iter().chain(in_memory.map(|reader| &reader.position));
        positions.into_iter().all(|position| {
            let log = state.server.contents.log.iter();
            let mut passed = log.filter(|event| position.has_passed(**event, self.defect));
            passed.all(|event| state.acknowledged.contains(&event.id))
        })
    }

    fn skips_nothing(&self, state: &State) -> bool {
        state.broken.is_some()
            || self.kind == Kind::Stream
            || reader::delivers_all(&state.server, &state.acknowledged, self.defect)
    }
}

impl Model for LogPosition {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let server = Server::new();
        let saved = server.contents.clone();
        let (reader, acknowledged) = (None, BTreeSet::new());
        vec![State { server, saved, reader, acknowledged, begun: 0, broken: None }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        if state.begun < self.events {
            actions.push(Action::Begin);
        }
        for (index, writer) in state.server.writers.iter().enumerate() {
            match writer.pos {
                None => actions.push(Action::Draw(index)),
                Some(_) => actions.extend([Action::End(index, true), Action::End(index, false)]),
            }
        }
        if state.server.losses < self.losses {
            if state.saved != state.server.contents {
                actions.push(Action::Save);
            }
            actions.extend([Action::Lose(Loss::Crash), Action::Lose(Loss::Failover)]);
        }
        self.actions_of_reader(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Begin => {
                state.begun += 1;
                state.server.begin(state.begun);
            }
            Action::Draw(index) => state.server.draw(index),
            Action::End(index, commits) => state.server.end(index, commits),
            Action::Save => state.saved = state.server.contents.clone(),
            Action::Lose(loss) => state.server.lose(&last.saved, loss, self.defect),
            Action::Start => self.start(&mut state),
            Action::Stop => state.reader = None,
            Action::Acknowledge => {
                let reader = state.reader.as_mut()?;
                state.acknowledged.insert(reader.next()?);
                reader.acknowledged();
            }
            Action::Pass => state.reader.as_mut()?.pass(self.defect),
            Action::Read | Action::Store => self.step_at_position(&mut state, action)?,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(Rule::NoEventIsSkipped.name(), |model: &Self, state: &State| {
                model.skips_nothing(state)
            }),
            Property::always(Rule::NoEventIsPassed.name(), |model: &Self, state: &State| {
                model.passes_only_acknowledged(state)
            }),
            Property::always(Rule::NoOldPositionIsUsed.name(), |_: &Self, state: &State| {
                state.broken != Some(Rule::NoOldPositionIsUsed)
            }),
            Property::always(Rule::NoChangeIsSentTwice.name(), |_: &Self, state: &State| {
                state.broken != Some(Rule::NoChangeIsSentTwice)
            }),
        ]
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.server.contents.next_xid <= self.xid_max
    }
}

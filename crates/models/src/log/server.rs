//! A PostgreSQL server with a log of events: transactions, snapshots, and the loss of the last commits.

use std::collections::BTreeSet;

use super::rules::Defect;

/// A transaction id, from 1.
pub(super) type Xid = u8;
/// A position that was drawn from the log's sequence, from 1.
pub(super) type Pos = u8;
/// The identity of an event. Unlike ids and positions, it is never used again.
pub(super) type EventId = u8;

/// A snapshot (`pg_snapshot`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Snapshot {
    /// The last transaction id that had ended, plus one. Running transactions can have this id or a higher one.
    xmax: Xid,
    /// The running transactions below `xmax`.
    pub(super) in_flight: BTreeSet<Xid>,
}

impl Snapshot {
    /// Returns the snapshot that sees nothing.
    pub(super) const fn empty() -> Self {
        Self { xmax: 1, in_flight: BTreeSet::new() }
    }

    pub(super) fn sees(&self, xid: Xid) -> bool {
        xid < self.xmax && !self.in_flight.contains(&xid)
    }
}

/// A committed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Event {
    pub(super) id: EventId,
    pub(super) xid: Xid,
    pub(super) pos: Pos,
}

/// A transaction that writes one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Writer {
    event: EventId,
    xid: Xid,
    /// Drawn later than the id: the head of the aggregate is written between the two.
    pub(super) pos: Option<Pos>,
}

/// The position of a reader in the log; see `crates/postgres/src/relay/slot.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Position {
    pub(super) seen: Snapshot,
    pub(super) floor: Pos,
    /// The end of the window that is being read, and the floor of the next one.
    pub(super) window: Option<(Snapshot, Pos)>,
    pub(super) pos: Pos,
}

impl Position {
    pub(super) const fn beginning() -> Self {
        Self { seen: Snapshot::empty(), floor: 0, window: None, pos: 0 }
    }

    /// Closes the window after all of its events.
    pub(super) fn close(&mut self) {
        if let Some((upto, floor)) = self.window.take() {
            *self = Self { seen: upto, floor, window: None, pos: 0 };
        }
    }

    /// Returns whether a reader that continues from here does not read the event any more.
    pub(super) fn has_passed(&self, event: Event, defect: Option<Defect>) -> bool {
        if defect == Some(Defect::SequenceCursor) {
            return event.pos <= self.pos;
        }
        let is_beyond =
            |snapshot: &Snapshot, floor| event.pos > floor || snapshot.in_flight.contains(&event.xid);
        if self.seen.sees(event.xid) || !is_beyond(&self.seen, self.floor) {
            return true;
        }
        match &self.window {
            Some((upto, _)) if upto.sees(event.xid) => event.pos <= self.pos,
            Some((upto, floor)) => !is_beyond(upto, *floor),
            None => false,
        }
    }
}

/// The contents that are written to the write-ahead log, and so to disk, to standbys and to backups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Contents {
    pub(super) log: Vec<Event>,
    /// The next transaction id.
    pub(super) next_xid: Xid,
    /// The last transaction id that has ended, plus one.
    xmax: Xid,
    /// The last position that was drawn.
    pub(super) drawn: Pos,
    /// The position of the relay.
    pub(super) stored: Position,
}

/// The event that loses the last commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The server crashes. Commits without a synchronous write are lost.
    Crash,
    /// A standby that lacks the last commits is promoted, or a backup is restored.
    Failover,
}

/// The server that clients reach at the moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) contents: Contents,
    pub(super) writers: Vec<Writer>,
    pub(super) epoch: u8,
    /// The number of losses. No client can read it.
    pub(super) losses: u8,
}

impl Server {
    pub(super) const fn new() -> Self {
        let stored = Position::beginning();
        let contents = Contents { log: Vec::new(), next_xid: 1, xmax: 1, drawn: 0, stored };
        Self { contents, writers: Vec::new(), epoch: 0, losses: 0 }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let xmax = self.contents.xmax;
        let running = self.writers.iter().map(|writer| writer.xid);
        Snapshot { xmax, in_flight: running.filter(|xid| *xid < xmax).collect() }
    }

    /// Begins a transaction, which has an id before it draws a position.
    pub(super) fn begin(&mut self, event: EventId) {
        let xid = self.assign();
        self.writers.push(Writer { event, xid, pos: None });
    }

    pub(super) fn draw(&mut self, index: usize) {
        self.contents.drawn += 1;
        self.writers[index].pos = Some(self.contents.drawn);
    }

    /// Ends a transaction. Without a position, it has written nothing.
    pub(super) fn end(&mut self, index: usize, commits: bool) {
        let Writer { event: id, xid, pos } = self.writers.remove(index);
        self.contents.xmax = self.contents.xmax.max(xid + 1);
        if let (Some(pos), true) = (pos, commits) {
            self.contents.log.push(Event { id, xid, pos });
        }
    }

    /// Begins and ends a transaction of the reader.
    pub(super) fn own_transaction(&mut self) {
        let xid = self.assign();
        self.contents.xmax = self.contents.xmax.max(xid + 1);
    }

    /// Returns to earlier contents. Ids and positions that are not in them are assigned again.
    pub(super) fn lose(&mut self, saved: &Contents, loss: Loss, defect: Option<Defect>) {
        self.contents = saved.clone();
        self.contents.next_xid = saved.xmax;
        self.writers.clear();
        self.losses += 1;
        if loss == Loss::Failover || defect != Some(Defect::IdsGivenOutAgain) {
            self.epoch += 1;
        }
    }

    fn assign(&mut self) -> Xid {
        self.contents.next_xid += 1;
        self.contents.next_xid - 1
    }
}

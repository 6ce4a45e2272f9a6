//! A reader of the log: pages between two snapshots, deliveries, and the position after them.

use std::collections::BTreeSet;

use super::rules::Defect;
use super::server::{Event, EventId, Pos, Position, Server};

/// The number of events that a page of the relay can have.
const PAGE_MAX: usize = 2;

/// A page whose events are being delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Page {
    /// The events without an acknowledgement.
    open: Vec<Event>,
    last: Pos,
    /// Whether it contains the end of the window.
    closes: bool,
}

/// What a reader has in memory. It is frozen, cut off or slow for as long as it takes no step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reader {
    epoch: u8,
    /// The number of losses of the server when the position was read. Only the rules read it.
    losses: u8,
    pub(super) position: Position,
    /// The floor for windows that are opened next.
    drawn: Pos,
    page: Option<Page>,
}

impl Reader {
    /// Reads the stored position of the relay, and a floor, in a transaction that ends before the first page is read.
    pub(super) fn of_relay(server: &mut Server, defect: Option<Defect>) -> Self {
        let mut reader = Self::at(server, server.contents.stored.clone());
        reader.draw(server, defect);
        reader
    }

    /// Begins a client of the stream at a position, which only the client keeps.
    pub(super) fn of_stream(server: &Server) -> Self {
        Self::at(server, Position { seen: server.snapshot(), ..Position::beginning() })
    }

    const fn at(server: &Server, position: Position) -> Self {
        Self { epoch: server.epoch, losses: server.losses, position, drawn: 0, page: None }
    }

    /// Reads the floor for the next windows.
    pub(super) fn draw(&mut self, server: &mut Server, defect: Option<Defect>) {
        self.drawn = server.contents.drawn;
        if defect != Some(Defect::FloorWithoutOwnTransaction) {
            server.own_transaction();
        }
    }

    /// Returns whether the server accepts the position: it is of the current epoch.
    pub(super) fn is_accepted(&self, server: &Server, defect: Option<Defect>) -> bool {
        self.epoch == server.epoch || defect == Some(Defect::PositionKeptAcrossFailover)
    }

    /// Returns whether the server has lost commits since the position was read.
    pub(super) const fn is_outdated(&self, server: &Server) -> bool {
        self.losses != server.losses
    }

    pub(super) const fn has_page(&self) -> bool {
        self.page.is_some()
    }

    /// Returns the first event of the page that was not acknowledged.
    pub(super) fn next(&self) -> Option<EventId> {
        self.page.as_ref()?.open.first().map(|event| event.id)
    }

    /// Records the acknowledgement of the first event.
    pub(super) fn acknowledged(&mut self) {
        if let Some(page) = &mut self.page {
            page.open.remove(0);
        }
    }

    /// Reads the next page of the relay (`queries/relay/page.sql`). A window without further events is closed.
    pub(super) fn read_page(&mut self, server: &Server, defect: Option<Defect>) {
        let mut events = self.window(server, defect);
        let closes = events.len() < PAGE_MAX;
        events.truncate(PAGE_MAX);
        match events.last() {
            Some(last) => self.page = Some(Page { last: last.pos, open: events, closes }),
            None => self.position.close(),
        }
    }

    /// Reads all events of the next window, for the stream (`queries/feed/jobs.sql`).
    pub(super) fn read_window(&mut self, server: &Server, defect: Option<Defect>) -> Vec<Event> {
        let events = self.window(server, defect);
        match (defect, events.last()) {
            (Some(Defect::SequenceCursor), Some(last)) => self.position.pos = last.pos,
            _ => self.position.close(),
        }
        events
    }

    /// Moves the position in memory behind the page.
    pub(super) fn pass(&mut self, defect: Option<Defect>) {
        let Some(page) = self.page.take() else { return };
        self.position.pos = page.last;
        if page.closes && defect != Some(Defect::SequenceCursor) {
            self.position.close();
        }
    }

    /// Opens a window unless one is open, and returns its events behind the position.
    fn window(&mut self, server: &Server, defect: Option<Defect>) -> Vec<Event> {
        let Position { seen, floor, window, pos } = &mut self.position;
        let log = server.contents.log.iter().copied();
        let mut events: Vec<Event> = if defect == Some(Defect::SequenceCursor) {
            log.filter(|event| event.pos > *pos).collect()
        } else {
            let (upto, _) = window.get_or_insert_with(|| (server.snapshot(), self.drawn.max(*floor)));
            let is_late = |event: &Event| event.pos <= *floor && seen.in_flight.contains(&event.xid);
            let is_new = |event: &Event| event.pos > *floor && !seen.sees(event.xid);
            let is_in =
                |event: &Event| event.pos > *pos && upto.sees(event.xid) && (is_late(event) || is_new(event));
            log.filter(is_in).collect()
        };
        events.sort_by_key(|event| event.pos);
        events
    }
}

/// Returns whether a relay that begins now, without further faults, delivers every event of the log.
pub(super) fn delivers_all(
    server: &Server,
    acknowledged: &BTreeSet<EventId>,
    defect: Option<Defect>,
) -> bool {
    let (mut server, mut acknowledged) = (server.clone(), acknowledged.clone());
    while !server.writers.is_empty() {
        server.end(0, true);
    }
    let mut reader = Reader::of_relay(&mut server, defect);
    // Each round reads a page or closes a window; the first window can be an old one.
    for _ in 0..server.contents.log.len() + 3 {
        reader.read_page(&server, defect);
        while let Some(event) = reader.next() {
            acknowledged.insert(event);
            reader.acknowledged();
        }
        reader.pass(defect);
    }
    server.contents.log.iter().all(|event| acknowledged.contains(&event.id))
}

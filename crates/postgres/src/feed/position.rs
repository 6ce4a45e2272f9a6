//! Positions in the feed, as text and parsed.

use milepost_core::feed::{FeedPosition, InvalidFeed};

/// A position in the feed. `EPOCH/SEEN`: after everything that a snapshot sees. `EPOCH/SEEN/UPTO/j4711`: in the window between two snapshots, after
/// position 4711 of the job history (`j`), or after all of the job history and a position of the batch history (`b`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The epoch of the database, in which transaction ids are unique: see `migrations/0001/epoch.sql`.
    pub(crate) epoch: String,
    /// The snapshot whose changes have all been reported.
    pub(crate) seen: Snapshot,
    /// The position in the window that follows, if it has been entered.
    pub(super) within: Option<Within>,
}

/// A position in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Within {
    /// The snapshot at which the window ends.
    pub(super) upto: Snapshot,
    /// The history that is being read.
    pub(super) part: HistoryKind,
    /// The last position that was read there.
    pub(super) pos: i64,
}

/// The two histories, in the order in which a window is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HistoryKind {
    Jobs,
    Batches,
}

impl Position {
    pub(crate) fn parse(position: &FeedPosition) -> Result<Self, InvalidFeed> {
        let parts: Vec<&str> = position.as_str().split('/').collect();
        let (epoch, seen, within) = match parts[..] {
            [epoch, seen] => (epoch, seen, None),
            [epoch, seen, upto, place] => (epoch, seen, Some(Within::parse(upto, place)?)),
            _ => return Err(InvalidFeed::NotAPosition),
        };
        let is_epoch = !epoch.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_hexdigit());
        match Snapshot::parse(seen).filter(|_| is_epoch) {
            Some(seen) => Ok(Self { epoch: epoch.to_owned(), seen, within }),
            None => Err(InvalidFeed::NotAPosition),
        }
    }

    /// Returns whether `upto` can end the next window: it must see every change that has been reported.
    pub(super) fn is_behind(&self, upto: &Snapshot) -> bool {
        upto.covers(self.within.as_ref().map_or(&self.seen, |within| &within.upto))
    }

    /// Returns the position after everything that a snapshot of the same epoch sees.
    pub(crate) fn behind(&self, seen: &str) -> FeedPosition {
        FeedPosition::new(format!("{}/{seen}", self.epoch))
    }

    /// Returns a position in the window that follows this one.
    pub(super) fn inside(&self, upto: &str, part: HistoryKind, pos: i64) -> FeedPosition {
        let part = match part {
            HistoryKind::Jobs => 'j',
            HistoryKind::Batches => 'b',
        };
        FeedPosition::new(format!("{}/{}/{upto}/{part}{pos}", self.epoch, self.seen.text))
    }
}

impl Within {
    fn parse(upto: &str, place: &str) -> Result<Self, InvalidFeed> {
        let part = match place.as_bytes().first() {
            Some(b'j') => HistoryKind::Jobs,
            Some(b'b') => HistoryKind::Batches,
            _ => return Err(InvalidFeed::NotAPosition),
        };
        match (place[1..].parse(), Snapshot::parse(upto)) {
            (Ok(pos), Some(upto)) if pos >= 0 => Ok(Self { upto, part, pos }),
            _ => Err(InvalidFeed::NotAPosition),
        }
    }
}

/// A snapshot: the transactions that had ended at a point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// PostgreSQL's text form: `xmin:xmax:` and the transactions in flight between them.
    pub(crate) text: String,
    xmax: u64,
    flying: Vec<u64>,
}

impl Snapshot {
    /// Parses the text form; `None` if PostgreSQL would refuse it.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (xmin, xmax, flying) = (xid(parts.next()?)?, xid(parts.next()?)?, parts.next()?);
        let flying =
            flying.split(',').filter(|_| !flying.is_empty()).map(xid).collect::<Option<Vec<u64>>>()?;
        let is_one = xmin > 0
            && xmin <= xmax
            && flying.iter().all(|xid| (xmin..xmax).contains(xid))
            && flying.is_sorted()
            && parts.next().is_none();
        is_one.then(|| Self { text: text.to_owned(), xmax, flying })
    }

    /// Returns whether it sees everything that the other one sees.
    fn covers(&self, other: &Self) -> bool {
        let sees = |xid: &u64| *xid < other.xmax && !other.flying.contains(xid);
        self.xmax >= other.xmax && !self.flying.iter().any(sees)
    }
}

fn xid(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&xid: &u64| digits && xid < 1 << 62)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Position, InvalidFeed> {
        Position::parse(&text.parse()?)
    }

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let behind = read("7fa3/10:20:10,14").unwrap();
        assert_eq!((behind.seen.text.as_str(), behind.within.as_ref()), ("10:20:10,14", None));
        assert_eq!(behind.behind("15:30:").as_str(), "7fa3/15:30:");
        let inside = behind.inside("15:30:", HistoryKind::Batches, 4711);
        assert_eq!(inside.as_str(), "7fa3/10:20:10,14/15:30:/b4711");
        let within =
            Within { upto: Snapshot::parse("15:30:").unwrap(), part: HistoryKind::Batches, pos: 4711 };
        assert_eq!(Position::parse(&inside).unwrap().within, Some(within));
    }

    #[test]
    fn a_later_snapshot_covers_an_earlier_one() {
        let covers = |later: &str, earlier: &str| {
            Snapshot::parse(later).unwrap().covers(&Snapshot::parse(earlier).unwrap())
        };
        assert!(covers("10:20:10,14", "10:20:10,14"));
        assert!(covers("14:20:14", "10:20:10,14"), "one transaction has ended");
        assert!(!covers("10:20:10,14", "14:20:14"));
        assert!(covers("10:25:10,14,22", "10:20:10,14"));
        assert!(!covers("10:20:10,14", "10:25:10,14,22"));
        assert!(!covers("12:25:12", "10:20:10"), "transaction 12 was visible");
    }

    #[test]
    fn what_the_database_could_not_read_is_refused() {
        let texts = [
            "",
            "/",
            "7fa3",
            "7fa3/",
            "7fa3/10:20",
            "7fa3/20:10:",
            "7fa3/10:20:30",
            "7fa3/10:20:14,12",
            "7fa3/0:0:",
            "7fa3/10:20:a",
            "x/10:20:",
            "7fa3/10:20:/10:30:",
            "7fa3/10:20:/10:30:/k1",
            "7fa3/10:20:/10:30:/j",
            "7fa3/10:20:/10:30:/j-1",
            "s1.2",
            "7fa3/10:20:/10:30:/é",
            "7fa3/10:99999999999999999999:",
            "7fa3/10:20:/1:2:/j1/2",
        ];
        for text in texts {
            assert_eq!(read(text).unwrap_err(), InvalidFeed::NotAPosition, "{text}");
        }
    }
}

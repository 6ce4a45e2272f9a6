//! What a position in the feed says.

use milepost_core::feed::{FeedPosition, InvalidFeed};

/// A place in the feed: `SERVER/SEEN` behind all that a snapshot sees, or `SERVER/SEEN/UPTO/j4711` within what a later snapshot sees and it
/// does not, behind place 4711 of the histories of jobs (`j`), or all of those and a place of the histories of batches (`b`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The end of the server's identifier, and the beginning of its epoch's: see `migrations/0016_epoch.sql`.
    pub(super) server: String,
    /// The snapshot.
    pub(super) seen: Snapshot,
    /// How far within the window that follows.
    pub(super) within: Option<Within>,
}

/// A place in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Within {
    /// The snapshot at which the window ends.
    pub(super) upto: Snapshot,
    /// In which histories.
    pub(super) part: Part,
    /// Behind which place of those.
    pub(super) pos: i64,
}

/// Which histories. A window has first those of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Jobs,
    Batches,
}

/// Where the epoch begins in what names the server.
const EPOCH_FROM: usize = 8;

impl Position {
    pub(super) fn parse(position: &FeedPosition) -> Result<Self, InvalidFeed> {
        let parts: Vec<&str> = position.as_str().split('/').collect();
        let (server, seen, within) = match parts[..] {
            [server, seen] => (server, seen, None),
            [server, seen, upto, place] => (server, seen, Some(Within::parse(upto, place)?)),
            _ => return Err(InvalidFeed::NotAPosition),
        };
        let is_server = !server.is_empty() && server.bytes().all(|byte| byte.is_ascii_hexdigit());
        match Snapshot::parse(seen).filter(|_| is_server) {
            Some(seen) => Ok(Self { server: server.to_owned(), seen, within }),
            None => Err(InvalidFeed::NotAPosition),
        }
    }

    /// How the identifier of its epoch begins.
    pub(super) fn epoch(&self) -> String {
        self.server.chars().skip(EPOCH_FROM).collect()
    }

    /// Whether a window that ends at `upto` can be read on to from here: it sees all that was told already.
    pub(super) fn is_behind(&self, upto: &Snapshot) -> bool {
        upto.covers(self.within.as_ref().map_or(&self.seen, |within| &within.upto))
    }

    /// Behind all that a snapshot of the same server sees.
    pub(super) fn behind(&self, seen: &str) -> FeedPosition {
        FeedPosition::new(format!("{}/{seen}", self.server))
    }

    /// Within a window that follows this one.
    pub(super) fn inside(&self, upto: &str, part: Part, pos: i64) -> FeedPosition {
        let part = match part {
            Part::Jobs => 'j',
            Part::Batches => 'b',
        };
        FeedPosition::new(format!("{}/{}/{upto}/{part}{pos}", self.server, self.seen.text))
    }
}

impl Within {
    fn parse(upto: &str, place: &str) -> Result<Self, InvalidFeed> {
        let part = match place.as_bytes().first() {
            Some(b'j') => Part::Jobs,
            Some(b'b') => Part::Batches,
            _ => return Err(InvalidFeed::NotAPosition),
        };
        match (place[1..].parse(), Snapshot::parse(upto)) {
            (Ok(pos), Some(upto)) if pos >= 0 => Ok(Self { upto, part, pos }),
            _ => Err(InvalidFeed::NotAPosition),
        }
    }
}

/// Which transactions had ended at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// As PostgreSQL writes it: `xmin:xmax:` and what was in flight between.
    pub(super) text: String,
    xmax: u64,
    flying: Vec<u64>,
}

impl Snapshot {
    /// `None`: PostgreSQL could not read it either.
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

    /// Whether it sees all that the other sees.
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
        let inside = behind.inside("15:30:", Part::Batches, 4711);
        assert_eq!(inside.as_str(), "7fa3/10:20:10,14/15:30:/b4711");
        let within = Within { upto: Snapshot::parse("15:30:").unwrap(), part: Part::Batches, pos: 4711 };
        assert_eq!(Position::parse(&inside).unwrap().within, Some(within));
    }

    #[test]
    fn a_later_snapshot_covers_an_earlier_one() {
        let covers = |later: &str, earlier: &str| {
            Snapshot::parse(later).unwrap().covers(&Snapshot::parse(earlier).unwrap())
        };
        assert!(covers("10:20:10,14", "10:20:10,14"));
        assert!(covers("14:20:14", "10:20:10,14"), "one has ended");
        assert!(!covers("10:20:10,14", "14:20:14"));
        assert!(covers("10:25:10,14,22", "10:20:10,14"));
        assert!(!covers("10:20:10,14", "10:25:10,14,22"));
        assert!(!covers("12:25:12", "10:20:10"), "twelve was seen");
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

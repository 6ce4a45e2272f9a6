//! Cursors of lists that are ordered by several columns.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use milepost_core::event::Aggregate;
use milepost_core::event::listing::{AggregatePlace, DeadPlace};
use serde::de::{Deserialize, Deserializer, Error as _};

/// A position in a list, as clients pass it from page to page: its parts separated by NUL (no part contains NUL), encoded as
/// base64url.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor<P>(pub(crate) P);

/// A position that can be split into parts and restored from them.
pub(crate) trait Parts: Sized {
    /// Returns the parts, without NUL.
    fn parts(&self) -> Vec<String>;

    /// Restores the position from its parts; `None` if they are invalid.
    fn of(parts: &[&str]) -> Option<Self>;
}

/// The error for a text that is not a cursor of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a cursor of this list; pass the next_cursor of the previous page unchanged")]
pub(crate) struct NoCursor;

impl<P: Parts> Display for Cursor<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0.parts().join("\0")))
    }
}

impl<P: Parts> FromStr for Cursor<P> {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| NoCursor)?;
        let text = String::from_utf8(bytes).map_err(|_| NoCursor)?;
        let parts: Vec<&str> = text.split('\0').collect();
        P::of(&parts).map(Self).ok_or(NoCursor)
    }
}

impl<'de, P: Parts> Deserialize<'de> for Cursor<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Parts for AggregatePlace {
    fn parts(&self) -> Vec<String> {
        let Aggregate { kind, id } = self.aggregate.clone();
        vec![micros(self.at), self.of.clone(), kind, id]
    }

    fn of(parts: &[&str]) -> Option<Self> {
        let &[at, of, kind, id] = parts else { return None };
        Some(Self { at: time(at)?, of: of.to_owned(), aggregate: Aggregate::new(kind, id) })
    }
}

impl Parts for DeadPlace {
    fn parts(&self) -> Vec<String> {
        vec![micros(self.at), self.event.to_string(), self.subscription.clone()]
    }

    fn of(parts: &[&str]) -> Option<Self> {
        let &[at, event, subscription] = parts else { return None };
        Some(Self { at: time(at)?, event: event.parse().ok()?, subscription: subscription.to_owned() })
    }
}

/// Microseconds, the precision of times in the stores.
fn micros(at: Timestamp) -> String {
    at.as_microsecond().to_string()
}

/// Parses a time that a store can have written: none is before 1970.
fn time(micros: &str) -> Option<Timestamp> {
    let micros: u64 = micros.parse().ok()?;
    Timestamp::from_microsecond(i64::try_from(micros).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use milepost_core::ident::EventId;

    use super::*;

    #[test]
    fn a_place_comes_back_as_it_went() {
        let at = Timestamp::from_microsecond(1_763_850_000_123_456).unwrap();
        let place = AggregatePlace { at, of: "ä b".into(), aggregate: Aggregate::new("order", "&=\"%") };
        assert_eq!(Cursor(place.clone()).to_string().parse(), Ok(Cursor(place)));
        let place = DeadPlace { at, event: EventId::new(), subscription: "orders".into() };
        assert_eq!(Cursor(place.clone()).to_string().parse(), Ok(Cursor(place)));
    }

    #[test]
    fn what_is_no_place_is_refused() {
        let of = |text: &str| URL_SAFE_NO_PAD.encode(text).parse::<Cursor<AggregatePlace>>();
        assert!(of("1\0c\0order\0a").is_ok());
        for bad in ["", "1", "1\0c\0order", "1\0c\0order\0a\0", "x\0c\0order\0a", "-1\0c\0order\0a"] {
            assert_eq!(of(bad), Err(NoCursor), "{bad:?}");
        }
        let beyond = format!("{}\0c\0order\0a", u64::MAX);
        assert_eq!(of(&beyond), Err(NoCursor));
        assert_eq!("%".parse::<Cursor<AggregatePlace>>(), Err(NoCursor));
        let dead = URL_SAFE_NO_PAD.encode("1\0no id\0orders");
        assert_eq!(dead.parse::<Cursor<DeadPlace>>(), Err(NoCursor));
    }
}

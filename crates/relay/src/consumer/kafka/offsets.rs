//! How far a member of a group is in its partitions: behind all that is done with.

use std::collections::{BTreeMap, BTreeSet};

/// A partition of a topic.
pub(super) type Partition = (String, i32);

/// Where a message is, and in which time of ours that the partition was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) partition: Partition,
    pub(super) offset: i64,
    /// A partition that comes back later is not the same any more.
    pub(super) term: u64,
}

/// The partitions that we have.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    partitions: BTreeMap<Partition, Stretch>,
    terms: u64,
}

/// What was read of a partition and not passed.
#[derive(Debug, Default)]
struct Stretch {
    term: u64,
    /// Not done with.
    open: BTreeSet<i64>,
    /// Behind the newest that was read.
    end: i64,
    /// What the brokers know.
    kept: Option<i64>,
}

impl Stretch {
    /// Behind all that is done with.
    fn position(&self) -> i64 {
        self.open.first().copied().unwrap_or(self.end)
    }
}

impl Offsets {
    /// These are ours from now on.
    pub(super) fn assign(&mut self, partitions: impl IntoIterator<Item = Partition>) {
        for partition in partitions {
            self.terms += 1;
            self.partitions.insert(partition, Stretch { term: self.terms, ..Stretch::default() });
        }
    }

    /// These are others' from now on.
    pub(super) fn revoke(&mut self, partitions: impl IntoIterator<Item = Partition>) {
        for partition in partitions {
            self.partitions.remove(&partition);
        }
    }

    /// A message was read; `None`: its partition is not ours.
    pub(super) fn begin(&mut self, partition: Partition, offset: i64) -> Option<Place> {
        let stretch = self.partitions.get_mut(&partition)?;
        stretch.open.insert(offset);
        stretch.end = stretch.end.max(offset + 1);
        Some(Place { term: stretch.term, partition, offset })
    }

    /// A message is done with.
    pub(super) fn end(&mut self, place: &Place) {
        if let Some(stretch) = self.partitions.get_mut(&place.partition).filter(|its| its.term == place.term)
        {
            stretch.open.remove(&place.offset);
        }
    }

    pub(super) fn is_ours(&self, place: &Place) -> bool {
        self.partitions.get(&place.partition).is_some_and(|its| its.term == place.term)
    }

    /// Positions that the brokers do not know yet.
    pub(super) fn moved(&self) -> Vec<(Partition, i64)> {
        let moved = self.partitions.iter().filter(|(_, its)| its.end > 0 && its.kept != Some(its.position()));
        moved.map(|(partition, its)| (partition.clone(), its.position())).collect()
    }

    /// The brokers know these.
    pub(super) fn keep(&mut self, positions: &[(Partition, i64)]) {
        for (partition, position) in positions {
            if let Some(stretch) = self.partitions.get_mut(partition) {
                stretch.kept = Some(*position);
            }
        }
    }

    /// Partitions with so much behind their first open message that no more of them is to be read.
    pub(super) fn full(&self, most: i64) -> BTreeSet<Partition> {
        let full = self.partitions.iter().filter(|(_, its)| its.end - its.position() >= most);
        full.map(|(partition, _)| partition.clone()).collect()
    }

    pub(super) fn all(&self) -> BTreeSet<Partition> {
        self.partitions.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition() -> Partition {
        ("orders".to_owned(), 0)
    }

    #[test]
    fn a_position_goes_behind_what_is_done_with_and_all_before_it() {
        let mut offsets = Offsets::default();
        offsets.assign([partition()]);
        assert!(offsets.moved().is_empty(), "nothing was read");
        let places: Vec<Place> = (5..9).map(|offset| offsets.begin(partition(), offset).unwrap()).collect();
        offsets.end(&places[1]);
        offsets.end(&places[2]);
        assert_eq!(offsets.moved(), [(partition(), 5)], "the first one is open");
        offsets.end(&places[0]);
        let moved = offsets.moved();
        assert_eq!(moved, [(partition(), 8)]);
        offsets.keep(&moved);
        assert!(offsets.moved().is_empty());
        offsets.end(&places[3]);
        assert_eq!(offsets.moved(), [(partition(), 9)]);
    }

    #[test]
    fn what_was_read_before_a_partition_went_and_came_back_moves_nothing() {
        let mut offsets = Offsets::default();
        offsets.assign([partition()]);
        let before = offsets.begin(partition(), 5).unwrap();
        offsets.revoke([partition()]);
        assert!(!offsets.is_ours(&before) && offsets.begin(partition(), 6).is_none());
        offsets.assign([partition()]);
        let again = offsets.begin(partition(), 5).unwrap();
        offsets.end(&before);
        assert!(offsets.is_ours(&again) && !offsets.is_ours(&before));
        assert_eq!(offsets.moved(), [(partition(), 5)], "it is open still");
    }

    #[test]
    fn a_partition_whose_first_message_is_not_done_with_is_read_only_so_far() {
        let mut offsets = Offsets::default();
        offsets.assign([partition(), ("orders".to_owned(), 1)]);
        let places: Vec<Place> = (0..4).map(|offset| offsets.begin(partition(), offset).unwrap()).collect();
        places[1..].iter().for_each(|place| offsets.end(place));
        assert_eq!(offsets.full(4).into_iter().collect::<Vec<_>>(), [partition()]);
        offsets.end(&places[0]);
        assert!(offsets.full(4).is_empty());
    }
}

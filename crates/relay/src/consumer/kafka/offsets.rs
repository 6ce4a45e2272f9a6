//! Offsets of a group member: for each partition, the position after the last message before which all are finished.

use std::collections::{BTreeMap, BTreeSet};

/// A partition of a topic.
pub(super) type Partition = (String, i32);

/// The partition and offset of a message, and the assignment of the partition during which it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessagePosition {
    pub(super) partition: Partition,
    pub(super) offset: i64,
    /// Number of the assignment. A partition that is revoked and assigned again gets a new number.
    pub(super) term: u64,
}

/// The partitions that are assigned to this member.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    partitions: BTreeMap<Partition, OpenOffsets>,
    terms: u64,
}

/// The messages of one partition that were read and are not committed.
#[derive(Debug, Default)]
struct OpenOffsets {
    term: u64,
    /// Offsets of unfinished messages.
    open: BTreeSet<i64>,
    /// Offset after the newest message that was read.
    end: i64,
    /// The offset that the brokers have stored.
    kept: Option<i64>,
}

impl OpenOffsets {
    /// The offset to commit: that of the first unfinished message, otherwise the end.
    fn position(&self) -> i64 {
        self.open.first().copied().unwrap_or(self.end)
    }
}

impl Offsets {
    /// Adds partitions that were assigned to this member.
    pub(super) fn assign(&mut self, partitions: impl IntoIterator<Item = Partition>) {
        for partition in partitions {
            self.terms += 1;
            self.partitions.insert(partition, OpenOffsets { term: self.terms, ..OpenOffsets::default() });
        }
    }

    /// Removes partitions that were revoked.
    pub(super) fn revoke(&mut self, partitions: impl IntoIterator<Item = Partition>) {
        for partition in partitions {
            self.partitions.remove(&partition);
        }
    }

    /// Records that a message was read. Returns `None` if its partition is not assigned to this member.
    pub(super) fn begin(&mut self, partition: Partition, offset: i64) -> Option<MessagePosition> {
        let offsets = self.partitions.get_mut(&partition)?;
        offsets.open.insert(offset);
        offsets.end = offsets.end.max(offset + 1);
        Some(MessagePosition { term: offsets.term, partition, offset })
    }

    /// Marks a message as finished, unless its partition was reassigned since it was read.
    pub(super) fn end(&mut self, place: &MessagePosition) {
        if let Some(offsets) = self.partitions.get_mut(&place.partition).filter(|its| its.term == place.term)
        {
            offsets.open.remove(&place.offset);
        }
    }

    pub(super) fn is_ours(&self, place: &MessagePosition) -> bool {
        self.partitions.get(&place.partition).is_some_and(|its| its.term == place.term)
    }

    /// Returns the offsets that are not committed yet.
    pub(super) fn moved(&self) -> Vec<(Partition, i64)> {
        let moved = self.partitions.iter().filter(|(_, its)| its.end > 0 && its.kept != Some(its.position()));
        moved.map(|(partition, its)| (partition.clone(), its.position())).collect()
    }

    /// Records that the brokers have stored these offsets.
    pub(super) fn keep(&mut self, positions: &[(Partition, i64)]) {
        for (partition, position) in positions {
            if let Some(offsets) = self.partitions.get_mut(partition) {
                offsets.kept = Some(*position);
            }
        }
    }

    /// Returns the partitions that have at least `most` messages after their first unfinished one; no more of them are to be read.
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
        let places: Vec<MessagePosition> =
            (5..9).map(|offset| offsets.begin(partition(), offset).unwrap()).collect();
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
        let places: Vec<MessagePosition> =
            (0..4).map(|offset| offsets.begin(partition(), offset).unwrap()).collect();
        places[1..].iter().for_each(|place| offsets.end(place));
        assert_eq!(offsets.full(4).into_iter().collect::<Vec<_>>(), [partition()]);
        offsets.end(&places[0]);
        assert!(offsets.full(4).is_empty());
    }
}

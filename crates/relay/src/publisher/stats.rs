//! Counters of a publisher.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

macro_rules! stats {
    ($($(#[$meta:meta])* $name:ident,)+) => {
        /// Counters of one publisher.
        #[derive(Debug, Default)]
        pub struct PublisherStats {
            $(pub(super) $name: Counter,)+
        }

        /// The values of the counters at one point in time.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct PublisherStatsView {
            $($(#[$meta])* pub $name: u64,)+
        }

        impl PublisherStats {
            /// Returns the current values.
            pub fn view(&self) -> PublisherStatsView {
                PublisherStatsView { $($name: self.$name.get(),)+ }
            }
        }
    };
}

stats! {
    /// Events that the sink has acknowledged, including parked ones.
    published,
    /// Failed deliveries.
    failed,
    /// Events that became dead letters.
    dead,
    /// Skipped events.
    skipped,
    /// Slots acquired from publishers whose lease had expired.
    taken_over,
    /// Published pages.
    pages,
    /// Aggregates that are parked at present.
    parked_aggregates,
    /// Slots that the publisher owns at present.
    slots,
}

/// A counter that several tasks increment.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(super) fn set(&self, n: usize) {
        self.0.store(n as u64, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

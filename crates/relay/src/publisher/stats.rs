//! What a publisher has done so far, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

macro_rules! stats {
    ($($(#[$meta:meta])* $name:ident,)+) => {
        /// Counters of one publisher.
        #[derive(Debug, Default)]
        pub struct PublisherStats {
            $(pub(super) $name: Counter,)+
        }

        /// The counters at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct PublisherStatsView {
            $($(#[$meta])* pub $name: u64,)+
        }

        impl PublisherStats {
            /// What has been counted.
            pub fn view(&self) -> PublisherStatsView {
                PublisherStatsView { $($name: self.$name.get(),)+ }
            }
        }
    };
}

stats! {
    /// Events that the sink has acknowledged, parked ones among them.
    published,
    /// Deliveries that failed.
    failed,
    /// Events that were given up as dead letters.
    dead,
    /// Events that were skipped.
    skipped,
    /// Slots that were taken over from publishers that were silent.
    taken_over,
    /// Pages that were published.
    pages,
    /// Aggregates that are parked at present.
    parked_aggregates,
    /// Slots that are held at present.
    slots,
}

/// A number that many count up.
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

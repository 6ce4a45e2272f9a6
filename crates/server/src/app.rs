//! What every handler has.

use std::sync::Arc;

use milepost_core::audit::Actor;
use milepost_core::port::Store;
use tokio_util::sync::CancellationToken;

use crate::intake::Intake;
use crate::metrics::Metrics;
use crate::stream::{Feed, Seats};

/// The store, and what is shared by all requests.
#[derive(Clone)]
pub(crate) struct App {
    /// For looking; what a request changes goes through [`acting`](Self::acting).
    pub(crate) store: Arc<dyn Store>,
    /// Where single creates go.
    pub(crate) intake: Intake,
    /// The numbers of `/metrics`.
    pub(crate) metrics: Arc<Metrics>,
    /// What happens, for who watches.
    pub(crate) feed: Feed,
    /// How many watch.
    pub(crate) seats: Seats,
    /// Cancelled when the server shuts down.
    pub(crate) stop: CancellationToken,
}

impl App {
    /// The store, as the actor of a request uses it: for whatever the request changes.
    pub(crate) fn acting(&self, actor: Actor) -> Arc<dyn Store> {
        self.store.acting_as(actor)
    }
}
